"""Means and variances with all of their arguments: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_against_jax, check_compiled_together, check_gradients, check_mapped

X = np.array([[0.5, 2, -1, 4], [3, 3.5, 8, 1], [0, -7, 2, 2]], np.float32)
MASK = np.array([True, False, True, True])
W = np.array([1, 3, 2, 4], np.float32)

CALLS = [
    lambda xp, x: xp.mean(x, 0, "float32", None, True),
    lambda xp, x: xp.mean(x, axis=1, where=MASK),
    lambda xp, x: xp.var(x, 0, "float32", None, 1, True),
    lambda xp, x: xp.std(x, None, None, None, 0, True),
    lambda xp, x: xp.var(x, 1, where=MASK, keepdims=True),
    lambda xp, x: xp.average(x, 1, W),
    lambda xp, x: xp.average(x, -1, W, True),
    lambda xp, x: xp.average(x, returned=True),
    lambda xp, x: xp.average(x, axis=1, returned=True, keepdims=True),
    lambda xp, x: xp.average(x, (1, 0), x.T * x.T),
    lambda xp, x: xp.average(x, axis=0, weights=x * x, keepdims=True),
]
IN_NUMPY_2 = [
    lambda xp, x: xp.var(x, 1, correction=1),
    lambda xp, x: xp.std(x, 1, mean=xp.mean(x, axis=1, keepdims=True)),
    lambda xp, x: xp.var(x, mean=xp.zeros((1, 1), x.dtype)),
]


def test_values_and_types() -> None:
    for f in [*CALLS, *(IN_NUMPY_2 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else [])]:
        check(f, X, rtol=1e-4)
        check(f, X.astype(np.int32), rtol=1e-4)
        check(f, X.astype(np.float16), rtol=3e-3)
    for f in CALLS[:8]:
        if f not in (CALLS[0], CALLS[2]):
            check(f, (X + 2j * X[::-1]).astype(np.complex64), rtol=1e-4)


def test_all_arguments_of_sums() -> None:
    calls = [
        lambda xp, x: xp.sum(x, 0, None, None, True, 2, MASK),
        lambda xp, x: xp.prod(x, 0, "float32", None, False, 3, MASK),
        lambda xp, x: xp.max(x, 0, None, True, 1, MASK),
        lambda xp, x: xp.min(x, None, None, False, -1, MASK),
        lambda xp, x: xp.any(x, 0, None, True, where=MASK),
        lambda xp, x: xp.all(x, 1, None, where=MASK),
        lambda xp, x: xp.argmax(x, 0, None, keepdims=True),
        lambda xp, x: xp.ptp(x, 0, None, True),
        lambda xp, x: xp.cumsum(x, 0, None, None),
        lambda xp, x: xp.cumprod(x, None, bool),
        lambda xp, x: xp.sum(x, dtype=bool),
    ]
    for x in (X, X.astype(np.int8)):
        for f in calls:
            check(f, x, rtol=1e-4)
    for x in (X, X.astype(np.int8), X > 0):
        check_against_jax(lambda xp, x: xp.sum(x, promote_integers=False), x)
        check_against_jax(lambda xp, x: xp.prod(x, 1, promote_integers=False), x)
    check_compiled_together(calls, X)
    check_mapped(CALLS, X, rtol=1e-4)


def test_means_that_are_large_integers_are_exact() -> None:
    for dtype in (np.int32, np.uint32):
        x = np.array([2**24 + 1, np.iinfo(dtype).max - 1], dtype)
        for f in (jnp.mean, jnp.nanmean):
            for compute in (f, corejax.jit(f, static_argnames=("axis", "dtype"))):
                found = compute(x[None], axis=0, dtype=dtype)
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, x)
        assert jnp.mean(x, dtype=dtype) == int(x[0]) // 2 + int(x[1]) // 2


def test_equality_of_arrays() -> None:
    a = np.array([1, np.nan], np.float32)
    check(lambda xp: xp.array_equal(a, a))
    check(lambda xp: xp.array_equal(a, a, True))
    check(lambda xp: xp.array_equal(a, a[:1], equal_nan=True))
    check(lambda xp: xp.array_equiv(X, X[:1]))
    check(lambda xp: xp.array_equiv(X[:1], np.broadcast_to(X[:1], X.shape)))
    assert not jnp.array_equiv(X, X[:2])


def test_compiled_and_derivatives() -> None:
    check_compiled_together([*CALLS, *IN_NUMPY_2], X, rtol=1e-4)
    check_gradients([CALLS[i] for i in (1, 2, 4, 6, 9)], X, rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.sum(X, where=W), ValueError, r"sum: `where` is a boolean array, got f32\[4\]"),
        (lambda: jnp.mean(X, where=MASK[:3]), ValueError, r"mean: `where` has shape \(3,\)"),
        (lambda: jnp.sum(X, initial=W), ValueError, r"sum: `initial` is a scalar, got f32\[4\]"),
        (lambda: jnp.max(X, 0, X), NotImplementedError, "max: `out`"),
        (lambda: jnp.std(X, dtype=int), ValueError, "std: the dtype is floating or complex, got int32"),
        (lambda: jnp.var(X + 1j, dtype="float32"), ValueError, "var: .*complex"),
        (lambda: jnp.var(X, ddof=1, correction=1), ValueError, "two names"),
        (lambda: jnp.var(X, mean=W[:3]), ValueError, r"var: `mean` .* got f32\[3\]"),
        (lambda: jnp.average(X, weights=W), ValueError, "need an axis"),
        (lambda: jnp.average(X, 0, W), ValueError, r"average: weights .* got \(4,\)"),
        (lambda: jnp.average(X, 3), ValueError, "axis 3"),
        (lambda: jnp.argmax(X, 1.5), TypeError, "argmax: axis is an integer, got 1.5"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("left_out", [np.inf, np.nan, 5.0])
@pytest.mark.parametrize("f", [jnp.std, jnp.var])
def test_what_does_not_count_has_no_part_in_gradients(f: Any, left_out: float) -> None:
    x, where = jnp.array([left_out, 1.0, 2.0, 4.0]), jnp.array([False, True, True, True])
    found = corejax.grad(lambda x: f(x, where=where))(x)
    expected = corejax.grad(lambda x: f(x, where=None))(x[1:])
    np.testing.assert_allclose(np.asarray(found), [0, *np.asarray(expected)], rtol=1e-5, atol=1e-7)
