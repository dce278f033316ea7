"""Operators and methods of arrays and tracers: promotion, broadcasting, both sides, against jax and NumPy."""

from __future__ import annotations

import enum
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax.extend import Array, as_array, config, dtypes
from tests.lax_basic.structural_checks import assert_same, data

pytestmark = pytest.mark.sampled
BF16 = np.dtype(ml_dtypes.bfloat16)
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor]
DTYPES = [np.dtype(t) for t in ("int8", "uint8", "int32", "float16", "float32", BF16)]
name = lambda x: getattr(x, "__name__", str(x))


def nonzero(*shape: int, dtype: Any, seed: int = 0) -> Any:
    x = data(*shape, dtype=dtype, seed=seed)
    return np.where(x == 0, np.ones((), dtype), x)


def by_numpy(op: Any, dtype: Any, *operands: Any) -> Any:
    """NumPy's result with the operands in one dtype, computed wide and rounded where NumPy would differ."""
    if dtype.kind in "biu" or op in COMPARISONS:
        common = dtypes.result_type(*operands)
        return op(*(np.asarray(x, common) for x in operands)).astype(dtype)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    return op(*(np.asarray(x).astype(dtype).astype(wide) for x in operands)).astype(dtype)


def type_by_jax(f: Any, *args: Any) -> Any:
    jax = pytest.importorskip("jax")
    out = jax.eval_shape(f, *args)
    return np.dtype(out.dtype), bool(out.weak_type) and out.dtype != bool  # booleans yield to everything anyway


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS], ids=name)
@pytest.mark.parametrize("left", DTYPES, ids=str)
def test_arrays_of_two_dtypes(op: Any, left: Any) -> None:
    for right in DTYPES:
        x, y = data(2, 3, dtype=left), nonzero(3, dtype=right, seed=1)
        dtype, _ = type_by_jax(op, x, y)
        expected = by_numpy(op, dtype, x, y)
        assert_same(op(as_array(x), as_array(y)), expected)
        assert_same(op(as_array(x), y), expected)
        assert_same(op(x, as_array(y)), expected)


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS, operator.pow], ids=name)
@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype(bool), np.dtype("complex64")], ids=str)
@pytest.mark.parametrize("scalar", [True, 3, 2.5, np.float32(1.5), np.int8(2)], ids=repr)
def test_arrays_with_scalars(op: Any, dtype: Any, scalar: Any) -> None:
    """On either side, twice (the second time by the remembered short cut), eager and staged; weak types as in jax."""
    real_only = dtype.kind == "c" and op not in (
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.eq,
    )
    booleans = dtype.kind == "b" and isinstance(scalar, bool)
    if real_only or (booleans and op not in COMPARISONS):
        pytest.skip("refused, or another dtype on purpose")
    x = nonzero(3, dtype=dtype)
    if op is operator.pow:
        x = np.abs(x)
    for flip in (False, True):
        f = (lambda a: op(scalar, a)) if flip else (lambda a: op(a, scalar))
        out_dtype, weak = type_by_jax(f, x)
        expected = by_numpy(op, out_dtype, *((scalar, x) if flip else (x, scalar)))
        for _ in range(2):
            out = f(as_array(x))
            assert_same(out, expected)
            assert out.weak_type == weak or op is operator.pow
        staged = corejax.make_jaxpr(f)(x).out_avals[0]
        assert (staged.dtype, staged.weak_type) == (out_dtype, out.weak_type)


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS], ids=name)
def test_weak_arrays(op: Any) -> None:
    """Weak arrays yield like the Python scalars they came from."""
    jnp = pytest.importorskip("jax.numpy")
    for a, b in [(1, 2.5), (2, 3), (2.5, 1.5), (True, 2), (np.int8(3), 2), (np.float16(2.5), 2)]:
        dtype, weak = type_by_jax(op, jnp.asarray(a), jnp.asarray(b))
        out = op(as_array(a), as_array(b))
        assert (out.dtype, out.weak_type) == (dtype, weak)
        assert_same(out, np.asarray(op(a, b)).astype(dtype))


@pytest.mark.parametrize("op", BITWISE, ids=name)
@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("bool", "int8", "uint8", "int32")], ids=str)
def test_bitwise(op: Any, dtype: Any) -> None:
    x, y = data(2, 3, dtype=dtype), data(3, dtype=dtype, seed=1)
    assert_same(op(as_array(x), as_array(y)), op(x, y))
    assert_same(op(x, as_array(y)), op(x, y))
    assert_same(~as_array(x), ~x)
    assert_same(op(as_array(x), True), op(x, np.asarray(True, dtype)))


@pytest.mark.parametrize("op", [operator.lshift, operator.rshift], ids=name)
def test_shifts(op: Any) -> None:
    """Numbers with a sign keep it; what is shifted out of an integer is gone."""
    x = np.array([-128, -5, 0, 3, 127], np.int8)
    for left, right in [(x, x % 8), (x, 1), (x, np.int32(2)), (x.view(np.uint8), 3), (x > 0, 2), (x > 0, x > 1)]:
        dtype, weak = type_by_jax(op, left, right)
        expected = op(np.asarray(left).astype(dtype), np.asarray(right).astype(dtype))
        out = op(as_array(left), right)
        assert_same(out, expected)
        assert out.weak_type == weak
    assert_same(op(100, as_array(x % 8)), op(np.int8(100), x % 8))
    assert_same(op(as_array(x), 8), np.where((x < 0) & (op is operator.rshift), -1, 0).astype(np.int8))


@pytest.mark.parametrize("op", [operator.add, operator.mul], ids=name)
def test_booleans_are_logic(op: Any) -> None:
    x, y = data(4, dtype=bool), data(4, dtype=bool, seed=1)
    assert_same(op(as_array(x), as_array(y)), op(x, y))


@pytest.mark.parametrize(
    "dtype", [np.dtype(t) for t in ("int8", "int32", "float32", "uint8", "float16", BF16)], ids=str
)
def test_division_with_remainder(dtype: Any) -> None:
    """All signs: floored, as in Python."""
    values = np.array([-7, -6, -1, 0, 1, 6, 7] if dtype.kind != "u" else [0, 1, 6, 7])
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(values, values[values != 0]))
    quotient, rest = divmod(as_array(x), as_array(y))
    wide = np.float64 if dtype.kind not in "iu" else np.int64
    expected = np.divmod(x.astype(wide), y.astype(wide))
    assert_same(quotient, expected[0].astype(dtype))
    assert_same(rest, expected[1].astype(dtype))
    assert_same(as_array(x) // as_array(y), expected[0].astype(dtype))


def test_floor_division_near_integers() -> None:
    x = np.array([1.0, 0.6, 0.3, 8388609.0, 1e30, -8388609.0, 7.9999995], np.float32)
    y = np.array([0.1, 0.2, 0.1, 1.0, 3.0, 1.0, 8.0], np.float32)
    np.testing.assert_array_equal(as_array(x) // as_array(y), x // y)


@pytest.mark.parametrize("y", [-3, -1, 0, 1, 2, 3, 7, 0.5, 2.0])
def test_powers(y: Any) -> None:
    jax = pytest.importorskip("jax")
    x = np.array([0.5, 1.5, 2.0], np.float32)
    f = lambda x: x**y
    assert_same(f(as_array(x)), f(jax.numpy.asarray(x)))
    assert_same(corejax.grad(lambda x: f(x).sum())(x), jax.grad(lambda x: f(x).sum())(x))
    assert ("integer_pow" in str(corejax.make_jaxpr(f)(x))) == (isinstance(y, int) and y != 1)


def test_integer_exponents_of_negative_bases() -> None:
    jax = pytest.importorskip("jax")
    x, y = np.array([-2.0, -3.0], np.float32), np.array([2, 3], np.int32)
    assert_same(as_array(x) ** as_array(y), np.float32([4, -27]))
    f = lambda x: (x**y).sum()
    assert_same(corejax.grad(f)(x), jax.grad(f)(x))
    assert_same(as_array(np.int32([2, 3])) ** as_array(np.int32([3, 0])), np.int32([8, 1]))
    assert_same(2 ** as_array(np.int32([2, 3])), np.int32([4, 8]))
    assert_same(as_array(np.array([True, False])) ** 2, np.int32([1, 0]))


@pytest.mark.parametrize("f", [operator.neg, operator.pos, abs, operator.invert], ids=name)
@pytest.mark.parametrize(
    "dtype", [np.dtype(t) for t in ("bool", "uint8", "int8", "float32", "complex64", BF16)], ids=str
)
def test_unary(f: Any, dtype: Any) -> None:
    x = data(4, dtype=dtype)
    inexact = dtype.kind not in "biu"
    if (f is operator.neg and dtype.kind == "b") or (f is operator.invert and inexact):
        with pytest.raises(TypeError, match="operator"):
            f(as_array(x))
    else:
        assert_same(f(as_array(x)), x if f is operator.pos else f(x))


# -- what is staged ----------------------------------------------------------------------------------------------

STAGED = [
    (lambda x: x * 2.0, "b:f32[3] = mul a 2.0:f32[]"),
    (lambda x: x + 1, "b:f32[3] = add a 1.0:f32[]"),
    (lambda x: 1 - x, "b:f32[3] = sub 1.0:f32[] a"),
    (lambda x: x / np.float32(2), "b:f32[3] = div a 2.0:f32[]"),
    (lambda x: x**2, "b:f32[3] = integer_pow[y=2] a"),
    (lambda x: x > 0, "b:bool[3] = gt a 0.0:f32[]"),
    (lambda x: x > 0, "b:bool[3] = gt a 0.0:f32[]"),
    (lambda x: -x, "b:f32[3] = neg a"),
    (lambda x: x.sum(), "b:f32[] = reduce_sum[axes=(0,)] a"),
    (lambda x: x * x, "b:f32[3] = mul a a"),
]


@pytest.mark.parametrize(("f", "equation"), STAGED, ids=[e for _, e in STAGED])
def test_one_equation(f: Any, equation: str) -> None:
    text = str(corejax.make_jaxpr(f)(data(3)))
    assert text == f"{{ lambda ; a:f32[3]. let\n    {equation}\n  in (b,) }}"


def test_default_width_of_scalars() -> None:
    x = as_array(data(3, dtype=np.int32))
    for bits in (32, 64, 32):
        with config.override(default_dtype_bits=bits):
            assert (x * 0.5).dtype == np.dtype(f"float{bits}")
            assert (as_array(data(3)) * 0.5).dtype == np.float32


def test_out_of_range_scalars() -> None:
    with pytest.raises(OverflowError, match="300"):
        as_array(np.int8(3)) + 300
    x = as_array(data(3)) + 1.0
    for _ in range(2):
        assert np.isinf(np.asarray(x * 1e300)).all()
        assert np.isnan(np.asarray(x * float("nan"))).all()
    assert_same(as_array(np.int64(2**40)) + 2**41, np.int64(3 * 2**40))


def test_long_integers_with_and_without_sign_are_compared_exactly() -> None:
    x = np.array([-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1])
    y = np.array([0, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        for a, b in ((x[:, None], y), (y[:, None], x), (x[3], y), (y, x[1])):
            expected = np.asarray(compare(a, b))
            assert_same(compare(as_array(a), as_array(b)), expected)
            assert_same(corejax.jit(compare)(a, b), expected)
    with config.override(numpy_dtype_promotion="strict"), pytest.raises(dtypes.TypePromotionError):
        operator.lt(as_array(x), as_array(y))


def test_enumerations_count_as_their_values() -> None:
    Colour = enum.IntEnum("Colour", "RED GREEN")
    assert_same(as_array(data(3)) * Colour.GREEN, data(3) * np.float32(2))


@pytest.mark.parametrize("other", [[1, 2], "a", None, {"a": 1}, (1, 2), {1}, object()], ids=lambda x: type(x).__name__)
def test_unknown_operands(other: Any) -> None:
    def attempts(x: Any) -> None:
        for op in [*ARITHMETIC, operator.pow, operator.matmul, *BITWISE, *COMPARISONS[2:]]:
            with pytest.raises(TypeError):
                op(x, other)
            if not isinstance(other, str) or op is not operator.mod:
                with pytest.raises(TypeError):
                    op(other, x)
        if isinstance(other, list | tuple | dict | set):  # it looks as if it were compared elementwise
            for op in COMPARISONS[:2]:
                with pytest.raises(TypeError, match="takes arrays and scalars"):
                    op(x, other)
                with pytest.raises(TypeError, match="takes arrays and scalars"):
                    op(other, x)
        else:
            assert (x == other) is False
            assert (x != other) is True

    attempts(as_array(data(3)))
    corejax.make_jaxpr(lambda x: attempts(x) or x)(data(3))


class Deferring:
    """A type that corejax does not know and that knows corejax."""

    def __radd__(self, other: Any) -> str:
        return f"{type(other).__name__} came first"


def test_reflected_operators_of_others_get_their_turn() -> None:
    assert as_array(data(3)) + Deferring() == "Array came first"


ERRORS = [
    (lambda x: x + data(2), ValueError, r"add: Incompatible shapes for broadcasting: operands f32\[3\] and f32\[2\]"),
    (lambda x: (x > 0) - (x > 0), TypeError, "operator - is not defined for booleans"),
    (lambda x: x & 1, TypeError, "operator & takes booleans or integers; these operands are float32"),
    (lambda x: x << 1, TypeError, "operator << takes booleans or integers; these operands are float32"),
    (lambda x: x % 1j, TypeError, "operator % is not defined for complex"),
    (lambda x: x.astype(int) ** -1, ValueError, r"i32\[3\] \*\* -1.*convert the base"),
    (lambda x: x + np.array(["a", "b", "c"]), TypeError, "not supported"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f), corejax.grad(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(3)))


# -- methods -----------------------------------------------------------------------------------------------------

METHODS: dict[str, Any] = {
    "reshape": lambda x: x.reshape(3, 2),
    "reshape tuple": lambda x: x.reshape((-1, 2)),
    "reshape numpy": lambda x: x.reshape((np.prod(x.shape),)),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "transpose": lambda x: x.transpose(),
    "transpose axes": lambda x: x.transpose(1, 0),
    "transpose negative": lambda x: x.transpose((-1, 0)),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: x.reshape(2, 1, 3).squeeze(1),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "sum": lambda x: x.sum(),
    "sum axis": lambda x: x.sum(-1),
    "sum keepdims": lambda x: x.sum(0, keepdims=True),
    "sum axes": lambda x: x.sum(axis=(0, 1), keepdims=True),
    "sum no axes": lambda x: x.sum(axis=()),
    "prod": lambda x: x.prod(1),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(axis=1, keepdims=True),
    "mean": lambda x: x.mean(1),
    "var": lambda x: x.var(0, ddof=1),
    "std": lambda x: x.std(),
    "any": lambda x: x.any(0),
    "all": lambda x: x.all(1, keepdims=True),
    "argmax": lambda x: x.argmax(),
    "argmax axis": lambda x: x.argmax(1, keepdims=True),
    "argmin": lambda x: x.argmin(0),
    "clip": lambda x: x.clip(1, 3),
    "clip one side": lambda x: x.clip(min=0),
    "conj": lambda x: x.conj(),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "copy": lambda x: x.copy(),
    "astype": lambda x: x.astype("float32"),
}
ORDERED_ONLY = {"max", "min", "argmax", "argmax axis", "argmin", "clip", "clip one side"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "dtype", [np.dtype(t) for t in ("bool", "int8", "uint8", "float32", "complex64", BF16)], ids=str
)
def test_methods(method: str, dtype: Any) -> None:
    jnp = pytest.importorskip("jax.numpy")
    if dtype.kind == "c" and method in {*ORDERED_ONLY, "astype"}:
        pytest.skip("no order of complex numbers; casts to real warn in jax")
    if dtype.kind == "b" and method in ("clip", "clip one side", "imag"):
        pytest.skip("jax refuses or differs in dtype")
    f, x = METHODS[method], data(2, 3, dtype=dtype)
    # jax takes the real part of complex numbers for their truth.
    expected = f(x if dtype.kind == "c" and method.startswith("a") else jnp.asarray(x))
    assert_same(f(as_array(x)), expected)
    assert_same(corejax.vmap(f)(np.stack([x, x])), np.stack([np.asarray(expected)] * 2))
    assert corejax.make_jaxpr(f)(x).out_avals[0].shape == expected.shape


@pytest.mark.parametrize("method", ["sum axis", "prod", "max", "mean", "var", "std", "clip", "swapaxes", "min"])
def test_derivatives_of_methods(method: str) -> None:
    jax = pytest.importorskip("jax")
    f, x = METHODS[method], np.arange(6, dtype=np.float32).reshape(2, 3) / 3 + 0.1
    g = lambda x: (f(x) ** 2).sum()
    assert_same(corejax.grad(g)(x), jax.grad(g)(x))


EMPTY_ERRORS = [
    (lambda x: x[:0].max(), ValueError, r"max: f32\[0,3\] has no elements along the reduced axes"),
    (lambda x: x[:0].argmin(0), ValueError, "argmin of .* no elements"),
    (lambda x: x.sum(2), ValueError, "sum: axis 2 is out of bounds for array of dimension 2"),
    (lambda x: x.sum((0, 0)), ValueError, "sum: repeated axis, duplicate value in 'axis'"),
    (lambda x: x.transpose(0), TypeError, "not a permutation"),
    (lambda x: x[0].mT, ValueError, "mT exchanges the last two axes"),
    (lambda x: x.reshape(6, order="A"), NotImplementedError, "order must be 'C' or 'F', got 'A'"),
    (lambda x: x.clip("a"), TypeError, "clip takes arrays"),
    (lambda x: x.no_such_method, AttributeError, "no_such_method"),
]


@pytest.mark.parametrize(("f", "error", "text"), EMPTY_ERRORS)
def test_method_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(2, 3)))


def test_round() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4999998, 1e30, np.inf, -7.2], np.float32)
    assert_same(as_array(x).round(), np.round(x))
    assert_same(round(as_array(x)[:6]), np.round(x[:6]).astype(np.int32))  # as Python's gives integers
    assert_same(round(as_array(x), 0), np.round(x))
    assert_same(as_array(np.float32(3.14159)).round(2), np.float32(3.14))
    assert_same(round(as_array(np.int32(5))), np.int32(5))
    assert_same(corejax.grad(lambda x: x.round().sum())(x[:3]), np.zeros(3, np.float32))
    with pytest.raises(NotImplementedError, match=r"this array is bool\[\]"):
        as_array(np.bool_(1)).round()


def test_sums_of_nothing() -> None:
    x = as_array(data(0, 3))
    assert_same(x.sum(0), np.zeros(3, np.float32))
    assert_same(x.prod(), np.float32(1))
    assert not bool(x.any())
    assert bool(x.all())


def test_reshape_to_a_traced_size_says_where_it_comes_from() -> None:
    def f(x: Any) -> Any:
        return x.reshape(as_array(np.int32(x.shape)).prod())

    with pytest.raises(TypeError) as caught:
        corejax.make_jaxpr(f)(data(2, 3))
    lines = str(caught.value).split("\n")
    assert lines[0] == "Shapes must be 1D sequences of concrete values of integer type, got [JitTracer(int32[])]."
    assert lines[1] == "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
    assert lines[2].startswith("The error occurred while tracing the function f at ")
    assert lines[2].endswith("This value became a tracer due to corejax operations on these lines:")
    assert lines[4] == "  operation a:i32[] = reduce_prod[axes=(0,)] b"
    assert "(f)" in lines[5]


def test_every_array_is_of_one_type() -> None:
    x = as_array(data(2, 3))
    assert all(type(y) is Array for y in (x + 1, x.T, x[0], x.sum(), x @ x.T, x > 0, -x, x.astype(int)))


@pytest.mark.parametrize("base", [0.9, 2, 1j])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
def test_python_numbers_to_the_power_of_integers_are_as_compiled_in_jax(base: Any, dtype: str) -> None:
    """An integer stays the exponent, and the result is strongly typed: an Adam step's dtypes hang on it."""
    jax = pytest.importorskip("jax")
    counts = np.arange(4).astype(dtype)
    for count in (counts, counts[2]):
        wanted = jax.jit(lambda c: base**c)(count)
        run, compiled = base ** as_array(count), corejax.jit(lambda c: base**c)(count)
        for out in (run, compiled):
            assert (out.dtype, out.weak_type) == (wanted.dtype, wanted.weak_type)
            np.testing.assert_allclose(out, wanted, rtol=1e-6)
    half = as_array(np.ones(2, BF16))
    assert (half / (1 - 0.9 ** as_array(np.int32(3)))).dtype == np.float32
    assert (half / (1 - 0.9**3)).dtype == BF16


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_complex_numbers_are_ordered_by_their_parts(compare: Any) -> None:
    parts = [-1.0, -0.0, 0.0, 2.0, np.inf]
    x = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    for y in (x[:, None], np.float32(2), 2, 1j):
        want = compare(x, y)
        for f in (compare, corejax.jit(compare)):
            np.testing.assert_array_equal(f(as_array(x), y), want)
