"""Elementwise functions of one operand: values, derivatives, batching, compiled, errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corejax
from corejax.extend import dtypes
from corejax_lax_basic import lax
from tests.lax_basic.support import (
    BFLOAT16,
    assert_same,
    check_derivatives,
    check_vmap,
    compiled,
    dtypes_of,
    extremes,
    few_dtypes,
    jax,
    kind_of,
    sample,
)

__all__ = ["jax"]


class Row(NamedTuple):
    """A function, the kinds of dtype it takes, and where its derivatives are compared."""

    name: str
    kinds: str
    low: float = -2.0
    high: float = 2.0
    smooth: bool = True


ROWS = [
    Row("neg", "iufc"),
    Row("abs", "ifc"),
    Row("sign", "iufc"),
    Row("floor", "f"),
    Row("ceil", "f"),
    Row("is_finite", "f", smooth=False),
    Row("exp", "fc"),
    Row("expm1", "fc"),
    Row("log", "fc", 0.1),
    Row("log1p", "fc", -0.7),
    Row("sqrt", "fc", 0.1),
    Row("rsqrt", "fc", 0.2),
    Row("sin", "fc"),
    Row("cos", "fc"),
    Row("tan", "fc", -1.0, 1.0),
    Row("tanh", "fc"),
    Row("logistic", "fc"),
    Row("square", "iufc"),
    Row("reciprocal", "fc", 0.2),
    Row("exp2", "fc"),
    Row("cbrt", "f", 0.1),
    Row("sinh", "fc"),
    Row("cosh", "fc"),
    Row("asin", "fc", -0.9, 0.9),
    Row("acos", "fc", -0.9, 0.9),
    Row("atan", "fc"),
    Row("asinh", "fc"),
    Row("acosh", "fc", 1.1, 3.0),
    Row("atanh", "fc", -0.9, 0.9),
    Row("round", "f"),
]
ours = {row.name: getattr(lax, row.name) for row in ROWS}
each_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


@each_row
def test_values_of_every_dtype(row: Row, jax: Any) -> None:
    dtypes = [dtype for dtype in dtypes_of(row.kinds) if row.name != "exp2" or dtype != BFLOAT16]  # JAX multiplies by
    xs = [np.concatenate([extremes(dtype), sample(dtype, (8,))]) for dtype in dtypes]  # log(2) in 16 bits
    theirs = jax.jit(lambda xs: [getattr(jax.lax, row.name)(x) for x in xs])(xs)
    for dtype, x, expected in zip(dtypes, xs, map(np.asarray, theirs), strict=True):
        with np.errstate(all="ignore"):
            got = np.asarray(ours[row.name](x))
        assert got.dtype == expected.dtype
        if dtype.kind == "c":  # XLA and NumPy differ in what they make of infinite parts
            finite = np.isfinite(expected) & np.isfinite(got)
            assert finite.sum() >= 12
            got, expected = got[finite], expected[finite]
        assert_same(got, expected, atol=2e-5 if dtype.name in ("float32", "complex64") else None)


@each_row
def test_shapes_scalars_and_no_elements(row: Row) -> None:
    for dtype in dtypes_of(row.kinds):
        for shape in [(), (0,), (2, 0, 3), (2, 1)]:
            x = sample(dtype, shape, low=0.2)
            got = ours[row.name](x)
            assert got.shape == np.asarray(got).shape == shape
            assert np.asarray(got).dtype == got.dtype
            promised = corejax.eval_shape(ours[row.name], x)
            assert (promised.shape, promised.dtype) == (got.shape, got.dtype)


@each_row
def test_derivatives_real(row: Row, jax: Any) -> None:
    if not row.smooth:
        pytest.skip("the result is boolean")
    x = sample(np.float64, (5,), low=row.low, high=row.high)
    check_derivatives(jax, ours[row.name], getattr(jax.lax, row.name), x)


@pytest.mark.parametrize("row", [r for r in ROWS if "c" in r.kinds and r.name != "sign"], ids=lambda r: r.name)
def test_derivatives_complex(row: Row, jax: Any) -> None:
    x = sample(np.complex128, (5,), low=0.2, high=1.0)
    check_derivatives(jax, ours[row.name], getattr(jax.lax, row.name), x)


def test_derivative_of_complex_sign_is_that_of_the_direction() -> None:
    """z/|z| turns with z; JAX takes its derivative to be zero."""
    z, t = np.array([1 + 1j, -2j, 0.3 - 4j]), np.array([0.7 - 0.2j, 1 + 1j, -0.4 + 2j])
    primal, tangent = corejax.jvp(lax.sign, (z,), (t,))
    h = 1e-6
    wanted = ((z + h * t) / np.abs(z + h * t) - (z - h * t) / np.abs(z - h * t)) / (2 * h)
    np.testing.assert_allclose(np.asarray(primal), z / np.abs(z))
    np.testing.assert_allclose(np.asarray(tangent), wanted, atol=1e-8)
    _, at_zero = corejax.jvp(lax.sign, (np.zeros(1, complex),), (np.ones(1, complex),))
    assert np.asarray(at_zero) == 0
    assert np.asarray(corejax.grad(lambda x: lax.sign(x))(2.0)) == 0


@each_row
def test_vmap(row: Row) -> None:
    check_vmap(ours[row.name], (2,), low=0.2)


def test_compiled_agrees_with_eager() -> None:
    for dtype in few_dtypes("iufc"):
        kind = kind_of(dtype)
        functions = [ours[row.name] for row in ROWS if kind in row.kinds]
        x = np.concatenate([extremes(dtype), sample(dtype, (6,))])
        if kind == "c":
            x = sample(dtype, (9,))
        got = compiled(lambda x, fs=functions: [f(x) for f in fs])(x)
        for function, value in zip(functions, got, strict=True):
            assert_same(value, np.asarray(function(x)), atol=2e-5 if dtype.name in ("float32", "complex64") else None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, dtypes.bfloat16])
def test_the_sign_of_zeros_and_nan(dtype: Any) -> None:
    x = np.array([-0.0, 0.0, np.nan, -5.0]).astype(dtype)
    for got in (lax.sign(x), corejax.jit(lax.sign)(x)):
        got = np.asarray(got).astype(float)
        np.testing.assert_array_equal(got, np.sign(x.astype(float)))
        assert not np.signbit(got[:2]).any()


def test_sixteen_bits_round_once() -> None:
    for dtype in dtypes_of("f")[:2]:
        x = sample(dtype, (200,), low=0.1, high=4.0)
        for name in ("logistic", "rsqrt"):
            wide = np.asarray(ours[name](x.astype(np.float32)))
            np.testing.assert_array_equal(np.asarray(ours[name](x)), wide.astype(dtype))


def test_weak_type_is_kept() -> None:
    assert lax.sin(1.0).weak_type
    assert lax.neg(1).weak_type
    assert not lax.sin(np.float32(1)).weak_type
    assert not lax.is_finite(1.0).weak_type


def test_logistic_does_not_overflow() -> None:
    x = np.array([-1e4, -90, 0, 90, 1e4], np.float32)
    assert_same(lax.logistic(x), np.array([0, 0, 0.5, 1, 1], np.float32), atol=1e-30)


def test_tangents_take_one_operation() -> None:
    """What linearising has to record; all else is known."""
    for name in ("sin", "cos", "tan", "tanh", "logistic", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "abs"):
        _, linear = corejax.linearize(ours[name], np.float32(0.5))
        eqns = corejax.make_jaxpr(linear)(np.float32(1)).jaxpr.eqns
        assert len(eqns) == 1, name


def test_stop_gradient() -> None:
    x = np.float64(3)
    assert float(corejax.grad(lambda x: lax.mul(x, lax.stop_gradient(x)))(x)) == 3.0
    tree = {"a": np.float32(1), "b": (2, "text")}
    assert lax.stop_gradient(tree)["b"] == (2, "text")
    jaxpr = corejax.make_jaxpr(lambda x: lax.stop_gradient(x))(x)
    assert "stop_gradient" in str(jaxpr)
    assert_same(corejax.vmap(lax.stop_gradient)(np.arange(3.0)), np.arange(3.0))


# -- complex numbers ---------------------------------------------------------------------------------------------

PARTS = [
    ("real", lax.real, "c"),
    ("imag", lax.imag, "c"),
    ("conj", lax.conj, "c"),
    ("conj", lax.conj, "f"),
]


@pytest.mark.parametrize(("name", "function", "kind"), PARTS)
def test_parts(name: str, function: Any, kind: str, jax: Any) -> None:
    x = sample(np.complex128 if kind == "c" else np.float64, (2, 3))
    theirs = getattr(jax.lax, name)
    assert_same(function(x), theirs(x))
    assert_same(compiled(function)(x), theirs(x))
    if kind == "c":
        check_derivatives(jax, function, theirs, x)
        check_vmap(function, (2,), dtypes=np.complex64)


def test_complex_from_parts(jax: Any) -> None:
    x, y = sample(np.float64, (3,)), sample(np.float64, (3,), seed=1)
    check_derivatives(jax, lax.complex, jax.lax.complex, x, y)
    check_vmap(lax.complex, (2,), (2,))
    check_vmap(lax.complex, (2,), ())
    assert_same(lax.complex(x, 0.0), x.astype(np.complex128))
    assert_same(compiled(lax.complex)(x, y), x + 1j * y)


def test_scalar_part_gets_the_sum_of_cotangents() -> None:
    _, pull = corejax.vjp(lax.complex, np.float64(1), np.arange(3.0))
    x_bar, y_bar = pull(np.array([1 + 2j, 3 + 4j, 5j]))
    assert_same(x_bar, np.float64(4))
    assert_same(y_bar, np.array([-2.0, -4.0, -5.0]))


def test_complex_function_through_parts(jax: Any) -> None:
    def function(lax: Any, number: Any) -> Any:
        return lambda z: number.mul(lax.abs(z), number.real(lax.exp(number.conj(z))))

    class Ours:
        mul = staticmethod(lax.mul)
        real = staticmethod(lax.real)
        conj = staticmethod(lax.conj)

    x = sample(np.complex128, (4,), low=0.3, high=1.5)
    check_derivatives(jax, function(lax, Ours), function(jax.lax, jax.lax), x)


# -- errors ------------------------------------------------------------------------------------------------------

BAD = [
    (lax.sin, np.int32(1), "sin does not accept dtype int32; expects a floating-point or complex dtype"),
    (lax.neg, np.bool_(True), "neg does not accept dtype bool; expects an integer, floating-point or complex dtype"),
    (lax.floor, np.complex64(1), "floor does not accept dtype complex64; expects a floating-point dtype"),
    (lax.is_finite, np.int8(1), "is_finite does not accept dtype int8"),
    (lax.real, np.float32(1), "real does not accept dtype float32; expects a complex dtype"),
    (lax.exp, "text", "operand of primitive 'exp'.*not an array"),
    (lax.exp, [1.0], "operand of primitive 'exp'.*not an array"),
]


@pytest.mark.parametrize(("function", "x", "message"), BAD)
def test_errors(function: Any, x: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        function(x)
    if not isinstance(x, str | list):
        with pytest.raises(TypeError, match=message):
            corejax.make_jaxpr(function)(x)


def test_complex_of_narrow_parts_is_refused() -> None:
    with pytest.raises(TypeError, match=r"complex: the parts have to be float32 or float64, got float16\[\]"):
        lax.complex(np.float16(1), np.float16(1))


@given(st.floats(-5, 5))
def test_derivatives_by_differences(x: float) -> None:
    step = 1e-6
    for name in ("sin", "cos", "tanh", "exp", "expm1", "logistic"):
        function = ours[name]
        slope = (np.asarray(function(np.float64(x + step))) - np.asarray(function(np.float64(x - step)))) / (2 * step)
        assert_same(corejax.grad(function)(np.float64(x)), slope, rtol=1e-5, atol=1e-8)
