"""Eager scans that are long are compiled, in stretches; they give what the loop over NumPy arrays gives."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, observe
from corejax.extend.speed import engine
from corejax_control_flow.loops import long_scans
from corejax_control_flow.loops.long_scans import LONG, operations

pytest.importorskip("jaxlib")


@pytest.fixture
def runs(monkeypatch):
    """How many steps each compiled stretch has."""
    lengths: list[int] = []
    run = engine().run_compiled

    def spy(primitive, arrays, params):
        lengths.append(params["length"])
        return run(primitive, arrays, params)

    monkeypatch.setattr(engine(), "run_compiled", spy)
    return lengths


def step(c, x):
    a, n = c
    return (a * 0.5 + x["x"], n + 1), {"y": a, "n": [n]}


def by_numpy(xs, reverse):
    a, ys = np.float32(1), []
    for x in xs[::-1] if reverse else xs:
        ys.append(a)
        a = a * np.float32(0.5) + x
    return a, np.array(ys[::-1] if reverse else ys)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("stretch", [long_scans.STRETCH, LONG // 3])
@pytest.mark.engine
def test_long_scans_are_compiled(runs, monkeypatch, reverse, stretch):
    monkeypatch.setattr(long_scans, "STRETCH", stretch)
    xs = np.random.default_rng(0).standard_normal(LONG).astype(np.float32)
    (a, n), ys = lax.scan(step, (jnp.float32(1), 0), {"x": jnp.asarray(xs)}, reverse=reverse)
    last, stacked = by_numpy(xs, reverse)
    np.testing.assert_allclose(a, last, rtol=1e-5)
    np.testing.assert_allclose(ys["y"], stacked, rtol=1e-4, atol=1e-6)
    order = np.arange(LONG)[::-1] if reverse else np.arange(LONG)
    np.testing.assert_array_equal(ys["n"][0], order)
    assert int(n) == LONG and sum(runs) == LONG and (len(runs) > 1) is (stretch < LONG)


def test_short_ones_and_those_that_somebody_looks_at_are_not(runs):
    count = LONG // 2

    def loop(n):
        return lax.fori_loop(0, n, lambda i, x: x + i, 0)

    assert int(loop(100)) == 4950 and not runs
    with observe.watching(lambda step, begins: None):
        assert int(loop(count)) == count * (count - 1) // 2
    with cj.disable_jit():
        assert int(loop(count)) == count * (count - 1) // 2
    with cj.debug_nans(True):
        assert int(loop(count)) == count * (count - 1) // 2
    assert not runs
    assert int(loop(count)) == count * (count - 1) // 2 and runs == [count]


def test_effects_are_left_to_the_loop(runs):
    seen = []

    def body(i, x):
        cj.debug.callback(seen.append, i)
        return x + 1

    assert int(lax.fori_loop(0, LONG // 2, body, 0)) == LONG // 2
    assert not runs and len(seen) == LONG // 2


def test_nests_and_derivatives(runs):
    def inner(x):
        return lax.fori_loop(0, 200, lambda i, y: jnp.sin(y) * 0.99, x)

    def outer(x):
        return lax.fori_loop(0, 100, lambda i, y: inner(y) + x, x)

    program = cj.make_jaxpr(outer)(1.0)
    assert operations(program.jaxpr) > 100 * 200 * 2
    x = jnp.float32(0.7)
    np.testing.assert_allclose(outer(x), cj.jit(outer)(x), rtol=1e-5)
    assert runs == [100]
    np.testing.assert_allclose(cj.grad(outer)(x), cj.jit(cj.grad(outer))(x), rtol=1e-4)
    np.testing.assert_allclose(cj.vmap(outer)(x[None]), outer(x)[None], rtol=1e-5)
    assert len(runs) > 2


def test_keys_and_no_elements():
    key = cj.random.key(0)
    n = LONG

    def draw(key, _):
        return cj.random.split(key)[0], None

    with_few = lax.scan(draw, key, None, length=3)[0]
    assert with_few.dtype == key.dtype
    (total, _), nothing = lax.scan(lambda c, x: ((c[0] + x.sum(), c[1]), x), (0.0, 0), jnp.zeros((n, 0)))
    assert float(total) == 0.0 and nothing.shape == (n, 0)
