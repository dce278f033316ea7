"""Reductions: values as NumPy's, dtypes as jax's, for every way to name axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import assert_close, check, check_types
from tests.numpy_api.test_elementwise import DTYPES, sample

SUMS = ["sum", "prod", "mean", "var", "std"]
EXTREMES = ["max", "min", "ptp"]
TRUTH = ["all", "any", "count_nonzero"]
INDICES = ["argmax", "argmin"]
AXES = [None, 0, -1, (0, 2), (-1, 0), (), (0, 1, 2)]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*SUMS, *EXTREMES, *TRUTH, *INDICES])
def test_dtypes(name: str, dtype: str) -> None:
    if (name in INDICES + EXTREMES and dtype == "complex64") or (name == "ptp" and dtype == "bool"):
        pytest.skip("no order, or no difference")
    x = sample(dtype, (3, 4))
    (ours,) = check_types(lambda xp, x: getattr(xp, name)(x), x)
    wide = x.astype(np.float64) if "float" in dtype else x
    assert_close(ours, getattr(np, name)(wide), 2e-2 if "16" in dtype else None)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", [*SUMS, "max", "min", "all", "any", "count_nonzero"])
def test_axes(name: str, axis: Any, keepdims: bool) -> None:
    check(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), sample("float32", (2, 3, 4)))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", INDICES)
def test_axes_of_indices(name: str, axis: int | None, keepdims: bool) -> None:
    check(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), sample("float32", (2, 3, 4)))


@pytest.mark.parametrize("name", [*SUMS, *EXTREMES, *TRUTH, *INDICES])
@pytest.mark.parametrize("value", [3, 2.5, True])
def test_scalars(name: str, value: float) -> None:
    if not (name == "ptp" and value is True):
        check(lambda xp: getattr(xp, name)(value))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("name", [*SUMS, *TRUTH])
def test_of_no_elements(name: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    (ours,) = check_types(lambda xp, x: getattr(xp, name)(x), x)
    assert_close(ours, {"sum": 0, "prod": 1, "all": True, "any": False, "count_nonzero": 0}.get(name, np.nan))
    check_types(lambda xp, x: getattr(xp, name)(x, axis=0), x)


@pytest.mark.parametrize("name", [*EXTREMES, *INDICES])
def test_extremes_of_no_elements(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}|max: f32\[0,3\] has no elements"):
        getattr(jnp, name)(jnp.zeros((0, 3)))
    assert getattr(jnp, name)(jnp.zeros((0, 3)), axis=1).shape == (0,)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nan_wins(name: str) -> None:
    check(lambda xp, x: getattr(xp, name)(x, axis=1), np.array([[1, np.nan, 3], [4, 2, 4]], np.float32))


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_dtype_argument(name: str, dtype: str) -> None:
    check(lambda xp, x: getattr(xp, name)(x, axis=0, dtype=dtype), sample("int8"))


def test_long_sums_of_narrow_floats() -> None:
    x = jnp.ones(5000, jnp.float16)
    assert float(jnp.sum(x)) == 5000 and float(jnp.mean(x)) == 1 and float(jnp.var(x)) == 0


@pytest.mark.parametrize("ddof", [0, 1, 0.5])
def test_degrees_of_freedom(ddof: float) -> None:
    check(lambda xp, x: xp.var(x, axis=1, ddof=ddof), sample("float32"))
    check(lambda xp, x: xp.std(x, ddof=ddof), sample("complex64"))
    assert np.isnan(jnp.var(jnp.ones(2), ddof=2))


MASK = np.array([[True, False, True], [True, True, False]])


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*SUMS, "all", "any"])
@pytest.mark.parametrize("mask", [MASK, MASK[:1], MASK[0]], ids=["full", "row", "vector"])
def test_masks(name: str, mask: np.ndarray) -> None:
    check(lambda xp, x, m: getattr(xp, name)(x, where=m, axis=1), sample("float32"), mask)
    check(lambda xp, x, m: getattr(xp, name)(x, where=m, keepdims=True), sample("float32"), mask)


def test_masked_extremes_need_an_initial_value() -> None:
    check(lambda xp, x, m: xp.max(x, where=m, initial=-9, axis=0), sample("float32"), MASK)
    check(lambda xp, x: xp.min(x, initial=-9), sample("int8"))
    check(lambda xp, x: xp.sum(x, initial=2), sample("int8"))
    check(lambda xp, x: xp.prod(x, initial=2.0), sample("float32"))
    with pytest.raises(ValueError, match="initial"):
        jnp.max(jnp.ones(3), where=jnp.ones(3, bool))


def test_average() -> None:
    check(lambda xp, x, w: xp.average(x, weights=w), sample("float32"), np.abs(sample("float32", seed=3)) + 1)
    check(lambda xp, x: xp.average(x, axis=1), sample("int32"))
    with pytest.raises(ValueError, match="weights"):
        jnp.average(jnp.ones(3), weights=jnp.ones(2))


@pytest.mark.parametrize("axis", [2, -3, (0, 0), (0, -2)])
def test_axes_that_are_not_there(axis: Any) -> None:
    with pytest.raises(ValueError, match=r"out of bounds|duplicate"):
        jnp.sum(jnp.ones((2, 3)), axis=axis)


def test_derivatives() -> None:
    x = jnp.asarray(sample("float32", (5,)))
    np.testing.assert_allclose(corejax.grad(jnp.mean)(x), np.full(5, 0.2), rtol=1e-6)
    centred = np.asarray(x) - np.mean(np.asarray(x))
    np.testing.assert_allclose(corejax.grad(jnp.var)(x), 2 * centred / 5, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(corejax.grad(jnp.std)(x), centred / 5 / np.std(np.asarray(x)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(corejax.grad(jnp.max)(jnp.asarray([1.0, 3.0, 2.0])), [0, 1, 0])


def test_equality_of_lists() -> None:
    oracle = pytest.importorskip("jax.numpy")
    for pair in [([1, 2], (1, 2)), ([1, 2], np.array([1, 3])), ([], ()), ([[1, 1]], 1), ((1.0, 2.0), [[1, 2]])]:
        for name in ("array_equal", "array_equiv"):
            ours, theirs = (getattr(m, name)(*pair) for m in (jnp, oracle))
            assert (bool(ours), ours.dtype) == (bool(theirs), theirs.dtype), (name, pair)
