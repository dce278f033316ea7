"""Covariances and correlations: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together, check_gradients, check_mapped

X = np.array([[0.5, 2, -1, 4], [3, 3.5, 8, 1], [0, -7, 2, 2]], np.float32)
W = np.array([1, 3, 2, 4], np.int32)
A = np.array([0.5, 1, 2, 1.5], np.float32)

CALLS = [
    lambda xp, x: xp.cov(x),
    lambda xp, x: xp.cov(x, rowvar=False),
    lambda xp, x: xp.cov(x, x[:2] * 2),
    lambda xp, x: xp.cov(x[0], x[1]),
    lambda xp, x: xp.cov(x.T, x[:1].T, rowvar=False),
    lambda xp, x: xp.cov(x[0]),
    lambda xp, x: xp.cov(x, bias=True),
    lambda xp, x: xp.cov(x, None, True, False, 2),
    lambda xp, x: xp.cov(x, fweights=W),
    lambda xp, x: xp.cov(x, aweights=A),
    lambda xp, x: xp.cov(x, ddof=0, aweights=A),
    lambda xp, x: xp.cov(x, fweights=W, aweights=A),
    lambda xp, x: xp.cov(x, ddof=2, fweights=W, aweights=A),
    lambda xp, x: xp.corrcoef(x),
    lambda xp, x: xp.corrcoef(x, x[:1] + x[1:2], rowvar=True),
    lambda xp, x: xp.corrcoef(x[0]),
    lambda xp, x: xp.corrcoef(x, rowvar=False),
]


def test_values_and_types() -> None:
    for f in CALLS:
        check(f, X, rtol=1e-4)
    for f in CALLS[:14]:
        check(f, (X + 1j * X[::-1]).astype(np.complex64), rtol=1e-4)
    for x in (W, W > 1):
        check(lambda xp, x: xp.cov(x), x, rtol=1e-4)
    check(lambda xp, x: xp.cov(x, dtype="float32"), W, rtol=1e-4)
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        expected = np.cov(X, ddof=99)
    np.testing.assert_array_equal(jnp.cov(X, ddof=99), expected)  # infinite: nothing is left to divide by
    assert np.isnan(jnp.cov(X[:, :0])).all() and jnp.cov(X[:0]).shape == (0, 0)


def test_compiled_and_derivatives() -> None:
    check_compiled_together(CALLS[::2], X, rtol=1e-4)
    check_mapped(CALLS[1::3], X, rtol=1e-4)
    check_gradients([CALLS[i] for i in (2, 5, 11, 14)], X, rtol=2e-3)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.cov(X[None]), ValueError, r"cov: m has one or two axes, got f32\[1,3,4\]"),
        (lambda: jnp.corrcoef(X, X[None]), ValueError, "corrcoef: y has"),
        (lambda: jnp.cov(X, dtype=int), ValueError, "cov: dtype must be a subclass of float"),
        (lambda: jnp.cov(X, fweights=A), TypeError, "fweights are integers"),
        (lambda: jnp.cov(X, fweights=W[:2]), ValueError, r"fweights is a vector of 4 weights, got i32\[2\]"),
        (lambda: jnp.cov(X, aweights=X), ValueError, "aweights is a vector of 4"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
