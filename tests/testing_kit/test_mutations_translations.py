"""The kit finds translations that are wrong for some dtypes and numbers only, and rules that change weak types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.lax as lax
from corejax.extend import primitives, xla_translations
from corejax_testing import verify
from tests.testing_kit import toys
from tests.testing_kit.toys import EXAMPLES, toy

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def _through(dtype: Any, kinds: str) -> Any:
    """A translation that computes in another dtype where the operands are of these kinds."""

    def change(rule: Any) -> Any:
        def wrong(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
            if in_avals[0].dtype.kind not in kinds or in_avals[0].dtype == dtype:
                return rule(ctx, in_avals, in_vals, **params)
            narrow = [ctx.convert(v, np.dtype(dtype)) for v in in_vals]
            out = rule(ctx, [v.aval for v in narrow], narrow, **params)
            return ctx.convert(out, in_avals[0].dtype)

        return wrong

    return change


def _naive(operation: str) -> Any:
    """expm1 and log1p by their definitions, in the operand's dtype."""

    def change(rule: Any) -> Any:
        def wrong(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
            (x,), aval = in_vals, in_avals[0].strip_weak_type()
            if aval.dtype.kind == "c":
                return rule(ctx, in_avals, in_vals)
            one = ctx.full(aval, 1.0)
            if operation == "expm1":
                return ctx.op("subtract", ctx.op("exponential", x, out=aval), one, out=aval)
            return ctx.op("log", ctx.op("add", x, one, out=aval), out=aval)

        return wrong

    return change


def _zero_minus(rule: Any) -> Any:
    def wrong(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        aval = in_avals[0].strip_weak_type()
        return ctx.op("subtract", ctx.full(aval, 0), in_vals[0], out=aval)

    return wrong


def _clamped_to_int8(rule: Any) -> Any:
    """Sums of bytes saturate in place of wrapping."""

    def wrong(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        if in_avals[0].dtype.name not in ("int8", "uint8"):
            return rule(ctx, in_avals, in_vals, **params)
        wide = [ctx.convert(v, np.dtype(np.int32)) for v in in_vals]
        out = rule(ctx, [v.aval for v in wide], wide, **params)
        info = np.iinfo(in_avals[0].dtype)
        low, high = (ctx.full(out.aval, int(n)) for n in (info.min, info.max))
        return ctx.convert(ctx.op("clamp", low, out, high, out=out.aval), in_avals[0].dtype)

    return wrong


def _by_way_of(dtype: Any) -> Any:
    """A conversion that makes a stop."""

    def change(rule: Any) -> Any:
        def wrong(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
            there = ctx.convert(in_vals[0], np.dtype(dtype))
            return rule(ctx, [there.aval], [there], **params)

        return wrong

    return change


MISTAKES: dict[str, tuple[str, Any]] = {
    "int32 through float32: add": ("add", _through(np.float32, "i")),
    "int32 through float32: max": ("max", _through(np.float32, "iu")),
    "int64 through float64": ("sub", _through(np.float64, "iu")),
    "int32 through float32: reduce_sum": ("reduce_sum", _through(np.float32, "iu")),
    "int32 through float32: reshape": ("reshape", _through(np.float32, "iu")),
    "unsigned through signed bytes": ("reduce_max", _through(np.int8, "u")),
    "float32 through float16": ("tanh", _through(np.float16, "f")),
    "expm1 by its definition": ("expm1", _naive("expm1")),
    "log1p by its definition": ("log1p", _naive("log1p")),
    "0 - x": ("neg", _zero_minus),
    "bytes saturate: add": ("add", _clamped_to_int8),
    "bytes saturate: reduce_sum": ("reduce_sum", _clamped_to_int8),
    "bytes saturate: cumsum": ("cumsum", _clamped_to_int8),
    "conversion by way of float32": ("convert_element_type", _by_way_of(np.float32)),
    "conversion by way of int32": ("convert_element_type", _by_way_of(np.int32)),
    "conversion by way of int8": ("convert_element_type", _by_way_of(np.int8)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_translation_is_caught(mistake: str) -> None:
    name, change = MISTAKES[mistake]
    primitive = primitives[name]
    before = xla_translations.rule_of(primitive)
    xla_translations.register(primitive, change(before.fn), override=True, **before.flags)
    results = verify(primitive, checks=["xla", "special", "conversions"], quick=True)
    assert next((r.rule for r in results if r.failed), None) == "xla_translation"


def _plus_zero(axis_size: int, vals: Any, dims: Any) -> Any:
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return lax.add(out, lax.full_like(out, 0)), dim


def _jvp_plus_zero(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return lax.add(out, lax.full_like(out, 0)), tangent


@pytest.mark.parametrize(("kind", "rule"), [("vmap", _plus_zero), ("jvp", _jvp_plus_zero)])
def test_sign_of_zero_is_lost(kind: str, rule: Any) -> None:
    with toy("toy.mulsin", {kind: rule}) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"], checks=["special"], quick=True)
    assert (result.failed, result.rule) == (True, kind), result.report()


# -- weak types --------------------------------------------------------------------------------------------------------


def _strong_jvp(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return lax.convert_element_type_p.bind(out, new_dtype=out.dtype, weak_type=False), tangent


def _weak_jvp(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return lax.convert_element_type_p.bind(out, new_dtype=out.dtype, weak_type=True), tangent


def _weak_vmap(axis_size: int, vals: Any, dims: Any) -> Any:
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return lax.convert_element_type_p.bind(out, new_dtype=out.dtype, weak_type=True), dim


def _strong_vmap(axis_size: int, vals: Any, dims: Any) -> Any:
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return lax.mul(out, lax.full_like(out, np.float32(1))), dim


WEAK = {
    "jvp strong": ("jvp", _strong_jvp),
    "jvp weak": ("jvp", _weak_jvp),
    "vmap weak": ("vmap", _weak_vmap),
    "vmap strong": ("vmap", _strong_vmap),
}


@pytest.mark.parametrize("mistake", ["", *WEAK])
def test_rule_that_changes_weak_types(mistake: str) -> None:
    kind, rule = WEAK.get(mistake, ("", None))
    with toy("toy.mulsin", {kind: rule} if rule else {}) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"], checks=["weak_results"], quick=True)
    assert (result.status, result.rule) == (("failed", kind) if mistake else ("passed", None)), result.report()


@pytest.mark.parametrize("name", ["dynamic_slice", "dynamic_update_slice", "pad"])
def test_batches_of_weakly_typed_numbers_stay_so(name: str) -> None:
    (result,) = verify(primitives[name], checks=["weak_results"])
    assert result.status == "passed", result.report()


# -- dtypes, sizes and numbers that only the check `extremes` has ------------------------------------------------------


def _not_of_a_byte(x: Any, y: Any) -> Any:
    if x.itemsize == 1:
        raise TypeError("data type '<f1' not understood")
    return np.multiply(x, np.sin(y))


def _wrong_in(dtype: str) -> Any:
    def translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        out = toys.mulsin_xla(ctx, in_avals, in_vals)
        return ctx.op("negate", out, out=out.aval) if out.aval.dtype.name == dtype else out

    return translation


def _finite(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """Largest numbers in place of infinite ones."""
    out = toys.mulsin_xla(ctx, in_avals, in_vals)
    if out.aval.dtype != np.float32:
        return out
    most = float(np.finfo(np.float32).max)
    return ctx.op("clamp", ctx.full(out.aval, -most), out, ctx.full(out.aval, most), out=out.aval)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("impl", _not_of_a_byte),
        ("xla_translation", _wrong_in("float8_e4m3fn")),
        ("xla_translation", _finite),
    ],
)
def test_mistake_in_one_dtype_or_number_is_caught(kind: str, rule: Any) -> None:
    with toy("toy.mulsin", {kind: rule}) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"], checks=["extremes"], quick=True)
    assert (result.failed, result.rule) == (True, kind), result.report()
