"""Pictures of programs: everything is in them, boxes do not overlap, lines go down; notebooks get HTML or the text."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Jaxpr
from corejax_explain.drawing import draw_jaxpr, program_graph
from corejax_explain.drawing.boxes import Picture, outer_height, outer_width, picture
from corejax_explain.drawing.layout import layers_of, layout

SVG = "{http://www.w3.org/2000/svg}"


def loss(params: Any, x: Any) -> Any:
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


def network() -> Any:
    params = [(jnp.ones((4, 4)), jnp.ones(4))] * 3
    return cj.make_jaxpr(cj.grad(loss))(params, jnp.ones((8, 4)))


def nested() -> Any:
    def f(p: Any, x: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            return lax.cond(p > 0, lambda c: jnp.sin(c) * 2, lambda c: -c, c), c + x

        return cj.jit(lambda x: lax.scan(body, 0.0, x))(x)

    return cj.make_jaxpr(f)(1, jnp.ones(3))


PROGRAMS: dict[str, Callable[[], Any]] = {
    "network": network,
    "nested": nested,
    "no arguments": lambda: cj.make_jaxpr(lambda: jnp.zeros(3) + 1)(),
    "no equations": lambda: cj.make_jaxpr(lambda x, y: (y, x, y))(1.0, 2),
    "no outputs": lambda: cj.make_jaxpr(lambda x: None)(1.0),
    "nothing": lambda: Jaxpr([], [], [], []),
    "constants": lambda: cj.make_jaxpr(lambda x: x + np.arange(3.0))(1.0),
    "one value twice": lambda: cj.make_jaxpr(lambda x: x * x)(1.0),
    "many results": lambda: cj.make_jaxpr(lambda x: jnp.split(x, 4))(jnp.ones(8)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_boxes_do_not_overlap_and_lines_go_down(name: str) -> None:
    def check(made: Picture) -> None:
        places = made.layout.corners
        sides = [(x, y, x + b.width, y + b.height) for (x, y), b in zip(places, made.boxes, strict=True)]
        for one, two in itertools.combinations(sides, 2):
            assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]
        for left, top, right, bottom in sides:
            assert left >= -1e-6 and top >= 0
            assert right <= made.layout.width + 1e-6 and bottom <= made.layout.height + 1e-6
        for _, points in made.layout.lines:
            heights = [y for _, y in points]
            assert heights == sorted(heights)
        for box in made.boxes:
            for x, y, inner in box.programs:
                assert x + outer_width(inner) <= box.width and y + outer_height(inner) <= box.height
                check(inner)

    check(picture(program_graph(PROGRAMS[name]())))


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_is_in_the_document(name: str) -> None:
    program = PROGRAMS[name]()
    root = ElementTree.fromstring(program.to_svg())
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]

    def check(jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            assert any(text.startswith(eqn.primitive.name) for text in texts), eqn
            for inner in cj.extend.programs.subjaxprs(eqn.params):
                check(inner)

    check(program)
    assert sum(text.startswith("output") for text in texts) >= len(getattr(program, "jaxpr", program).outvars)


def test_arguments_have_their_names_and_equations_their_lines() -> None:
    text = network().to_svg()
    assert "params[2][1]" in text and "test_drawing.py" in text


def test_every_value_arrives_where_it_is_used() -> None:
    graph = program_graph(network())
    made = picture(graph)
    arrived = [line for (line, _), ends in zip(made.layout.lines, made.layout.ends, strict=True) if ends]
    assert sorted(map(tuple, arrived)) == sorted(map(tuple, graph.edges))


def test_layers_are_below_what_they_use_and_sources_beside_their_first_use() -> None:
    assert layers_of(5, [(0, 2, "a"), (2, 3, "b"), (1, 3, "c"), (3, 4, "d")]) == [0, 1, 1, 2, 3]


def test_lines_that_need_not_cross_do_not() -> None:
    lines = [(0, 5, "a"), (1, 4, "b"), (2, 3, "c")]
    made = layout([(10.0, 10.0)] * 6, lines)
    x = [corner[0] for corner in made.corners]
    assert sorted(range(3), key=x.__getitem__) == sorted(range(3), key=lambda i: x[5 - i])


def test_hundred_equations_are_drawn_and_a_thousand_are_left_to_the_text() -> None:
    def f(x: Any, n: int) -> Any:
        for _ in range(n):
            x = jnp.sin(x)
        return x

    small = cj.make_jaxpr(f, static_argnums=1)(1.0, 100)
    assert small._repr_html_().count("<rect") == 103 and "100 equations as text" in small._repr_html_()
    large = cj.make_jaxpr(f, static_argnums=1)(1.0, 1000)
    assert large._repr_html_() is None
    assert large.to_svg().count("<rect") == 1003


def test_a_program_that_doubles_at_each_level_is_left_to_the_text_at_once() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(x)

    for _ in range(60):
        f = cj.jit(lambda x, f=f: f(x) + f(x))
    assert cj.make_jaxpr(f)(1.0)._repr_html_() is None


def test_html_shows_and_obeys_nothing() -> None:
    def f(x: Any) -> Any:
        return x + 1

    f.__name__ = "<script>\x1b"
    html = cj.make_jaxpr(cj.jit(f))(1.0)._repr_html_()
    assert "<script>" not in html and "\x1b" not in html and "&lt;script&gt;" in html


def test_saved_files_are_the_picture(tmp_path: Path) -> None:
    drawing = cj.draw_jaxpr(nested())
    drawing.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == drawing.svg == drawing.program.to_svg()
    assert repr(drawing).startswith("<Drawing of f: ")


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(TypeError, match=r"make_jaxpr\(f\)\(\*args\), got .* of type function"):
        draw_jaxpr(loss)  # type: ignore[arg-type]


def test_without_the_plugin_there_is_text_and_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    program = network()
    monkeypatch.setattr("corejax.plugins._plugin_manager.PluginManager.exported", lambda self, name: None)
    assert program._repr_html_() is None
    with pytest.raises(cj.errors.PluginMissingError, match="corejax-explain"):
        program.to_svg()
