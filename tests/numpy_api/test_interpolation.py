"""Piecewise linear interpolation: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_against_jax, check_compiled_together, check_gradients, check_mapped

XP = np.array([0, 1, 2.5, 4], np.float32)
FP = np.array([1, -1, 3, 0.5], np.float32)
X = np.array([[-1, 0, 0.5], [1, 2, 2.5], [3.9, 4, 7]], np.float32)

CALLS = [
    lambda xp, x: xp.interp(x, XP, FP),
    lambda xp, x: xp.interp(x, XP, FP, 8, -9.5),
    lambda xp, x: xp.interp(x, XP, FP, period=3.0),
    lambda xp, x: xp.interp(x, XP[::-1].copy(), FP, period=-5),
    lambda xp, x: xp.interp(x, XP[:1], FP[:1]),
    lambda xp, x: xp.interp(x, XP, (FP + 2j * FP[::-1]).astype(np.complex64)),
]
EXTRAPOLATED = lambda xp, x: xp.interp(x, XP, FP, left="extrapolate", right="extrapolate")


def test_values_and_types() -> None:
    for f in CALLS:
        check(f, X, rtol=1e-5)
        check(f, X[:0])
    check_against_jax(EXTRAPOLATED, X, rtol=1e-5)
    check_against_jax(
        lambda xp, x: xp.interp(x, np.arange(4, dtype=np.int8), np.array([3, 1, 4, 1], np.int16)), X, rtol=1e-5
    )
    check_against_jax(lambda xp: xp.interp(2, XP, FP))


def test_compiled_and_derivatives() -> None:
    check_compiled_together([*CALLS, EXTRAPOLATED], X, rtol=1e-5)
    check_mapped([*CALLS, EXTRAPOLATED], X, rtol=1e-5)
    inside = np.array([-2, 0.3, 1.7, 3, 9], np.float32)
    check_gradients([*CALLS[:2], EXTRAPOLATED], inside)
    check_gradients([lambda xp, fp: xp.interp(inside, XP, fp)], FP)
    check_gradients([lambda xp, at: xp.interp(inside, at, FP)], XP)
    rows = corejax.vmap(lambda x, fp: jnp.interp(x, XP, fp))(X, np.stack([FP, -FP, 2 * FP]))
    np.testing.assert_allclose(rows, [np.interp(x, XP, fp) for x, fp in zip(X, [FP, -FP, 2 * FP], strict=True)], 1e-5)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.interp(X, XP, FP[:2]), ValueError, r"one size, 1 or more, got f32\[4\] and f32\[2\]"),
        (lambda: jnp.interp(X, XP[:0], FP[:0]), ValueError, "1 or more"),
        (lambda: jnp.interp(X * 1j, XP, FP), ValueError, r"coordinates are real, got c64\[3,3\]"),
        (lambda: jnp.interp(X, XP, FP, "linear"), ValueError, "left is a number or 'extrapolate', got 'linear'"),
        (lambda: jnp.interp(X, XP, FP, period=XP), ValueError, "period is a scalar"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
