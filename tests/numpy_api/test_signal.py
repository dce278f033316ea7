"""convolve and correlate: against NumPy and jax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_types

NAMES, MODES = ("convolve", "correlate"), ("full", "same", "valid")


def data(n: int, dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, n)
    return (x + 1j * rng.integers(-4, 5, n)).astype(dtype) if dtype == "F" else x.astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(1, 7), st.integers(1, 7), st.sampled_from(MODES), st.sampled_from("fF"), st.integers(0, 9))
@settings(max_examples=40)
def test_values_are_those_of_numpy(name: str, n: int, m: int, mode: str, dtype: str, seed: int) -> None:
    a, v = data(n, dtype, seed), data(m, dtype, seed + 1)
    np.testing.assert_array_equal(getattr(jnp, name)(a, v, mode), getattr(np, name)(a, v, mode))


@pytest.mark.parametrize("name", NAMES)
def test_types_are_those_of_jax(name: str) -> None:
    for dtype in ("i", "f", "F"):
        check(lambda np_, a, v: getattr(np_, name)(a, v, mode="full"), data(5, "f", 0), data(3, dtype, 1))
    check_types(lambda np_, a, v: getattr(np_, name)(a, v, preferred_element_type="int32"), *[data(4, "b", 0)] * 2)


def test_derivatives_and_batches_compiled() -> None:
    xs, v = np.stack([data(6, "f", i) for i in range(3)]), data(3, "f", 9)

    def loss(x: Any, v: Any) -> Any:
        return (jnp.convolve(x, v) * jnp.arange(8.0)).sum() + (jnp.correlate(v, x, "same") ** 2).sum()

    gradients = corejax.jit(corejax.vmap(corejax.grad(loss, (0, 1)), (0, None)))(xs, v)
    step = 1e-2
    for i, x in enumerate(xs):
        for got, which in zip(gradients, (0, 1), strict=True):
            args = [x.astype("d"), v.astype("d")]
            for k in range(args[which].size):
                ends = []
                for sign in (1, -1):
                    moved = [a.copy() for a in args]
                    moved[which][k] += sign * step
                    ends.append(loss(*moved))
                np.testing.assert_allclose(got[i, k], (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_fit_is_named(name: str) -> None:
    f = getattr(jnp, name)
    with pytest.raises(ValueError, match=rf"{name} takes arrays of one axis that are not empty, got f32\[0\]"):
        f(np.ones(0, "f"), np.ones(2, "f"))
    with pytest.raises(ValueError, match=rf"{name} takes arrays of one axis"):
        f(np.ones((2, 2), "f"), np.ones(2, "f"))
    with pytest.raises(ValueError, match=f"{name}: mode is one of 'full', 'same', 'valid', got 'half'"):
        f(np.ones(2, "f"), np.ones(2, "f"), "half")
    with pytest.raises(TypeError, match="position 1"):
        f(np.ones(2, "f"), [1.0])
