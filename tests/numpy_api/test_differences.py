"""Differences, gradients, integrals, phases: values as NumPy's, types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together, check_gradients, check_mapped

X = np.array([[0.5, 2, -1, 4], [3, 3.5, 8, 1], [0, -7, 2, 2]], np.float32)
I = np.array([[5, 2, -1, 4], [3, 3, 8, 1], [0, -7, 2, 2]], np.int32)
T = np.array([0, 1, 2.5, 3], np.float32)
trapezoid = getattr(np, "trapezoid", None) or np.trapz  # NumPy 2 has the former

DIFFERENCES = [
    lambda xp, x: xp.diff(x),
    lambda xp, x: xp.diff(x, 2, 0),
    lambda xp, x: xp.diff(x, 0),
    lambda xp, x: xp.diff(x, 3),
    lambda xp, x: xp.diff(x, n=5, axis=1),
    lambda xp, x: xp.diff(x, prepend=0, append=x),
    lambda xp, x: xp.diff(x, axis=0, prepend=x[:1]),
    lambda xp, x: xp.ediff1d(x),
    lambda xp, x: xp.ediff1d(x, np.array([8, 9], x.dtype), np.array([[7]], x.dtype)),
]
SLOPES = [
    lambda xp, x: xp.gradient(x),
    lambda xp, x: xp.gradient(x, axis=1),
    lambda xp, x: xp.gradient(x, 2.0, axis=(0, -1)),
    lambda xp, x: xp.gradient(x, 0.5, 2.0),
    lambda xp, x: xp.gradient(x, T, axis=1),
    lambda xp, x: xp.gradient(x, 2.0, T),
    lambda xp, x: xp.gradient(x, axis=()),
    lambda xp, x: xp.gradient(x[:2], axis=0),
]
INTEGRALS = [
    lambda xp, x: (trapezoid if xp is np else xp.trapezoid)(x),
    lambda xp, x: (trapezoid if xp is np else xp.trapezoid)(x, dx=0.5, axis=0),
    lambda xp, x: (trapezoid if xp is np else xp.trapezoid)(x, T),
    lambda xp, x: (trapezoid if xp is np else xp.trapezoid)(x[0], x * 2),
    lambda xp, x: (trapezoid if xp is np else xp.trapezoid)(x, x * 2, 1.0, 0),
]
PHASES = [
    lambda xp, x: xp.unwrap(x),
    lambda xp, x: xp.unwrap(x, axis=0),
    lambda xp, x: xp.unwrap(x, 5.0),
]


def test_of_floats() -> None:
    for f in [*DIFFERENCES, *SLOPES, *INTEGRALS, *PHASES]:
        check(f, X, rtol=1e-5)


def test_of_other_dtypes() -> None:
    for f in DIFFERENCES:
        check(f, I)
        check(f, X + 1j)
    for f in [*SLOPES, *INTEGRALS]:
        check(f, (I / 4).astype(np.float16), rtol=2e-3)
    check(lambda xp, x: xp.gradient(x), I)
    check(lambda xp, x: xp.diff(x, axis=0), X > 2)
    check(lambda xp, x: xp.diff(x), np.array([3, 1, 2], np.uint8))
    for period in (4, 5):
        check(lambda xp, x: xp.unwrap(x, period=period), I)  # noqa: B023
        check(lambda xp, x: xp.unwrap(x, period=period, discont=3), I)  # noqa: B023


def test_of_few_elements() -> None:
    for n in (0, 1):
        x = np.ones((n,), np.float32)
        check(lambda xp, x: xp.diff(x), x)
        check(lambda xp, x: xp.unwrap(x), x)
        check(lambda xp, x: xp.ediff1d(x), x)
        assert jnp.trapezoid(x) == 0


def test_an_integral_of_small_floats_is_halved_before_it_overflows() -> None:
    assert jnp.trapezoid(np.full(5, 15000, np.float16)) == 60000


def test_compiled_and_derivatives() -> None:
    calls = [*DIFFERENCES, *SLOPES[:6], *INTEGRALS, *PHASES]
    check_compiled_together(calls[::2], X, rtol=1e-5)
    check_mapped(calls, X, rtol=1e-5)
    check_gradients([*DIFFERENCES[5:], *SLOPES[2:6], *INTEGRALS[2:], *PHASES[:1]], X)


def test_a_jump_of_half_a_period_keeps_its_sign() -> None:
    for steps in ([0, np.pi], [0, -np.pi], [0, 2 * np.pi, 0], [0, 3, 6, 9.5]):
        check(lambda xp: xp.unwrap(xp.asarray(np.array(steps, np.float32))), rtol=1e-5)  # noqa: B023


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.diff(X, -1), ValueError, "n=-1"),
        (lambda: jnp.diff(1.0), ValueError, r"diff takes .* got f32\[\]"),
        (lambda: jnp.diff(X, axis=2), ValueError, "diff: axis 2"),
        (lambda: jnp.ediff1d(X > 1), TypeError, "ediff1d .* booleans"),
        (lambda: jnp.gradient(X, edge_order=2), NotImplementedError, "edge_order=2"),
        (lambda: jnp.gradient(X, 1.0, 2.0, 3.0), TypeError, "one spacing, or one for each of 2 axes, got 3"),
        (lambda: jnp.gradient(X, T), ValueError, r"axis 0 of f32\[3,4\].* 3 coordinates; got f32\[4\]"),
        (lambda: jnp.gradient(X[:1]), ValueError, "2 points or more"),
        (lambda: jnp.trapezoid(X, T, axis=0), ValueError, "trapezoid: Incompatible shapes"),
        (lambda: jnp.trapezoid(X, 0.5), ValueError, r"trapezoid: `x` must have .* axis.*use `dx` for a distance"),
        (lambda: jnp.unwrap(X + 1j), TypeError, r"real numbers, got c64\[3,4\]"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize(("shape", "axis"), [((3,), -1), ((4,), 0), ((3, 1), 1), ((2, 4), 0), ((3, 3), 1)])
def test_distances_broadcast_with_pairs_of_neighbours(shape: tuple[int, ...], axis: int) -> None:
    dx = np.random.RandomState(0).rand(*shape).astype(np.float32)
    np.testing.assert_allclose(jnp.trapezoid(X, dx=dx, axis=axis), trapezoid(X, dx=dx, axis=axis), rtol=1e-6)
