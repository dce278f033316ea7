"""Reductions that leave NaN out: values as NumPy's, dtypes and weak types as jax's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.numpy_api.oracle import (
    check,
    check_against_jax,
    check_compiled_together,
    check_gradients,
    check_mapped,
    check_types,
)

N = np.nan
X = np.array([[0.5, N, -1, 4], [N, N, N, N], [3, 3.5, 8, N]], np.float32)
MASK = np.array([[True, True, False, True], [True] * 4, [False, True, True, True]])
FOLDS = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]

CALLS = [
    *[lambda xp, x, f=f: getattr(xp, f)(x) for f in FOLDS],
    *[lambda xp, x, f=f: getattr(xp, f)(x, 1) for f in FOLDS],
    *[lambda xp, x, f=f: getattr(xp, f)(x, axis=(0, -1), keepdims=True) for f in FOLDS],
    *[lambda xp, x, f=f: getattr(xp, f)(x, 0, where=MASK) for f in FOLDS if f not in ("nanmax", "nanmin")],
    *[lambda xp, x, f=f: getattr(xp, f)(x, 0, where=MASK, initial=2) for f in FOLDS[:4]],
    lambda xp, x: xp.nanvar(x, 1, ddof=1),
    lambda xp, x: xp.nanstd(x, 1, ddof=3),
    lambda xp, x: xp.nancumsum(x),
    lambda xp, x: xp.nancumsum(x, 1, "float16"),
    lambda xp, x: xp.nancumprod(x, axis=0),
]
INDICES = [
    lambda xp, x: xp.nanargmax(x),
    lambda xp, x: xp.nanargmin(x, axis=0),
    lambda xp, x: xp.nanargmax(x, 1, keepdims=True),
    lambda xp, x: xp.nanargmin(x, keepdims=True),
]


def test_values_and_types() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for f in CALLS:
            check(f, X, rtol=1e-4)
        for f in INDICES:
            check(f, X[::2])
            check(f, np.array([[3, 1, 2], [0, 7, 1]], np.int8))


def test_of_other_dtypes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for f in CALLS[:-2]:
            check_types(f, X.astype(np.float16))
            check_types(f, MASK.astype(np.int8) * 3)
    for f in FOLDS[:2] + FOLDS[4:]:
        check(lambda xp, x: getattr(xp, f)(x), (X + 1j).astype(np.complex64), rtol=1e-4)  # noqa: B023
        check(lambda xp: getattr(xp, f)(2.5))  # noqa: B023


def test_nothing_but_nan() -> None:
    assert jnp.nanargmax(X, axis=1).tolist() == [3, -1, 2]
    with pytest.raises(ValueError, match=r"nanargmin of an empty sequence: f32\[2,0\] has no elements"):
        jnp.nanargmin(jnp.zeros((2, 0)), axis=1)
    check_against_jax(lambda xp, x: xp.nanmax(x, 1), X)


def test_compiled_and_derivatives() -> None:
    check_compiled_together([*CALLS[1::2], *INDICES], X, rtol=1e-4)
    check_mapped([*CALLS[::2], *INDICES], X, rtol=1e-4)
    check_gradients([CALLS[i] for i in (5, 8, 11, 12, 21, 24, 26, 34)], X, rtol=1e-3)


@pytest.mark.parametrize("name", [*FOLDS, "nancumsum", "nancumprod", "nanargmax", "nanargmin"])
def test_bad_input(name: str) -> None:
    f: Any = getattr(jnp, name)
    with pytest.raises(NotImplementedError, match=f"{name}: `out`"):
        f(X, out=X)
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        f(X, axis=2)
    with pytest.raises(TypeError, match=f"{name} takes arrays"):
        f([1.0])
