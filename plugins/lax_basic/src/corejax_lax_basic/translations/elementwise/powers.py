"""StableHLO of powers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.elementwise.powers import by_squaring, integer_pow_p, one_minus_square_p, pow_p, square_p
from corejax_lax_basic.translations.elementwise._family import expanded, fusible
from corejax_lax_basic.translations.elementwise.complex_numbers import part

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _pow(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    x, y = expanded(ctx, in_vals)
    if dtypes.is_inexact(x.aval.dtype):
        y = ctx.convert(y, x.aval.dtype)
        power = ctx.op("power", x, y, out=x.aval)
        if dtypes.is_complex(x.aval.dtype):
            return _unless_zero(ctx, x, y, power)
        return fusible(ctx, power) if ctx.in_elementwise else power
    return _pow_of_integers(ctx, x, y)


def _unless_zero(ctx: TranslationContext, x: Any, y: Any, power: Any) -> Any:
    """Return a complex power; 0 if the base is 0 and the exponent's real part is positive, for which XLA gives NaN."""
    zero = ctx.full(x.aval, 0)
    re, im = part(ctx, "real", y), part(ctx, "imag", y)
    is_zero, grows = ctx.compare("EQ", x, zero), ctx.compare("GT", re, ctx.full(re.aval, 0))
    finite = ctx.op("is_finite", im, out=grows.aval)
    vanishes = ctx.op("and", is_zero, ctx.op("and", grows, finite, out=grows.aval), out=grows.aval)
    return ctx.op("select", vanishes, zero, power, out=x.aval)


def _pow_of_integers(ctx: TranslationContext, x: Any, y: Any) -> Any:
    """Compute by squaring and multiplying for each bit: XLA's `power` of integers reads six bits of the exponent.

    The unrolled steps become one kernel, in which XLA simplifies constants: `(-1)**n` takes few operations. A loop
    would be several kernels for each bit.
    """
    aval, bits = x.aval, dtypes.iinfo(x.aval.dtype).bits
    zero, one = ctx.full(aval, 0), ctx.full(aval, 1)
    exponent, unsigned = y, dtypes.is_unsigned(aval.dtype)
    if not unsigned:
        negative = ctx.compare("LT", y, zero)
        exponent = ctx.op("select", negative, ctx.op("and", y, one, out=aval), y, out=aval)
        minus_one = ctx.op("negate", one, out=aval)
        unit = ctx.op("or", ctx.compare("EQ", x, one), ctx.compare("EQ", x, minus_one), out=negative.aval)
        vanishes = ctx.op("and", negative, ctx.op("not", unit, out=unit.aval), out=unit.aval)
        bits -= 1  # without the exponent's sign
    power, base = one, x
    for bit in range(bits):
        if bit:
            base = ctx.op("multiply", base, base, out=aval)
        set_ = ctx.compare("NE", ctx.op("and", exponent, ctx.full(aval, 1 << bit), out=aval), zero)
        power = ctx.op("select", set_, ctx.op("multiply", power, base, out=aval), power, out=aval)
    return power if unsigned else ctx.op("select", vanishes, zero, power, out=aval)


def _integer_pow(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, y: int) -> Any:
    (base,) = in_vals
    dtype = base.aval.dtype
    if dtype in NARROW_FLOATS and not 0 <= y <= 2:  # intermediate powers overflow, or are rounded several times
        base = ctx.convert(base, np.dtype(np.float32))
    aval = base.aval
    if not y:
        return ctx.full(aval, 1)
    power = by_squaring(base, abs(y), lambda a, b: ctx.op("multiply", a, b, out=aval))
    return ctx.convert(ctx.op("divide", ctx.full(aval, 1), power, out=aval) if y < 0 else power, dtype)


def _one_minus_square(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    dtype = x.aval.dtype
    if dtype in NARROW_FLOATS:  # the product would round three times
        x = ctx.convert(x, np.dtype(np.float32))
    one = ctx.full(x.aval, 1)
    factors = (ctx.op(name, one, x, out=x.aval) for name in ("add", "subtract"))
    return ctx.convert(ctx.op("multiply", *factors, out=x.aval), dtype)


def _square(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    if dtypes.is_complex(x.aval.dtype):
        return ctx.op("chlo.square", x, out=x.aval)
    return ctx.op("multiply", x, x, out=x.aval)


xla_translations.register(pow_p, _pow)
xla_translations.register(integer_pow_p, _integer_pow)
xla_translations.register(square_p, _square)
xla_translations.register(one_minus_square_p, _one_minus_square)
