"""examples/sharded_transformer.py: many devices compute what one does, and send each other what was counted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import corejax

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def model() -> Any:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import sharded_transformer
    finally:
        sys.path.remove(str(EXAMPLES))
    return sharded_transformer


@pytest.mark.parametrize(
    "axes", [(2, 4), pytest.param((8, 1), marks=pytest.mark.slow), pytest.param((2, 1), marks=pytest.mark.slow)]
)
def test_it_learns_as_one_device_does(model: Any, axes: tuple[int, int]) -> None:
    sizes = model.Sizes(letters=0, width=32, blocks=2, heads=4, length=12, batch=8)
    given, letters = model.batches(sizes, 3, np.random.default_rng(1))
    sizes = sizes._replace(letters=letters)
    first = model.begun(model.init(np.random.default_rng(2), sizes))
    mesh = corejax.make_mesh(axes, ("data", "model"))
    where, texts = model.shardings(mesh)
    compiled = model.lowered(mesh, sizes).compile()
    state, shared = model.learn(compiled, corejax.device_put(first, where), corejax.device_put(given, texts))
    last, alone = model.learn(corejax.jit(model.step), first, given)
    np.testing.assert_allclose(shared, alone, rtol=1e-5)
    assert shared[2] < shared[0]
    for a, b in zip(corejax.tree.leaves(state), corejax.tree.leaves(last), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=2e-3)
    assert corejax.tree.map(lambda x: x.sharding, state) == where
    assert model.measured(compiled)[:4] == model.costs(sizes, *axes)[:4]


@pytest.mark.slow
def test_the_program_runs_and_draws(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    done = CliRunner().invoke(model.main, ["--devices", "8", "--steps", "2", "--output", str(picture)])
    assert done.exception is None, done.output
    assert "on 2 x 4 devices" in " ".join(done.output.split()) and "all-reduce" in done.output
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000
