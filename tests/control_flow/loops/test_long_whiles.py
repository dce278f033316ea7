"""Eager `while` loops that turn out to be long are finished by a compiled program, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, observe
from corejax.extend.speed import engine
from corejax_control_flow.loops import long_whiles
from corejax_control_flow.loops.long_scans import LONG

pytest.importorskip("jaxlib")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps that each compiled stretch may take."""
    steps: list[int] = []
    run = engine().run_compiled

    def spy(primitive: Any, arrays: Any, params: Any) -> Any:
        steps.append(int(arrays[params["cond_nconsts"] + params["body_nconsts"]]))
        return run(primitive, arrays, params)

    monkeypatch.setattr(engine(), "run_compiled", spy)
    return steps


def total(n: Any) -> Any:
    """Return 0 + 1 + ... + (n - 1), by a loop of three operations a step."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + c[0]), (0, 0))[1]


@pytest.mark.engine
@pytest.mark.parametrize("stretch", [long_whiles.STRETCH, 3 * LONG])
def test_long_loops_are_finished_compiled(runs: list[int], monkeypatch: pytest.MonkeyPatch, stretch: int) -> None:
    monkeypatch.setattr(long_whiles, "STRETCH", stretch)
    n = 3 * LONG
    assert int(total(n)) == int(np.arange(n, dtype=np.int32).sum(dtype=np.int32))
    assert len(runs) == (1 if stretch > n else 3)
    steps = len(runs)
    assert int(total(100)) == 4950 and len(runs) == steps


@pytest.mark.engine
def test_number_of_steps_at_the_limits(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are right whether the condition fails before, at or after the change, or at a stretch's end."""
    monkeypatch.setattr(long_whiles, "STRETCH", 300)  # 100 steps
    eager = LONG // 3
    for n in (eager - 1, eager, eager + 1, eager + 99, eager + 100, eager + 101, eager + 200):
        assert int(total(n)) == n * (n - 1) // 2


@pytest.mark.engine
def test_constants_trees_and_weak_types(runs: list[int]) -> None:
    scale = jnp.asarray([0.5, 0.25])

    def loop(x: Any, n: Any) -> Any:
        def body(c: Any) -> Any:
            return {"i": c["i"] + 1, "x": c["x"] * scale + x, "n": c["n"]}

        return lax.while_loop(lambda c: c["i"] < c["n"], body, {"i": 0, "x": x, "n": n})

    found = loop(jnp.ones(2), jnp.int32(LONG))
    assert runs and found["i"].weak_type and int(found["i"]) == LONG
    np.testing.assert_allclose(found["x"], [2, 4 / 3], rtol=1e-6)
    found = cj.vmap(loop, (None, 0))(jnp.ones(2), jnp.asarray([3, LONG]))
    np.testing.assert_array_equal(found["i"], [3, LONG])
    np.testing.assert_allclose(found["x"][1], [2, 4 / 3], rtol=1e-6)
    _, slope = cj.jvp(lambda x: loop(x, LONG)["x"], (jnp.ones(2),), (jnp.ones(2),))
    np.testing.assert_allclose(slope, [2, 4 / 3], rtol=1e-6)


def test_loops_that_are_watched_or_have_effects_stay_eager(runs: list[int]) -> None:
    n = LONG // 2
    seen: list[int] = []

    def body(c: Any) -> Any:
        cj.debug.callback(lambda i: seen.append(int(i)), c)
        return c + 1

    with observe.watching(lambda step, begins: None):
        assert int(total(n)) == n * (n - 1) // 2
    with cj.disable_jit():
        assert int(total(n)) == n * (n - 1) // 2
    assert int(lax.while_loop(lambda c: c < n, body, 0)) == n
    assert not runs and seen == list(range(n))
