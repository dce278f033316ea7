"""`numpy.top_k` and `numpy.minmax`, which JAX has from 0.12 on, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "bfloat16", "bool"])
@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize(("axis", "k"), [(-1, 3), (0, 2), (1, 0), (0, 4)])
def test_top_k(dtype: str, mode: str, axis: int, k: int) -> None:
    low, high = {"int8": (-128, 128), "uint8": (0, 256)}.get(dtype, (-9, 9))
    x = np.asarray(jnp.asarray(RNG.integers(low, high, (4, 5)), dtype))
    values, indices = jnp.top_k(x, k, axis=axis, mode=mode)
    ordered = np.sort(x, axis)
    wanted = np.take(ordered if mode == "smallest" else np.flip(ordered, axis), range(k), axis)
    np.testing.assert_array_equal(values, wanted)
    assert values.dtype == x.dtype and indices.dtype == "int32"
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(indices), axis), wanted)
    for got, first in zip(
        corejax.jit(lambda x: jnp.top_k(x, k, axis=axis, mode=mode))(x), (values, indices), strict=True
    ):
        np.testing.assert_array_equal(got, first)


def test_top_k_errors_and_gradients() -> None:
    with pytest.raises(ValueError, match="mode must be 'largest' or 'smallest', got 'most'"):
        jnp.top_k(jnp.arange(3), 1, mode="most")
    with pytest.raises(ValueError, match="k must be between 0 and the size of axis 0"):
        jnp.top_k(jnp.arange(3), 4)
    with pytest.raises(TypeError, match="complex64"):
        jnp.top_k(jnp.ones(3, "complex64"), 1)
    x = jnp.array([3.0, 1.0, 2.0])
    assert corejax.grad(lambda x: jnp.top_k(x, 2, mode="smallest")[0].sum())(x).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_minmax(axis: int | None, keepdims: bool) -> None:
    x = RNG.normal(size=(3, 4)).astype("float32")
    low, high = jnp.minmax(x, axis, keepdims=keepdims)
    np.testing.assert_array_equal(low, np.min(x, axis, keepdims=keepdims))
    np.testing.assert_array_equal(high, np.max(x, axis, keepdims=keepdims))
    mask = x > 0
    low, high = jnp.minmax(x, axis, keepdims=keepdims, initial=(5.0, -5.0), where=mask)
    np.testing.assert_array_equal(low, np.min(x, axis, keepdims=keepdims, initial=5.0, where=mask))
    np.testing.assert_array_equal(high, np.max(x, axis, keepdims=keepdims, initial=-5.0, where=mask))


def test_minmax_of_nothing() -> None:
    assert [float(x) for x in jnp.minmax(jnp.ones(0), initial=2.0)] == [2.0, 2.0]
    with pytest.raises(ValueError, match="give `initial`"):
        jnp.minmax(jnp.ones(0))
