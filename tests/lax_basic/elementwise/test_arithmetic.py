"""Arithmetic of two operands, and integer powers: values, promotion, derivatives, batching, compiled, errors."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corejax
from corejax import extend
from corejax_lax_basic import lax
from tests.lax_basic.support import (
    KINDS,
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
    """A function, the kinds of dtype it takes, the range of its operands for derivatives."""

    name: str
    kinds: str
    low: float = -3.0
    high: float = 3.0


ROWS = [
    Row("add", "iufc"),
    Row("sub", "iufc"),
    Row("mul", "iufc"),
    Row("div", "iufc", 0.5),
    Row("rem", "iuf", 0.5),
    Row("max", "biufc"),
    Row("min", "biufc"),
    Row("pow", "fc", 0.3, 2.0),
]
ours = {row.name: getattr(lax, row.name) for row in ROWS}
each_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
SHAPES = [((3,), (3,)), ((), (3,)), ((3,), ()), ((), ()), ((2, 3), ())]


def pairs(dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of extreme values, and some ordinary ones."""
    values = extremes(dtype)
    x, y = (np.array(v, dtype) for v in zip(*itertools.product(values, values), strict=True))
    return np.concatenate([x, sample(dtype, (9,), seed=1)]), np.concatenate([y, sample(dtype, (9,), seed=2)])


@each_row
def test_values_of_every_dtype(row: Row, jax: Any) -> None:
    operands = []
    for dtype in dtypes_of(row.kinds):
        disagreeing = dtype.kind == "c" and row.name in ("div", "pow")  # XLA and NumPy, about infinities
        operands.append([x[-9:] if disagreeing else x for x in pairs(dtype)])
    theirs = jax.jit(lambda operands: [getattr(jax.lax, row.name)(*xs) for xs in operands])(operands)
    for (x, y), expected in zip(operands, map(np.asarray, theirs), strict=True):
        dtype, got = x.dtype, np.asarray(ours[row.name](x, y))
        if row.name == "rem" and dtype.itemsize == 2 and kind_of(dtype) == "f":
            # XLA divides in float32 and rounds; the exact remainder of large quotients is the difference.
            ordinary = np.isfinite(expected) & (np.abs(x.astype(float)) <= 3) & (np.abs(y.astype(float)) >= 0.2)
            expected, got = expected[ordinary], got[ordinary]
        assert_same(got, expected)


@each_row
def test_shapes_mix_scalars(row: Row) -> None:
    for dtype, (left, right) in itertools.product(dtypes_of(row.kinds), [*SHAPES, ((0,), ()), ((0, 2), (0, 2))]):
        x, y = sample(dtype, left, low=0.5), sample(dtype, right, seed=1, low=0.5)
        got = ours[row.name](x, y)
        assert got.dtype == dtype and got.shape == np.broadcast_shapes(left, right)
        assert_same(got, np.broadcast_to(np.asarray(ours[row.name](*np.broadcast_arrays(x, y))), got.shape))
        promised = corejax.eval_shape(ours[row.name], x, y)
        assert (promised.shape, promised.dtype) == (got.shape, got.dtype)


@pytest.mark.sampled
@each_row
@pytest.mark.parametrize("shapes", SHAPES[:3], ids=["both", "scalar left", "scalar right"])
def test_derivatives(row: Row, shapes: Any, jax: Any) -> None:
    theirs = getattr(jax.lax, row.name)
    both = shapes == SHAPES[0] and "c" in row.kinds and row.name not in ("max", "min")
    kinds = "fc" if both else "f"
    for kind in kinds:
        dtype = KINDS[kind][-1]
        x = sample(dtype, shapes[0], low=row.low, high=row.high)
        y = sample(dtype, shapes[1], seed=1, low=row.low, high=row.high)
        # jax wants one shape where corejax mixes scalars in.
        broadcast = np.broadcast_shapes(*shapes)

        def theirs_mixed(x: Any, y: Any, shape: Any = broadcast) -> Any:
            return theirs(jax.numpy.broadcast_to(x, shape), jax.numpy.broadcast_to(y, shape))

        check_derivatives(jax, ours[row.name], theirs_mixed, x, y)


@each_row
def test_vmap(row: Row) -> None:
    for shapes in SHAPES:
        check_vmap(ours[row.name], *shapes, low=0.5)


def test_compiled_agrees_with_eager() -> None:
    for dtype in few_dtypes("biufc"):
        kind = kind_of(dtype)
        functions = [ours[row.name] for row in ROWS if kind in row.kinds]
        if kind in "fiu":
            functions += [lambda x, y, n=n: lax.integer_pow(x, n) for n in (0, 1, 3)]
        x, y = pairs(dtype)
        if kind in "fc":
            x, y = sample(dtype, (20,), low=0.5), sample(dtype, (20,), seed=1, low=0.5)
        got = compiled(lambda x, y, s, fs=functions: [f(x, z) for z in (y, s) for f in fs])(x, y, y[0])
        expected = [np.asarray(f(x, z)) for z in (y, y[0]) for f in functions]
        for value, wanted in zip(got, expected, strict=True):
            assert_same(value, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint32])
def test_compiled_integer_powers(dtype: Any) -> None:
    x, y = pairs(np.dtype(dtype))
    assert_same(compiled(lax.pow)(x, y), np.asarray(lax.pow(x, y)))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.uint64])
def test_compiled_integer_powers_read_every_bit(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.array([3, 5, 7, 2, 0, 1, info.max, info.min, info.max - 2], dtype)[:, None]
    y = np.array([0, 1, 63, 64, 65, 200, info.max, info.max - 1, info.min], dtype)
    assert_same(compiled(lax.pow)(*np.broadcast_arrays(x, y)), np.asarray(lax.pow(*np.broadcast_arrays(x, y))))


def test_compiled_integer_powers_are_no_loops() -> None:
    n = np.arange(1000, dtype=np.int32)
    assert "while" not in compiled(lax.pow).lower(n, n).as_text()
    signs = compiled(lambda n: lax.pow(np.int32(-1), n)).lower(n).compile().as_text()
    assert "while" not in signs and signs.count(" multiply(") == 0, "of powers of -1 the last bit is read"


# -- derivatives at special places -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share_the_derivative(name: str, jax: Any) -> None:
    x, y = np.array([1.0, 2.0, -1.0]), np.array([1.0, 3.0, -2.0])
    check_derivatives(jax, ours[name], getattr(jax.lax, name), x, y)
    assert_same(corejax.grad(ours[name])(2.0, 2.0), np.float32(0.5))


def test_high_powers_of_many_are_those_of_single_numbers() -> None:
    few = np.float32([0.0, -0.0, 0.5, -0.9, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 1e-40])
    exponents = np.float32([0, 1, -1, 0.5, 3, 40, -40, 333, 334, -333, 1e30, np.inf, -np.inf, np.nan])
    x, y = (v.ravel() for v in np.meshgrid(np.tile(few, 3), exponents))
    assert x.size > 256
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y).astype(np.float32)
    np.testing.assert_allclose(lax.pow(x, y), wanted, rtol=3e-7)
    one_by_one = np.array([float(lax.pow(a, b)) for a, b in zip(x[:154], y[:154], strict=True)])
    np.testing.assert_allclose(lax.pow(x, y)[:154], one_by_one, rtol=3e-7)


def test_power_at_zero() -> None:
    by_base, by_exponent = corejax.grad(lax.pow, 0), corejax.grad(lax.pow, 1)
    zero = np.float64(0)
    assert float(by_base(zero, np.float64(0))) == 0.0
    assert float(by_base(zero, np.float64(1))) == 1.0
    assert float(by_base(zero, np.float64(2))) == 0.0
    assert float(by_exponent(zero, np.float64(2))) == 0.0
    assert float(by_exponent(zero, np.float64(0))) == 0.0
    assert float(corejax.grad(by_base)(zero, np.float64(2))) == 2.0
    assert float(corejax.grad(by_base)(zero, np.float64(1))) == 0.0
    assert float(corejax.grad(lambda x: lax.pow(x, np.int32(0)))(zero)) == 0.0


def test_power_with_integer_exponents(jax: Any) -> None:
    x = np.array([-1.5, 0.5, 2.0, -1.0])
    n = np.array([3, 0, 2, -2], np.int32)
    check_derivatives(jax, lambda x: lax.pow(x, n), lambda x: jax.lax.pow(x, n), x)
    assert_same(lax.pow(np.float32(2), 3), np.float32(8))
    assert_same(compiled(lax.pow)(x, n), x**n)
    check_vmap(lax.pow, (2,), (), dtypes=(np.float32, np.int32), low=0.5)


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 8])
def test_integer_pow(n: int, jax: Any) -> None:
    for dtype in (np.float64, np.complex128):
        x = sample(dtype, (4,), low=0.5)
        check_derivatives(jax, lambda x: lax.integer_pow(x, n), lambda x: jax.lax.integer_pow(x, n), x, rtol=1e-8)
    check_vmap(lambda x: lax.integer_pow(x, n), (2,), low=0.5)
    if n >= 0:
        with np.errstate(over="ignore"):
            x = sample(np.int8, (50,))
            assert_same(lax.integer_pow(x, n), x**n)


def test_second_derivative_of_a_composition(jax: Any) -> None:
    def function(lax: Any) -> Any:
        return lambda x, y: lax.div(lax.mul(lax.max(x, y), lax.sub(x, y)), lax.add(lax.mul(x, x), lax.pow(y, y)))

    x, y = sample(np.float64, (4,), low=0.5), sample(np.float64, (4,), seed=1, low=0.5)
    check_derivatives(jax, function(lax), function(jax.lax), x, y)


# -- integers ----------------------------------------------------------------------------------------------------

integers = st.sampled_from(dtypes_of("iu")).flatmap(
    lambda d: st.tuples(st.just(d), *(st.integers(int(np.iinfo(d).min), int(np.iinfo(d).max)) for _ in range(2)))
)


@given(integers)
def test_integer_division_is_exact(case: Any) -> None:
    dtype, x, y = case
    quotient, rest = int(lax.div(dtype.type(x), dtype.type(y))), int(lax.rem(dtype.type(x), dtype.type(y)))
    if y == 0:
        assert quotient == (-1 if dtype.kind == "i" else np.iinfo(dtype).max) and rest == x
    elif (x, y) == (np.iinfo(dtype).min, -1):
        assert (quotient, rest) == (x, 0)
    else:
        assert x == quotient * y + rest and abs(rest) < abs(y) and rest * x >= 0


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", dtypes_of("iu"), ids=str)
@pytest.mark.parametrize("zeros", [False, True])
def test_quotients_of_arrays_are_those_of_numbers(dtype: np.dtype[Any], zeros: bool) -> None:
    info = np.iinfo(dtype)
    few = {int(info.min), int(info.max), int(info.max) - 1, *range(max(-9, int(info.min)), 10), int(info.max) // 3}
    ys = np.array(sorted(few if zeros else few - {0}), dtype)
    x = np.array(sorted(few), dtype)[:, None] + np.zeros_like(ys)
    for function in (lax.div, lax.rem):
        out = np.asarray(function(x, np.broadcast_to(ys, x.shape)))
        by_one = [function(x[:, i], y) for i, y in enumerate(ys)]
        one_by_one = [[function(a, b) for b in ys] for a in x[:, 0]]
        np.testing.assert_array_equal(out, np.stack(by_one, 1), strict=True)
        np.testing.assert_array_equal(out, np.array(one_by_one, dtype), strict=True)


@given(integers)
def test_integer_powers_wrap(case: Any) -> None:
    dtype, x, y = case
    got = int(lax.pow(dtype.type(x), dtype.type(y)))
    if y >= 0:
        assert (got - pow(x, y, 2 ** (8 * dtype.itemsize))) % 2 ** (8 * dtype.itemsize) == 0
    else:
        assert got == {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


# -- promotion ---------------------------------------------------------------------------------------------------

F32, I32 = np.ones(3, np.float32), np.ones(3, np.int32)
YIELDS = [
    (F32, 2.0, "f32[3]"),
    (F32, 2, "f32[3]"),
    (2.0, F32, "f32[3]"),
    (np.ones(3, np.float16), 2.0, "f16[3]"),
    (np.ones(3, np.complex64), 2.0, "c64[3]"),
    (np.ones(3, np.complex64), 2j, "c64[3]"),
    (I32, 2, "i32[3]"),
    (np.ones(3, np.uint8), 200, "u8[3]"),
    (2, 3, "~i32[]"),
    (2.0, 3.0, "~f32[]"),
    (np.ones(3, np.int64), 2**40, "i64[3]"),
]


def text(aval: Any) -> str:
    """As jaxprs print a type."""
    return ("~" if aval.weak_type else "") + aval.str_short()


@pytest.mark.parametrize(("x", "y", "expected"), YIELDS)
def test_scalars_yield(x: Any, y: Any, expected: str) -> None:
    assert text(lax.add(x, y).aval) == expected
    if not isinstance(x, int | float):
        (eqn,) = corejax.make_jaxpr(lambda x: lax.add(x, y))(x).jaxpr.eqns
        assert eqn.invars[1].aval.dtype == x.dtype and not eqn.invars[1].aval.weak_type


def test_weak_arrays_yield() -> None:
    weak = extend.Array(np.ones(3, np.int32), extend.ShapedArray((3,), np.int32, True))
    assert text(lax.add(weak, 1).aval) == "~i32[3]"
    assert text(lax.add(weak, 1.0).aval) == "~f32[3]"
    assert text(lax.add(weak, F32).aval) == "f32[3]"
    assert text(lax.add(weak, np.ones(3, np.int8)).aval) == "i8[3]"
    jaxpr = corejax.make_jaxpr(lambda x, y: lax.mul(x, y))(1.0, np.float16(2))
    assert [e.primitive.name for e in jaxpr.jaxpr.eqns] == ["convert_element_type", "mul"]


def test_default_width_is_followed() -> None:
    with corejax.config.override(default_dtype_bits=64):
        assert text(lax.add(1.0, 2.0).aval) == "~f64[]"
        assert text(lax.add(F32, 2.0).aval) == "f32[3]"
    assert text(lax.add(1.0, 2.0).aval) == "~f32[]"


def test_jaxpr_of_a_scalar_operand() -> None:
    jaxpr = corejax.make_jaxpr(lambda x: lax.mul(x, 2.0))(F32)
    assert "b:f32[3] = mul a 2.0:f32[]" in str(jaxpr)


# -- errors ------------------------------------------------------------------------------------------------------

BAD = [
    (lax.add, F32, I32, r"add requires .* got float32 \(first\) and int32 \(second\).*corejax.numpy.add"),
    (lax.add, I32, 1.5, r"add requires .* got int32 \(first\) and float32 \(second\)"),
    (lax.mul, F32, 1j, r"mul requires .* got float32 \(first\) and complex64 \(second\)"),
    (lax.sub, F32, np.ones(4, np.float32), r"sub: operands have shapes \(3,\) \(first\) and \(4,\) \(second\)"),
    (lax.sub, F32, np.ones((1, 3), np.float32), r"broadcasts?"),
    (lax.add, np.array([True]), np.array([True]), r"add does not accept dtype bool \(first operand\)"),
    (lax.rem, np.complex64(1), np.complex64(1), "rem does not accept dtype complex64"),
    (lax.pow, np.bool_(1), np.bool_(1), "pow does not accept dtype bool"),
    (lax.pow, I32, F32, "pow requires .* got int32"),
    (lax.add, F32, None, "None of type NoneType is not an array"),
    (lax.add, F32, [1.0], "not an array"),
]


@pytest.mark.parametrize(("function", "x", "y", "message"), BAD)
def test_errors(function: Any, x: Any, y: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        function(x, y)
    with pytest.raises(TypeError, match=message):
        corejax.make_jaxpr(lambda x: function(x, y))(x)
    if x.dtype.kind == "f" and "shapes" not in message:  # which would be those of the batches
        with pytest.raises(TypeError, match=message):
            corejax.vmap(lambda x: function(x, y))(np.stack([x, x]))


def test_integers_by_zero_that_the_compiler_knows() -> None:
    """Constant and found by the compiler, which would divide them itself."""
    for dtype in ("int8", "uint8", "int32", "uint64"):
        x, y = np.array([1, 5, 0, 7], dtype), np.array([0, 2, 0, 3], dtype)
        for f in (lax.div, lax.rem):
            expected = f(x, y)
            compilations = (lambda: f(lax.add(x, x - x), y), lambda x: f(x, y), lambda x, y: f(x, y))  # noqa: B023
            for operands, run in zip([(), (x,), (x, y)], compilations, strict=True):
                assert_same(corejax.jit(run)(*operands), expected)
            empty = np.zeros((0, 2), dtype)
            mean = corejax.jit(lambda e: f(lax.reduce_sum(e, (0,)), lax.full((2,), e.shape[0], e.dtype)))  # noqa: B023
            assert_same(mean(empty), f(np.zeros(2, dtype), np.zeros(2, dtype)))


def test_a_scalar_out_of_range() -> None:
    with pytest.raises(OverflowError, match="300"):
        lax.add(np.ones(3, np.uint8), 300)


def test_integer_pow_errors() -> None:
    with pytest.raises(TypeError, match=r"integer cannot be raised to the negative power -1, got i32\[3\]"):
        lax.integer_pow(I32, -1)
    with pytest.raises(TypeError):
        lax.integer_pow(F32, 1.5)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["add", "max", "eq", "complex", "nextafter", "atan2", "pow", "igamma"])
@pytest.mark.parametrize("shapes", [((1,), (4,)), ((1, 3), (4, 1)), ((4, 3), (1, 1))], ids=str)
def test_axes_of_size_one_are_repeated(jax: Any, name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (np.linspace(0.5, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape) for shape in shapes)
    theirs = getattr(jax.lax, name)(x, y)
    for f in (getattr(lax, name), corejax.jit(getattr(lax, name))):
        ours = f(x, y)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_what_is_repeated_is_of_one_rank_and_summed_over_by_derivatives(jax: Any) -> None:
    x, y, n = np.ones((1, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)[:, None]
    for f in (lambda m: lambda x: m.lax.mul(x, y).sum(), lambda m: lambda x: m.lax.pow(x, n).sum()):
        np.testing.assert_allclose(corejax.grad(f(corejax))(x), jax.grad(f(jax))(x))
    assert lax.betainc(x, y + 1, x / 2).shape == (4, 3)
    with pytest.raises(TypeError, match=r"add: operands have shapes \(3,\) \(first\) and \(4, 3\) \(second\)"):
        lax.add(x[0], y)
    with pytest.raises(TypeError, match=r"add: operands have shapes \(4, 3\) \(first\) and \(4, 2\) \(second\)"):
        lax.add(y, y[:, :2])
    with pytest.raises(TypeError, match=r"mul: operands have shapes"):
        lax.mul_p.bind(x, y)
