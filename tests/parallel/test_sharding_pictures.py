"""Pictures of where the parts of arrays are."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import corejax
from corejax import debug
from corejax.sharding import NamedSharding
from corejax.sharding import PartitionSpec as P


def _array(spec: P, shape: tuple[int, ...]) -> Any:
    mesh = corejax.make_mesh((4, 2), ("a", "b"))
    return corejax.device_put(np.ones(shape), NamedSharding(mesh, spec))


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (P("a"), (8,)),
        (P("a", "b"), (8, 4)),
        (P(("a", "b")), (16, 16)),
        (P("b"), (8, 4)),
        (P("b", "a"), (8, 4)),
        (P(), (8, 4)),
    ],
)
def test_boxes_say_what_jax_says(spec: P, shape: tuple[int, ...], capsys: Any) -> None:
    jax = pytest.importorskip("jax")
    debug.visualize_array_sharding(_array(spec, shape))
    ours = capsys.readouterr().out
    theirs = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b")), jax.P(*spec)
    )
    jax.debug.visualize_sharding(shape, theirs, use_color=False)
    other = capsys.readouterr().out

    def words(text: str) -> list[list[str]]:
        rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line[0] == "│"]
        return [row for row in rows if any(row)]

    assert words(ours) == words(other)
    assert len({len(line) for line in ours.splitlines()}) == 1


def test_the_compilers_choice_is_drawn(capsys: Any) -> None:
    def f(x: Any) -> Any:
        y = x.T
        debug.visualize_array_sharding(y)
        return y

    corejax.jit(f)(_array(P("a"), (8, 4)))
    assert "│CPU0,1│CPU2,3│CPU4,5│CPU6,7│" in capsys.readouterr().out.replace(" ", "")


def test_a_picture_for_notebooks() -> None:
    x = _array(P("a"), (8, 4))
    picture = ElementTree.fromstring(debug.draw_array_sharding(x, width=100)._repr_svg_())
    texts = [node.text for node in picture.iter() if node.tag.endswith("}text")]
    assert texts == ["CPU 0,1", "CPU 2,3", "CPU 4,5", "CPU 6,7"] and picture.attrib["width"] == "100"
    gray = debug.draw_array_sharding(x, color_map=lambda where: (where,) * 3).svg
    assert "rgb(0, 0, 0)" in gray and "rgb(191, 191, 191)" in gray
    flat = debug.draw_array_sharding(corejax.ShapeDtypeStruct((8,), np.float32, sharding=x.sharding))
    assert flat.svg.count("<rect") == 4
    with pytest.raises(ValueError, match=r"one or two dimensions, got the shape \(\)"):
        debug.draw_array_sharding(_array(P(), ()))
