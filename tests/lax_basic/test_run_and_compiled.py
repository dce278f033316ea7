"""Run eagerly and compiled, operations give the same where booleans, zeros, infinities and NaN meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax

inf, nan = np.inf, np.nan


def assert_same(run: Any, compiled: Any, **names: Any) -> None:
    assert run.aval == compiled.aval, names
    a, b = np.asarray(run), np.asarray(compiled)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=str(names))
    np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=str(names))
    there = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a[there]), np.signbit(b[there]), err_msg=str(names))


FACTORS = [nan, inf, -inf, -0.0, 0.0, -2.5, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_booleans_among_floating_point_numbers_are_numbers(dtype: str) -> None:
    """A mask does not hide NaN: False * nan is nan, False / -0.0 is nan, False * -2 is -0.0."""
    mask = jnp.asarray(np.array([False, True] * len(FACTORS)))
    factors = jnp.asarray(np.repeat(FACTORS, 2), dtype)

    def products(mask: Any, factors: Any) -> list[Any]:
        constants = [f(mask, value) for value in FACTORS for f in (lambda m, v: m * v, lambda m, v: m / v)]
        return [mask * factors, mask / factors, mask // factors, mask.astype(dtype) * nan, *constants]

    for run, compiled in zip(products(mask, factors), corejax.jit(products)(mask, factors), strict=True):
        assert_same(run, compiled)
    assert np.isnan(products(mask, factors)[0][:4].tolist()).sum() == 3


def test_floor_division_and_remainder_of_what_is_tiny_or_infinite() -> None:
    tiny = 2e-38
    x = np.array([5, -5, 5, -5, tiny, -tiny, 3, -3, -tiny, 0.0, -0.0, inf, 7], np.float32)
    y = np.array([3, 3, -3, -3, -1e-10, 1e-10, inf, inf, -inf, -2, 2, 2, 0], np.float32)
    with np.errstate(all="ignore"):
        quotients, rests = np.floor_divide(x, y), np.remainder(x, y)
        infinite = np.isinf(x) | np.isinf(y)
        quotients[infinite] = np.floor(x / y)[infinite]  # as in the array API
    for f, expected in ((jnp.floor_divide, quotients), (jnp.remainder, rests)):
        for out in (f(jnp.asarray(x), jnp.asarray(y)), corejax.jit(f)(jnp.asarray(x), jnp.asarray(y))):
            np.testing.assert_array_equal(out, expected)


def test_square_roots_as_powers_of_every_sign_and_zero() -> None:
    x = jnp.asarray(np.array([-inf, -1, -0.0, 0.0, 4, inf, nan], np.float32))
    expected = np.array([inf, nan, 0, 0, 2, inf, nan], np.float32)
    for f in (lambda x: x**0.5, lambda x: lax.pow(x, 0.5)):
        assert_same(f(x), jnp.asarray(expected))
        assert_same(f(x), corejax.jit(f)(x))
        assert_same(f(x[1:]), corejax.jit(f)(x[1:]))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5, -1.5])
def test_derivatives_of_powers_with_constant_exponents(exponent: float) -> None:
    def of_constant(x: Any) -> Any:
        return x**exponent

    def of_argument(x: Any) -> Any:
        return corejax.jvp(lambda x, y: x**y, (x, exponent), (1.0, 0.0))[1]

    first, second = corejax.grad(of_constant), corejax.grad(corejax.grad(of_constant))
    for x in (0.0, 2.0):
        with np.errstate(divide="ignore"):
            expected = exponent and exponent * np.float64(x) ** (exponent - 1)
        for derivative in (first, corejax.jit(first), *([of_argument] if x else [])):
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-6)
        if x > 0:
            expected = exponent * (exponent - 1) * x ** (exponent - 2)
            np.testing.assert_allclose([second(x), corejax.jit(second)(x)], [expected] * 2, rtol=1e-6)
