"""The StableHLO text builder: XLA and StableHLO's reference interpreter read what was meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from corejax import jit, lax
from corejax.extend import (
    ClosedJaxpr,
    MissingRuleError,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    stage_closed,
    xla_translations,
)

pytest.importorskip("jaxlib")

from corejax_xla_backend import _jaxlib as jl
from corejax_xla_backend._lowering.context import TranslationContext, add_main
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.types import element_type, tensor_type

embed_p = Primitive("tests.embed", multiple_results=True, doc="Whatever its parameter writes.")
other_p = Primitive("tests.only_elsewhere", multiple_results=True, doc="Translated for another platform only.")


@abstract_eval_rules.register(embed_p)
def _embed_type(*avals: ShapedArray, body: Callable[..., Any], out: tuple[ShapedArray, ...]) -> Sequence[ShapedArray]:
    return out


@xla_translations.register(embed_p)
def _embed_translation(ctx: Any, in_avals: Any, in_vals: Any, *, body: Any, out: Any) -> list[Any]:
    return list(body(ctx, *in_vals))


def aval(shape: Sequence[int], dtype: Any = np.float32) -> ShapedArray:
    return ShapedArray(tuple(shape), np.dtype(dtype))


F, I = aval(()), aval((), np.int32)


def program(body: Callable[..., Any], in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A jaxpr of one equation whose translation is `body(ctx, *values) -> values`."""
    return stage_closed(lambda *args: embed_p.bind(*args, body=body, out=tuple(out_avals)), in_avals)


def module_text(closed: ClosedJaxpr) -> str:
    builder = ModuleBuilder()
    add_main(builder, closed, [True] * len(closed.jaxpr.constvars + closed.jaxpr.invars))
    return builder.text("test")


def run(body: Callable[..., Any], args: Sequence[Any], out_avals: Sequence[ShapedArray]) -> list[np.ndarray]:
    """The outputs, the same bits from XLA and from the reference interpreter."""
    arrays = [np.asarray(x) for x in args]
    text = module_text(program(body, [aval(x.shape, x.dtype) for x in arrays], out_avals))
    reference = jl.reference_eval(text, arrays)
    executable = jl.compile_module(jl.parse_module(text), out_avals)
    outs = [jl.to_numpy(b) for b in executable(*(jl.put(x, aval(x.shape, x.dtype)) for x in arrays))]
    for ours, theirs, want in zip(outs, reference, out_avals, strict=True):
        assert ours.shape == theirs.shape == want.shape
        assert ours.dtype == theirs.dtype == want.dtype
        assert ours.tobytes() == theirs.tobytes()
    return outs


def constant(value: np.ndarray) -> np.ndarray:
    (out,) = run(lambda ctx: [ctx.constant(value)], [], [aval(value.shape, value.dtype)])
    return out


def bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


FLOATS = [
    np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3, ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2fnuz,
]  # fmt: skip
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SMALL = [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2]


def name(dtype: Any) -> str:
    return np.dtype(dtype).name


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_float_constants_keep_their_bits(dtype: Any) -> None:
    value = np.array([[0.0, -0.0, 1.0], [-1.5, 0.1, 3.0]]).astype(dtype)
    assert bits(constant(value)) == bits(value)


@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn], ids=name)
def test_float_splats_keep_their_bits(dtype: Any) -> None:
    for number in (1.0, 0.5, 2.0):
        value = np.full((2, 3), number, np.float32).astype(dtype)
        assert bits(constant(value)) == bits(value)
        assert bits(constant(value[0, 0].reshape(()))) == bits(value[0, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16], ids=name)
def test_infinities_and_the_smallest_numbers(dtype: Any) -> None:
    tiny = ml_dtypes.finfo(dtype).smallest_subnormal
    value = np.array([np.inf, -np.inf, tiny, -tiny, ml_dtypes.finfo(dtype).max], dtype)
    assert bits(constant(value)) == bits(value)
    for x in value:
        assert bits(constant(np.asarray(x))) == bits(np.asarray(x))


@pytest.mark.parametrize(
    ("dtype", "pattern"),
    [
        (np.float16, 0x7E2B),
        (np.float32, 0x7FC12345),
        (np.float64, 0xFFF8000000ABCDEF),
        (ml_dtypes.bfloat16, 0x7FD5),
    ],
    ids=lambda x: name(x) if isinstance(x, type) else "",
)
def test_nan_payloads(dtype: Any, pattern: int) -> None:
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    for shape in ((), (3,)):
        value = np.full(shape, pattern, word).view(dtype)
        assert bits(constant(value)) == bits(value)
    mixed = np.array([pattern, 0], word).view(dtype)
    assert bits(constant(mixed)) == bits(mixed)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=name)
def test_complex_constants(dtype: Any) -> None:
    value = np.array([[1 + 2j, complex(-0.0, 0.0)], [complex(0.0, -0.0), complex(np.inf, np.nan)]], dtype)
    assert bits(constant(value)) == bits(value)
    for x in value.reshape(-1):
        assert bits(constant(np.asarray(x))) == bits(np.asarray(x))
        assert bits(constant(np.full((2, 2), x))) == bits(np.full((2, 2), x))


@pytest.mark.parametrize("dtype", [*INTEGERS, *SMALL], ids=name)
def test_integer_constants(dtype: Any) -> None:
    info = ml_dtypes.iinfo(dtype)
    value = np.array([[info.min, 0, 1], [info.max, 1, 0]]).astype(dtype) if info.max < 2**63 else None
    value = np.array([[0, 1, 2], [info.max, 4, 5]], dtype) if value is None else value
    assert bits(constant(value)) == bits(value)
    for x in (value[0, 0], value[1, 0]):
        assert bits(constant(np.full((2, 2), x, dtype))) == bits(np.full((2, 2), x, dtype))


def test_boolean_constants() -> None:
    for value in ([True, False, True], [[True], [False]], [[True, True]], True, False, [False] * 9):
        array = np.array(value)
        np.testing.assert_array_equal(constant(array), array)


@pytest.mark.parametrize(
    "dtype", [bool, np.float32, np.int64, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4], ids=name
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_constants_without_elements(dtype: Any, shape: tuple[int, ...]) -> None:
    assert constant(np.zeros(shape, dtype)).shape == shape


@pytest.mark.parametrize(
    "value",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12)[::-2],
        np.array([1.5, 2.5], ">f8"),
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.broadcast_to(np.float32(2.5), (2, 3)),
    ],
    ids=["transposed", "reversed", "big-endian", "broadcast-rows", "broadcast-scalar"],
)
def test_constants_of_any_memory_layout(value: np.ndarray) -> None:
    native = value.dtype.newbyteorder("=")
    (out,) = run(lambda ctx: [ctx.constant(value)], [], [aval(value.shape, native)])
    np.testing.assert_array_equal(out, value)


def test_large_constants() -> None:
    value = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    assert bits(constant(value)) == bits(value)


def test_constant_takes_scalars_and_a_dtype() -> None:
    outs = run(
        lambda ctx: [
            ctx.constant(2, np.float32),
            ctx.constant(True),
            ctx.constant(np.array([1, 2]), np.int8),
        ],
        [],
        [F, aval((), bool), aval((2,), np.int8)],
    )
    assert [x.tolist() for x in outs] == [2.0, True, [1, 2]]


def test_equal_small_constants_are_written_once() -> None:
    ctx = TranslationContext(ModuleBuilder())
    first = ctx.constant(np.float32(2))
    assert ctx.constant(np.float32(2)) is first
    assert ctx.constant(np.array([1, 2])) is ctx.constant(np.array([1, 2]))
    assert ctx.constant(np.float32(-0.0)) is not ctx.constant(np.float32(0.0)), "equal, but not the same bits"
    assert ctx.constant(np.float32(0)) is not ctx.constant(np.int32(0)), "the same bits, but another type"
    assert ctx.full(aval((3,)), 2) is ctx.full(aval((3,)), 2.0)
    assert ctx.full(aval((3,)), 2) is not first


@pytest.mark.parametrize(
    ("target", "number"),
    [
        (aval((2, 3)), -0.0), (aval((), np.int32), 7), (aval((2,), bool), True), (aval((2,), np.complex64),
        1 - 2j),
        (aval((0, 2)), 1.0), (aval((3,), ml_dtypes.bfloat16), 0.1), (aval((3,), ml_dtypes.int4), -3),
    ],
    ids=str,
)  # fmt: skip
def test_full(target: ShapedArray, number: Any) -> None:
    (out,) = run(lambda ctx: [ctx.full(target, number)], [], [target])
    assert bits(out) == bits(np.full(target.shape, number, target.dtype))


# -- operations ------------------------------------------------------------------------------------


def test_element_and_tensor_types() -> None:
    kinds = (bool, np.int8, np.uint64, np.float32, np.complex64, ml_dtypes.bfloat16)
    assert [element_type(t) for t in kinds] == [
        "i1", "i8", "ui64", "f32", "complex<f32>", "bf16",
    ]  # fmt: skip
    assert tensor_type(aval((2, 3))) == "tensor<2x3xf32>" and tensor_type(I) == "tensor<i32>"
    with pytest.raises(TypeError, match="datetime64"):
        element_type("datetime64[s]")
    for dtype in jl.DTYPES:
        if not dtype.name.startswith("float6"):
            with jl.new_context():
                assert element_type(dtype) == str(jl.element_type(dtype))


def test_operation_with_attributes() -> None:
    def body(ctx: Any, x: Any, y: Any) -> list[Any]:
        attrs = "comparison_direction = #stablehlo<comparison_direction LT>"
        return [ctx.op("compare", x, y, out=aval((2,), bool), attrs=attrs)]

    (out,) = run(body, [np.float32([1, 3]), np.float32([2, 2])], [aval((2,), bool)])
    assert out.tolist() == [True, False]


def test_operation_with_several_results_and_regions() -> None:
    """Both sorted keys and the values that travel with them."""

    def body(ctx: Any, keys: Any, vals: Any) -> list[Any]:
        def less(inner: Any, a: Any, b: Any, _c: Any, _d: Any) -> Any:
            attrs = "comparison_direction = #stablehlo<comparison_direction LT>"
            return inner.op("compare", a, b, out=aval((), bool), attrs=attrs)

        region = ctx.region([F, F, I, I], less)
        return ctx.op(
            "sort",
            keys,
            vals,
            out=[keys.aval, vals.aval],
            attrs="dimension = 0 : i64, is_stable = true",
            regions=[region],
        )

    keys, vals = run(body, [np.float32([3, 1, 2]), np.int32([30, 10, 20])], [aval((3,)), aval((3,), np.int32)])
    assert keys.tolist() == [1, 2, 3] and vals.tolist() == [10, 20, 30]


def test_reduction_by_a_region() -> None:
    def body(ctx: Any, x: Any) -> list[Any]:
        add = ctx.region([F, F], lambda inner, a, b: inner.op("add", a, b, out=F))
        zero = ctx.constant(np.float32(0))
        return ctx.op("reduce", x, zero, out=[aval((2,))], attrs=f"dimensions = {ctx.i64([1])}", regions=[add])

    assert run(body, [np.float32([[1, 2, 3], [4, 5, 6]])], [aval((2,))])[0].tolist() == [6, 15]


def test_regions_without_arguments_that_use_outer_values_and_constants() -> None:
    """A region's own constants stay in it: those outside may be used inside, not the other way round."""

    def body(ctx: Any, pred: Any, x: Any) -> list[Any]:
        def scaled(factor: float) -> Any:
            return lambda inner: inner.op("multiply", x, inner.constant(np.float32(factor)), out=F)

        (out,) = ctx.op("if", pred, out=[F], regions=[ctx.region([], scaled(2)), ctx.region([], scaled(3))])
        return [ctx.op("add", out, ctx.constant(np.float32(2)), out=F)]

    assert run(body, [np.array(True), np.float32(5)], [F])[0] == 12
    assert run(body, [np.array(False), np.float32(5)], [F])[0] == 17


def test_while_loop_with_nested_regions() -> None:
    def body(ctx: Any, n: Any) -> list[Any]:
        def cond(inner: Any, i: Any, _x: Any) -> Any:
            attrs = "comparison_direction = #stablehlo<comparison_direction LT>"
            return inner.op("compare", i, n, out=aval((), bool), attrs=attrs)

        def step(inner: Any, i: Any, x: Any) -> list[Any]:
            return [inner.op("add", i, inner.constant(np.int32(1)), out=I), inner.op("multiply", x, x, out=F)]

        start = [ctx.constant(np.int32(0)), ctx.constant(np.float32(2))]
        return ctx.op("while", *start, out=[I, F], regions=[ctx.region([I, F], cond), ctx.region([I, F], step)])

    assert [x.tolist() for x in run(body, [np.int32(3)], [I, F])] == [3, 256.0]


def test_other_dialects_keep_their_name() -> None:
    (out,) = run(lambda ctx, x: [ctx.op("chlo.square", x, out=F)], [np.float32(3)], [F])
    assert out == 9


def test_operations_without_results() -> None:
    text = module_text(
        program(
            lambda ctx, x: (
                ctx.op("custom_call", x, out=[], attrs='call_target_name = "f", has_side_effect = true') or [x]
            ),
            [F],
            [F],
        )
    )
    assert '"stablehlo.custom_call"(%arg0)' in text and jl.parse_module(text)


def test_i64() -> None:
    assert TranslationContext.i64([1, np.int32(0)]) == "array<i64: 1, 0>" and TranslationContext.i64([]) == "array<i64>"


# -- shapes ----------------------------------------------------------------------------------------


def test_shape_helpers() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def body(ctx: Any, x: Any, s: Any) -> list[Any]:
        assert ctx.reshape(x, (2, 3)) is x and ctx.convert(x, np.dtype(np.float32)) is x
        assert ctx.broadcast_in_dim(x, (2, 3), (0, 1)) is x
        spread = ctx.expand_scalars([s, x], (2, 3))
        assert spread[1] is x and ctx.expand_scalars([s], ())[0] is s
        return [
            ctx.reshape(x, (3, 2)), ctx.convert(x, np.int8), ctx.broadcast_in_dim(x, (2, 4, 3), (0, 2)),
            spread[0],
        ]  # fmt: skip

    outs = run(body, [x, np.float32(7)], [aval((3, 2)), aval((2, 3), np.int8), aval((2, 4, 3)), aval((2, 3))])
    np.testing.assert_array_equal(outs[0], x.reshape(3, 2))
    np.testing.assert_array_equal(outs[1], x.astype(np.int8))
    np.testing.assert_array_equal(outs[2], np.broadcast_to(x[:, None], (2, 4, 3)))
    np.testing.assert_array_equal(outs[3], np.full((2, 3), 7))


# -- programs --------------------------------------------------------------------------------------


def _double() -> ClosedJaxpr:
    return program(lambda ctx, x: [ctx.op("add", x, x, out=F)], [F], [F])


def test_calls_of_one_program_share_a_function() -> None:
    double, same = _double(), _double()

    def body(ctx: Any, x: Any) -> list[Any]:
        for closed in (double, double, same):
            (x,) = ctx.call(closed, [x], "double it")
        return [x]

    text = module_text(program(body, [F], [F]))
    assert text.count("func.func private @double_it(") == 1
    assert text.count("func.func private @double_it_1(") == 1, "another program object: another function"
    assert text.count("func.call @double_it(") == 2
    assert run(body, [np.float32(3)], [F])[0] == 24


def test_inlined_programs() -> None:
    double = _double()
    body = lambda ctx, x: ctx.inline(double, ctx.inline(double, [x]))
    assert "func.call" not in module_text(program(body, [F], [F]))
    assert run(body, [np.float32(3)], [F])[0] == 12


def test_called_programs_hold_their_constants() -> None:
    table = np.arange(3, dtype=np.float32)
    closed = stage_closed(lambda x: embed_p.bind(x, table, body=_add, out=(aval((3,)),)), [aval((3,))])
    assert len(closed.consts) == 1
    body = lambda ctx, x: ctx.call(closed, ctx.call(closed, [x]))
    np.testing.assert_array_equal(run(body, [np.ones(3, np.float32)], [aval((3,))])[0], 1 + 2 * table)


def _add(ctx: Any, x: Any, y: Any) -> list[Any]:
    return [ctx.op("add", x, y, out=x.aval)]


def test_functions_of_no_results_and_several() -> None:
    none = program(lambda ctx, x: [], [F], [])
    two = program(lambda ctx, x: [x, ctx.op("negate", x, out=F)], [F], [F, F])

    def body(ctx: Any, x: Any) -> list[Any]:
        assert ctx.call(none, [x]) == []
        return ctx.call(two, [x])

    assert [x.tolist() for x in run(body, [np.float32(3)], [F, F])] == [3, -3]


def test_main_takes_only_what_is_kept() -> None:
    closed = stage_closed(lambda x, y: [y], [F, I])
    builder = ModuleBuilder()
    add_main(builder, closed, [False, True])
    text = builder.text("test")
    assert "@main(%arg1: tensor<i32>)" in text
    assert jl.reference_eval(text, [np.int32(4)])[0] == 4


def test_function_names_are_letters_digits_and_underscores() -> None:
    builder = ModuleBuilder()
    assert [builder.fresh_name(n) for n in ("jvp(f)", "<lambda>", "3d", "", "f", "f", "f_1", "f")] == [
        "jvp_f_", "_lambda_", "_3d", "f", "f_1", "f_2", "f_1_1", "f_3",
    ]  # fmt: skip


def test_platform_reaches_rules() -> None:
    seen = []
    closed = program(lambda ctx, x: [seen.append(ctx.platform) or x], [F], [F])
    builder = ModuleBuilder("cuda")
    add_main(builder, closed, [True])
    assert seen == ["cuda"]


untranslated_p = Primitive("tests.untranslated", abstract_eval=lambda x: x, doc="Can be staged, but not translated.")


def _uses_it(x: Any) -> Any:
    return untranslated_p.bind(x) * 2.0


@pytest.mark.parametrize(
    "fun",
    [
        jit(_uses_it),
        jit(lambda x: jit(_uses_it)(x)),
        jit(lambda x: lax.cond(x > 0.0, _uses_it, lambda x: x, x)),
        jit(lambda x: lax.scan(lambda c, _: (_uses_it(c), None), x, length=2)[0]),
    ],
)
def test_a_missing_translation_names_the_operation_and_the_call(fun: Any) -> None:
    with pytest.raises(MissingRuleError, match=r"'tests\.untranslated'.*has no XLA translation rule") as caught:
        fun(np.float32(1))
    assert "(test_a_missing_translation_names_the_operation_and_the_call)" in str(caught.value)
    (note,) = caught.value.__notes__
    source = _uses_it.__code__
    where = f"{source.co_filename}:{source.co_firstlineno + 1}:"
    assert note.startswith(f"The operation that needs a translation was traced at {where}")
    assert note.endswith("(_uses_it).")


# -- shorthands ------------------------------------------------------------------------------------


def test_slice() -> None:
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    (out,) = run(lambda ctx, x: [ctx.slice(x, (1, 0), (4, 5), (2, 3))], [x], [aval((2, 2), np.int32)])
    np.testing.assert_array_equal(out, x[1:4:2, 0:5:3])
    (out,) = run(lambda ctx, x: [ctx.slice(x, (1, 2), (1, 6))], [x], [aval((0, 4), np.int32)])
    assert out.shape == (0, 4)


def test_pad() -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    (out,) = run(lambda ctx, x: [ctx.pad(x, [(1, 0, 0), (0, 2, 1)])], [x], [aval((3, 7))])
    np.testing.assert_array_equal(out, [[0] * 7, [1, 0, 2, 0, 3, 0, 0], [4, 0, 5, 0, 6, 0, 0]])
    seven = np.float32(7)
    (out,) = run(lambda ctx, x, v: [ctx.pad(x, [(-1, 1, 0), (0, -1, 0)], v)], [x, seven], [aval((2, 2))])
    np.testing.assert_array_equal(out, [[4, 5], [7, 7]])
    (out,) = run(lambda ctx, x: [ctx.pad(x, ())], [seven], [F])
    assert out == 7


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.bool_], ids=name)
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_compare(direction: str, dtype: Any) -> None:
    x, y = np.array([0, 1, 200, 0]).astype(dtype), np.array([0, 0, 1, 1]).astype(dtype)
    (out,) = run(lambda ctx, x, y: [ctx.compare(direction, x, y)], [x, y], [aval((4,), np.bool_)])
    compare = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
               "GE": np.greater_equal}[direction]  # fmt: skip
    np.testing.assert_array_equal(out, compare(x, y))
