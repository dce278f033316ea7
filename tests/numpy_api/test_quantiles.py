"""Quantiles: against NumPy and jax, run and compiled."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_against_jax, check_compiled, check_types

RNG = np.random.default_rng(1)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
NANS = np.where(RNG.random(X.shape) < 0.3, np.float32(np.nan), X)
NANS[0, 0] = np.nan
INTS = RNG.integers(-9, 9, (4, 6)).astype(np.int32)
Q = np.array([0.0, 0.1, 0.5, 0.77, 1.0], np.float32)
METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]
AXES = [None, 0, -1, (0, 2), (2, 1)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(axis: Any, keepdims: bool) -> None:
    for f in (
        lambda m, x: m.median(x, axis, keepdims=keepdims),
        lambda m, x: m.quantile(x, 0.3, axis, keepdims=keepdims),
        lambda m, x: m.percentile(x, np.float32(70), axis, keepdims=keepdims),
        lambda m, x: m.quantile(x, Q, axis, keepdims=keepdims),
    ):
        check(f, X, rtol=1e-5)
    g = lambda m, x: m.nanquantile(x, Q, axis, keepdims=keepdims)
    check_types(g, NANS)
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if axis == -1 else pytest.MonkeyPatch.context():
        np.testing.assert_allclose(g(jnp, NANS), g(np, NANS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_methods(method: str) -> None:
    for x in (X, INTS.astype(np.float32)):
        f = lambda m, x: m.quantile(x, Q, -1, method=method)
        check_against_jax(f, x, rtol=1e-5)
        check_compiled(f, x)
    g = lambda m, x: m.nanpercentile(x, 100 * Q, 1, method=method)
    check_against_jax(g, NANS, rtol=1e-5)
    check_compiled(g, NANS)


def test_weights_and_the_inverse_of_the_distribution() -> None:
    w = np.abs(X) + np.float32(0.1)
    check_against_jax(lambda m, x: m.quantile(x, Q, 1, method="inverted_cdf"), X)
    check_against_jax(lambda m, x, w: m.quantile(x, Q, 1, method="inverted_cdf", weights=w), X, w)
    check_against_jax(
        lambda m, x, w: m.quantile(x, 0.4, 2, method="inverted_cdf", weights=w, keepdims=True), X, w[0, 0]
    )
    check_against_jax(lambda m, x, w: m.nanquantile(x, 0.4, -1, method="inverted_cdf", weights=w), NANS, w)
    check_against_jax(lambda m, x, w: m.quantile(x, 0.4, method="inverted_cdf", weights=w), X, -w)
    x, q = np.arange(6, dtype=np.float32), np.array([0, 0.5, 1], np.float32)  # elements without weight are never found
    some = np.array([0, 0, 1, 2, 3, 0], np.float32)
    assert jnp.quantile(x, q, weights=some, method="inverted_cdf").tolist() == [2, 3, 4]
    assert np.isnan(jnp.quantile(x, q, weights=0 * x, method="inverted_cdf")).all()
    assert np.isnan(jnp.quantile(x[:0], 0.5, method="inverted_cdf"))
    many = np.arange(65521) < 10
    assert jnp.percentile(many.astype(np.float16), 50, method="inverted_cdf") == 0  # more than float16 counts


def test_types() -> None:
    for dtype in (bool, np.int8, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32):
        x = np.abs(INTS).astype(dtype)
        for f in (lambda m, x: m.median(x), lambda m, x: m.quantile(x, Q, 0), lambda m, x: m.nanmedian(x, 1)):
            check_types(f, x)
        assert abs(float(jnp.median(x)) - float(np.median(x.astype(np.float64)))) < 0.01
    assert jnp.median(2.0).weak_type == jnp.quantile(2.0, 0.5).weak_type
    assert jnp.quantile(INTS.astype(np.float64), 0.3).dtype == np.float64
    np.testing.assert_allclose(jnp.quantile(INTS.astype(np.float64), 0.3), np.quantile(INTS, 0.3), rtol=1e-7)


def test_nan_where_one_is_and_where_there_is_nothing() -> None:
    np.testing.assert_array_equal(np.isnan(jnp.median(NANS, -1)), np.isnan(NANS).any(-1))
    np.testing.assert_array_equal(np.isnan(jnp.nanmedian(NANS, -1)), np.isnan(NANS).all(-1))
    assert np.isnan(jnp.median(X[:0]))
    assert jnp.median(X[:, :0], 0).shape == (0, 5)
    assert np.isnan(corejax.jit(lambda x, q: jnp.quantile(x, q))(X[:0], 0.5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["linear", "lower", "nearest"])
def test_shares_that_are_none_are_those_of_jax(method: str) -> None:
    jnp_of_jax = pytest.importorskip("jax.numpy")
    x = np.array([3, 1, 2], np.float32)
    for q in (np.nan, np.inf, -1.0, [0.5, np.nan]):
        given = np.asarray(q, np.float32)
        expected = jnp_of_jax.quantile(x, given, method=method)
        np.testing.assert_array_equal(jnp.quantile(x, given, method=method), expected)


def test_shares_may_be_traced_and_everything_is_differentiated() -> None:
    f = lambda x, q: jnp.quantile(x, q, axis=-1)
    np.testing.assert_allclose(corejax.jit(f)(X, Q), np.quantile(X, Q, axis=-1), rtol=1e-5)
    np.testing.assert_allclose(corejax.vmap(f, in_axes=(None, 0))(X, Q), np.quantile(X, Q, axis=-1), rtol=1e-5)
    slope = corejax.grad(lambda q: jnp.quantile(X[0, 0], q))(0.4)
    ordered = np.sort(X[0, 0])
    np.testing.assert_allclose(slope, 4 * (ordered[2] - ordered[1]), rtol=1e-4)
    weight = corejax.jit(corejax.vmap(corejax.grad(lambda x: jnp.median(x))))(X[0])
    np.testing.assert_array_equal(np.asarray(weight), X[0] == np.median(X[0], -1, keepdims=True))
    assert len(corejax.make_jaxpr(jnp.median)(X).jaxpr.eqns) < 14


ERRORS = [
    (lambda: jnp.quantile(X, 0.5, method="best"), ValueError, "quantile: method is one of"),
    (lambda: jnp.quantile(X, Q[None]), ValueError, r"q is a scalar or a vector, got an array of shape \(1, 5\)"),
    (lambda: jnp.quantile(X.astype("c8"), 0.5), ValueError, "complex numbers have no order"),
    (lambda: jnp.median(X, 3), ValueError, "median: axis 3 is out of bounds"),
    (lambda: jnp.median(X, (0, 0)), ValueError, "duplicate value in 'median: axis'"),
    (lambda: jnp.median(X, out=X), ValueError, "out and overwrite_input are not supported"),
    (lambda: jnp.quantile(X, 0.5, weights=X), NotImplementedError, "weights .* method 'inverted_cdf' only"),
    (lambda: jnp.quantile(X, 0.5, 1, method="inverted_cdf", weights=Q), ValueError, r"weights have shape .* or \(4,\)"),
    (lambda: jnp.median([1, 2]), TypeError, "median takes arrays and scalars, got list"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f()
