"""`corejax.experimental.random` beside jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.experimental.random import StatefulPRNG, stateful_rng

jr = pytest.importorskip("jax.experimental.random")


def test_draws_are_jaxs() -> None:
    ours, theirs = stateful_rng(42), jr.stateful_rng(42)
    draws: list[Any] = [
        lambda rng: rng.random(),
        lambda rng: rng.random((2, 3)),
        lambda rng: rng.uniform(np.float32(1), np.arange(2, 5, dtype="float32")),
        lambda rng: rng.uniform(-1, 1, 4),
        lambda rng: rng.normal(),
        lambda rng: rng.normal(np.arange(3, dtype="float32"), 2.0, dtype="float32"),
        lambda rng: rng.integers(10, size=5),
        lambda rng: rng.integers(np.array([1, 2]), 100),
        lambda rng: rng.integers(0, 5, (2, 2), dtype="uint8"),
    ]
    for draw in draws:
        mine, other = draw(ours), draw(theirs)
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(mine, np.asarray(other), rtol=1e-5, atol=1e-6)
    for mine, other in zip(ours.spawn(2), theirs.spawn(2), strict=True):
        np.testing.assert_array_equal(mine.random(3), other.random(3))


def test_keys() -> None:
    rng = stateful_rng(0)
    keys = [rng.key(), rng.key(), *rng.key(2), *rng.key((1, 2))[0]]
    assert len({tuple(np.asarray(corejax.random.key_data(key))) for key in keys}) == 6
    assert str(stateful_rng(0, impl="rbg").key().dtype) == str(corejax.random.key(0, impl="rbg").dtype)


def test_in_compiled_functions_and_loops() -> None:
    rng, again = stateful_rng(3), stateful_rng(3)
    wanted = [float(again.random()) for _ in range(4)]
    draw = corejax.jit(rng.random)
    assert [float(draw()), float(draw())] == wanted[:2]
    _, rest = lax.scan(lambda c, _: (c, rng.random()), None, None, length=2)
    np.testing.assert_array_equal(rest, wanted[2:])
    passed = corejax.jit(lambda rng, x: x + rng.uniform())
    other = stateful_rng(3)
    assert passed(other, 1.0) == 1 + wanted[0]
    assert passed(other, 0.0) == wanted[1]


def test_mapped_generators() -> None:
    ours, theirs = stateful_rng(123).split(3), jr.stateful_rng(123).split(3)

    def draw(rng: Any, x: Any) -> Any:
        return x + rng.uniform() + rng.uniform()

    x = np.zeros(3, "float32")
    jax = pytest.importorskip("jax")
    np.testing.assert_allclose(corejax.vmap(draw)(ours, jnp.asarray(x)), jax.vmap(draw)(theirs, x), rtol=1e-6)
    np.testing.assert_array_equal(ours._counter[...], [2, 2, 2])
    with pytest.raises(ValueError, match="inside vmap only"):
        ours.random()


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, x: x + rng.random(),
        lambda rng, x: corejax.jit(lambda: rng.random())(),
        lambda rng, x: lax.scan(lambda c, _: (c + rng.random(), None), x, None, length=2)[0],
        lambda rng, x: corejax.grad(lambda x: x * rng.random())(x),
    ],
    ids=["plain", "jit", "scan", "grad"],
)
def test_a_generator_outside_of_a_vmap_is_refused(draw: Any) -> None:
    """Every element would draw the same number; JAX refuses it as well."""
    rng, xs = stateful_rng(0), jnp.arange(3.0)
    mapped = corejax.vmap(lambda x: draw(rng, x))
    for fun in (mapped, corejax.jit(mapped)):
        with pytest.raises(ValueError, match=r"generator made at .* pass rng.split\(n\) as an argument"):
            fun(xs)
    with pytest.raises(ValueError, match="generator made at"):
        corejax.vmap(lambda rng, x: corejax.vmap(lambda x: draw(rng, x))(x))(rng.split(3), jnp.ones((3, 2)))
    assert len(set(map(float, corejax.vmap(draw)(rng.split(3), jnp.ones(3))))) == 3
    assert corejax.vmap(lambda x: draw(stateful_rng(0), x))(xs).shape == (3,)


def test_seeds() -> None:
    assert isinstance(stateful_rng(), StatefulPRNG)
    assert stateful_rng().random() != stateful_rng().random()
    with pytest.raises(TypeError, match="gives the seed"):
        corejax.jit(lambda: stateful_rng().random())()
    seeded = corejax.jit(lambda seed: stateful_rng(seed).random())
    assert seeded(7) == stateful_rng(7).random()
