"""StableHLO of the functions of one operand that take more than one operation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.elementwise.unary import abs_p, exp2_p, log2_p, logistic_p, sign_p
from corejax_lax_basic.translations.elementwise._family import accuracy_text
from corejax_lax_basic.translations.elementwise.complex_ends import function, is_infinite
from corejax_lax_basic.translations.elementwise.complex_numbers import part

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _abs(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    if dtypes.is_unsigned(x.aval.dtype):
        return x
    out = ctx.op("abs", x, out=x.aval.update(dtype=dtypes.real_dtype_of(x.aval.dtype)))
    if dtypes.is_complex(x.aval.dtype):  # infinite even if the other part is NaN, for which XLA gives NaN
        for name in ("real", "imag"):
            infinite = is_infinite(ctx, part(ctx, name, x))
            out = ctx.op("select", infinite, ctx.full(out.aval, math.inf), out, out=out.aval)
    return out


def _sign(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    if dtypes.is_unsigned(x.aval.dtype):  # `sign` takes signed types only
        return ctx.op("minimum", x, ctx.full(x.aval, 1), out=x.aval)
    out = ctx.op("sign", x, out=x.aval)
    if not dtypes.is_float(x.aval.dtype):
        return out
    zero = ctx.full(x.aval, 0)
    return ctx.op("select", ctx.compare("EQ", x, zero), zero, out, out=x.aval)  # `sign` keeps the sign of a zero


def _exp2(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, accuracy: Any = None) -> Any:
    (x,) = in_vals
    if not dtypes.is_complex(x.aval.dtype):
        return ctx.op("power", ctx.full(x.aval, 2), x, out=x.aval)  # exact for integers, unlike exp(x log(2))
    scaled = [
        ctx.op("multiply", v, ctx.full(v.aval, math.log(2)), out=v.aval)
        for v in (part(ctx, "real", x), part(ctx, "imag", x))
    ]
    return function(ctx, "exp", "exponential", ctx.op("complex", *scaled, out=x.aval))


def _log2(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, accuracy: Any = None) -> Any:
    (x,) = in_vals
    dtype = x.aval.dtype
    if dtype in NARROW_FLOATS:
        x = ctx.convert(x, np.dtype(np.float32))
    out = function(ctx, "log", "log", x, accuracy_text(accuracy))
    if not dtypes.is_complex(dtype):
        return ctx.convert(ctx.op("divide", out, ctx.full(out.aval, math.log(2)), out=out.aval), dtype)
    parts = [part(ctx, name, out) for name in ("real", "imag")]
    parts = [ctx.op("divide", v, ctx.full(v.aval, math.log(2)), out=v.aval) for v in parts]
    return ctx.op("complex", *parts, out=out.aval)


def _logistic(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, accuracy: Any = None) -> Any:
    (x,) = in_vals
    dtype = x.aval.dtype
    if dtype in NARROW_FLOATS:  # exp(-x) would overflow in these
        x = ctx.convert(x, np.dtype(np.float32))
    one = ctx.full(x.aval, 1)
    grown = function(ctx, "exp", "exponential", ctx.op("negate", x, out=x.aval), accuracy_text(accuracy))
    out = ctx.op("divide", one, ctx.op("add", one, grown, out=x.aval), out=x.aval)
    return ctx.convert(out, dtype)


xla_translations.register(abs_p, _abs)
xla_translations.register(sign_p, _sign)
xla_translations.register(logistic_p, _logistic)
xla_translations.register(exp2_p, _exp2)
xla_translations.register(log2_p, _log2)
