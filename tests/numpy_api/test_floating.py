"""Signs, mantissas, neighbours, rounding: values NumPy's, types jax's, in every floating dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled, check_types

FLOATS = ["float16", "bfloat16", "float32", "float64"]
SMALL = ["float8_e5m2", "float8_e4m3fn", "float8_e3m4"]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 2.5, -0.5, 3.5, 1e-4, 100.25, np.inf, -np.inf, np.nan]


def special(dtype: str) -> np.ndarray:
    """Extreme values of a dtype: subnormal, normal, largest, infinite."""
    scalar = jnp.dtype(dtype)
    info = jnp.finfo(dtype)
    more = [info.smallest_subnormal, -info.smallest_normal, info.max, info.min, info.eps]
    with np.errstate(all="ignore"):
        return np.array([*SPECIAL, *map(float, more)]).astype(scalar)


def same(x: Any, y: Any) -> None:
    """Equal, signs of zeros included."""
    x, y = (np.asarray(v).astype(np.float64) for v in (x, y))
    np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(np.signbit(x), np.signbit(y) | (np.isnan(x) & np.signbit(x)))


@pytest.mark.parametrize("dtype", [*FLOATS, *SMALL])
def test_parts_of_every_floating_dtype(dtype: str) -> None:
    x = special(dtype)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(jnp.signbit(x), np.signbit(x))
    mantissa, exponent = jnp.frexp(x)
    assert mantissa.dtype == x.dtype and exponent.dtype == np.int32
    expected = np.frexp(wide)
    same(mantissa, expected[0])
    np.testing.assert_array_equal(exponent, np.where(np.isfinite(wide), expected[1], 0))
    same(jnp.ldexp(mantissa, exponent), wide)
    same(jnp.copysign(x, -x), (-x).astype(np.float64))
    same(jnp.fabs(x), np.abs(wide))
    fraction, whole = jnp.modf(x)
    finite = np.isfinite(wide)
    same(np.asarray(whole)[finite], np.trunc(wide)[finite])
    np.testing.assert_array_equal(np.asarray(fraction + whole).astype(float)[finite], wide[finite])


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp_rounds_once(dtype: str) -> None:
    x = special(dtype)
    for exponent in (-3, -1000, 2000, 7):
        with np.errstate(all="ignore"):
            expected = np.ldexp(x.astype(np.float64), exponent).astype(x.dtype)
        same(jnp.ldexp(x, exponent), expected)
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1, 200).astype(x.dtype)
    smallest = int(np.log2(float(jnp.finfo(dtype).smallest_subnormal)))
    powers = rng.integers(smallest - 2, smallest + 12, 200)
    exact = np.ldexp(x.astype(np.float64), powers).astype(x.dtype)
    same(jnp.ldexp(x, powers.astype(np.int32)), exact)


def test_ldexp_takes_every_integer_dtype() -> None:
    for dtype in ("bool", "int8", "uint8", "int16", "uint32", "int32"):
        y = np.array([0, 1], dtype)
        check_types(lambda xp, x, y: xp.ldexp(x, y), np.array([1.5, 3.0], np.float32), y)
        np.testing.assert_array_equal(jnp.ldexp(jnp.array([1.5, 3.0]), y), [1.5, 6.0])
    np.testing.assert_array_equal(jnp.ldexp(3, jnp.array([0, 1])), [3.0, 6.0])
    with pytest.raises(ValueError, match=r"ldexp takes real numbers and integers, got f32\[\]"):
        jnp.ldexp(jnp.float32(1), 2.0)


@pytest.mark.parametrize("name", ["copysign", "fmax", "fmin", "heaviside", "nextafter"])
def test_functions_of_two_numbers(name: str) -> None:
    x, y = (v.ravel() for v in np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32)))
    (ours,) = check_types(lambda xp, x, y: getattr(xp, name)(x, y), x, y)
    np.testing.assert_array_equal(ours, getattr(np, name)(x, y))
    check_types(lambda xp, x: getattr(xp, name)(x, 1), x)
    check_types(lambda xp, x: getattr(xp, name)(x, x.astype("int8")), np.arange(3, dtype=np.float16))
    check_types(lambda xp: getattr(xp, name)(1, 2.0))


@pytest.mark.parametrize("decimals", [0, 2, -1, 400])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_round(dtype: str, decimals: int) -> None:
    x = np.array([0.5, 1.5, -2.5, 12.346, 15.0, 25.0, -0.1], dtype)
    (ours,) = check_types(lambda xp, x: xp.round(x, decimals), x)
    expected = x if decimals > 30 else np.round(x.astype(np.float32 if dtype == "float16" else dtype), decimals)
    np.testing.assert_allclose(ours, expected, rtol=1e-3 if dtype == "float16" else 1e-6)
    assert jnp.around is jnp.round


def test_rounding_of_integers() -> None:
    x = np.arange(-3, 4, dtype=np.int32)
    check(lambda xp, x: xp.round(x), x)
    check_types(lambda xp, x: xp.rint(x), x)
    check(lambda xp, x: xp.rint(x), np.array(SPECIAL, np.float32))
    with pytest.raises(NotImplementedError, match="decimals=-1"):
        jnp.round(x, -1)
    with pytest.raises(NotImplementedError, match="`out` is not supported"):
        jnp.round(x, out=x)
    with pytest.raises(TypeError):
        jnp.round(x, 1.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_spacing(dtype: str) -> None:
    x = special(dtype)
    x = x[np.isfinite(x)]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.abs(jnp.spacing(x)), np.abs(np.spacing(x)))


def test_nan_to_num() -> None:
    x = np.array(SPECIAL, np.float32)
    check(lambda xp, x: xp.nan_to_num(x), x)
    check(lambda xp, x: xp.nan_to_num(x, nan=1, posinf=2.5, neginf=-3), x)
    found = jnp.nan_to_num(np.array([-np.inf, np.nan, np.inf]), nan=np.inf, posinf=-np.inf, neginf=5)
    assert found.tolist() == [5, np.inf, -np.inf]  # each is replaced once
    check(lambda xp, x: xp.nan_to_num(x), np.array([complex(np.nan, np.inf), complex(-np.inf, 1)], np.complex64))
    check(lambda xp, x: xp.nan_to_num(x), np.arange(3, dtype=np.int32))
    np.testing.assert_array_equal(jnp.nan_to_num(x[-1:], nan=jnp.float32(7)), [7])


def test_infinities() -> None:
    x = np.array(SPECIAL, np.float32)
    check(lambda xp, x: [xp.isposinf(x), xp.isneginf(x)], x)
    check(lambda xp, x: [xp.isposinf(x), xp.isneginf(x)], np.arange(3))
    for f in (jnp.isposinf, jnp.isneginf, jnp.signbit):
        with pytest.raises(ValueError, match="takes real numbers"):
            f(jnp.ones(2, complex))


def test_compiled_and_vectorized() -> None:
    x = np.array(SPECIAL[2:9], np.float32)

    def f(xp: Any, x: Any) -> Any:
        powers = xp.arange(7)
        return [xp.ldexp(x, powers), *xp.frexp(x), xp.copysign(x, -x), xp.round(x, 1), *xp.modf(x), xp.spacing(x)]

    check_compiled(f, x)
    rows = corejax.vmap(lambda x: jnp.frexp(x)[0])(x.reshape(7, 1))
    np.testing.assert_array_equal(rows[:, 0], np.frexp(x)[0])


def test_derivatives() -> None:
    x = jnp.array([3.0, -0.7, 1e-3, 100.0])
    np.testing.assert_array_equal(
        corejax.vmap(corejax.grad(lambda x: jnp.frexp(x)[0]))(x), np.exp2(-np.frexp(np.asarray(x))[1])
    )
    np.testing.assert_array_equal(corejax.vmap(corejax.grad(lambda x: jnp.ldexp(x, 3)))(x), np.full(4, 8.0))
    np.testing.assert_array_equal(corejax.vmap(corejax.grad(lambda x: jnp.copysign(x, -1.0)))(x), -np.sign(x))
    np.testing.assert_array_equal(corejax.vmap(corejax.grad(lambda x: jnp.modf(x)[0]))(x), np.ones(4))
    hessian = corejax.vmap(corejax.grad(corejax.grad(lambda x: jnp.frexp(x)[0] ** 2)))(x)
    np.testing.assert_allclose(hessian, 2 * np.exp2(-2.0 * np.frexp(np.asarray(x))[1]))


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match=r"copysign takes real numbers, got c64\[2\]"):
        jnp.copysign(jnp.ones(2, complex), 1)
    with pytest.raises(TypeError, match="frexp takes real numbers"):
        jnp.frexp(1j)
    with pytest.raises(TypeError, match="at position 0"):
        jnp.frexp([1.0])
    assert ml_dtypes.bfloat16 == jnp.frexp(jnp.bfloat16(2))[0].dtype
