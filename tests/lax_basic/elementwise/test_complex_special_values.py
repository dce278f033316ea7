"""Complex numbers with infinite, NaN, huge and tiny parts: run eagerly as compiled, up to signs of zeros."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax

inf, nan = np.inf, np.nan
SPECIAL = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan)
EXTREME = (*SPECIAL, "max", "tiny")  # the largest and the smallest normal number of the dtype
LARGE = (*SPECIAL, 1e12, 1e-12)  # whose products neither overflow nor underflow


def numbers(parts: Any, dtype: str) -> np.ndarray:
    limits = np.finfo(dtype)
    values = [float(getattr(limits, part)) if isinstance(part, str) else part for part in parts]
    return np.array([complex(*pair) for pair in itertools.product(values, values)], dtype)


def assert_same(run: Any, compiled: Any, *operands: Any) -> None:
    """NaN, infinities with their signs, and finite values to rounding, in each part of each element."""
    assert run.aval == compiled.aval
    run, compiled = np.asarray(run), np.asarray(compiled)
    eps = np.finfo(run.dtype).eps
    with np.errstate(all="ignore"):
        size = np.abs(run)
    slack = np.where(np.isfinite(size), 64 * eps * size, 0) + 4 * np.finfo(run.dtype).tiny
    for a, b in ((run.real, compiled.real), (run.imag, compiled.imag)):
        with np.errstate(all="ignore"):
            alike = (np.isnan(a) & np.isnan(b)) | (a == b) | (np.abs(a - b) <= np.maximum(slack, 64 * eps * np.abs(a)))
        wrong = np.flatnonzero(~alike)
        shown = [(*(x[i] for x in operands), run[i], compiled[i]) for i in wrong[:5]]
        assert not wrong.size, f"operands, run, compiled: {shown}"


UNARY: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{
        name: (getattr(lax, name), EXTREME)
        for name in (
            "neg", "real", "imag", "conj", "abs", "sign", "exp", "expm1", "log", "sqrt", "rsqrt", "sin", "cos", "tan",
            "tanh", "logistic",
        )
    },
    "log1p": (lax.log1p, LARGE),  # near -1 XLA squares the imaginary part
    "square": (lax.square, LARGE),
    "cube": (lambda x: lax.integer_pow(x, 3), SPECIAL),
    "reciprocal": (jnp.reciprocal, EXTREME),
    **{name: (getattr(lax, name), LARGE) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    **{name: (getattr(lax, name), EXTREME) for name in ("sinh", "cosh")},
    "zeroth_power": (lambda x: lax.integer_pow(x, 0), SPECIAL),
    "exp2": (jnp.exp2, LARGE),
    "log2": (jnp.log2, EXTREME),
    "log10": (jnp.log10, EXTREME),
    "sqrt_as_power": (lambda x: x**0.5, SPECIAL),
    "isinf": (jnp.isinf, EXTREME),
    "isfinite": (jnp.isfinite, EXTREME),
    "truth": (lambda x: x.astype(bool), EXTREME),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_complex_number(name: str) -> None:
    function, parts = UNARY[name]
    given = [jnp.asarray(numbers(parts, dtype)) for dtype in ("complex64", "complex128")]
    compiled = corejax.jit(lambda xs: [function(x) for x in xs])(given)
    for x, out in zip(given, compiled, strict=True):
        run = function(x)
        if run.dtype == bool:
            np.testing.assert_array_equal(run, out)
        else:
            assert_same(run, out, np.asarray(x))


BINARY: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "add": (lax.add, EXTREME),
    "sub": (lax.sub, EXTREME),
    "mul": (lax.mul, LARGE),
    "div": (lax.div, LARGE),
    "pow": (lax.pow, SPECIAL),
    "max": (lax.max, EXTREME),
    "min": (lax.min, EXTREME),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_complex_numbers(name: str, dtype: str) -> None:
    function, parts = BINARY[name]
    x = numbers(parts, dtype)
    x, y = np.repeat(x, x.size), np.tile(x, x.size)
    a, b = jnp.asarray(x), jnp.asarray(y)
    assert_same(function(a, b), corejax.jit(function)(a, b), x, y)


def test_scalars_and_empty_arrays_of_special_numbers() -> None:
    for value in (complex(inf, nan), complex(0, 0), complex(nan, inf)):
        x = jnp.asarray(np.complex64(value))
        for name in ("abs", "sign", "exp", "sin", "rsqrt"):
            function = getattr(lax, name)
            assert function(x).shape == ()
            assert function(jnp.zeros((0,), "complex64")).shape == (0,)
        assert lax.div(x, x).shape == lax.pow(x, x).shape == ()
        assert lax.div(x, jnp.zeros((0,), "complex64")).shape == (0,)


def test_a_zero_has_complex_powers() -> None:
    x, y = np.zeros(4, np.complex64), np.array([1 + 1j, 0.5 - 2j, 2, 0], np.complex64)
    for out in (lax.pow(jnp.asarray(x), jnp.asarray(y)), corejax.jit(lax.pow)(x, y)):
        np.testing.assert_array_equal(out, [0, 0, 0, 1])


def test_complex_log1p_and_expm1_are_accurate_near_zero() -> None:
    x = np.array([1e-12, 1e-9j, 3e-10 - 4e-11j, 0.3 + 0.2j, 2 - 5j, -0.4 + 0.1j])
    expected = [np.log1p(x.real * (2 + x.real) + x.imag**2) / 2 + 1j * np.arctan2(x.imag, 1 + x.real), np.expm1(x)]
    for function, values in zip((lax.log1p, lax.expm1), expected, strict=True):
        for dtype, rtol in (("complex64", 1e-6), ("complex128", 1e-14)):
            given = jnp.asarray(x.astype(dtype))
            for out in (function(given), corejax.jit(function)(given)):
                np.testing.assert_allclose(np.asarray(out), values, rtol=rtol)


@pytest.mark.parametrize(
    "name", ["exp", "expm1", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "atanh"]
)
def test_many_numbers_have_the_values_of_few(name: str) -> None:
    rng = np.random.default_rng(0)
    parts = np.float32([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-6, 20.0, 1e-30, np.pi / 2])
    special = np.array([complex(*pair) for pair in itertools.product(parts, parts)])
    circle = np.exp(1j * rng.uniform(0, 7, 300))
    x = np.concatenate([special, circle, rng.standard_normal(300) * 3 + 1j * rng.standard_normal(300)])
    x = x.astype(np.complex64)
    function = getattr(lax, name)
    many, few = np.asarray(function(x)), np.concatenate([function(x[:400]), function(x[400:])])
    np.testing.assert_array_equal(np.isfinite(many), np.isfinite(few))
    for got, wanted in ((many.real, few.real), (many.imag, few.imag)):
        got, wanted, size = (v[np.isfinite(few)] for v in (got, wanted, np.abs(few)))
        assert (np.abs(got - wanted) <= 8 * np.finfo(np.float32).eps * size).all()
        zero = (got == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))
