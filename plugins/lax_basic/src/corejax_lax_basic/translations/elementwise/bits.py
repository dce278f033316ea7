"""StableHLO of the upper half of products, and of counts of bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.elementwise.bits import mulhi_p, population_count_p
from corejax_lax_basic.translations.elementwise._family import expanded

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(population_count_p)
def _population_count(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    bits = dtypes.iinfo(x.aval.dtype).bits
    if bits >= 8:
        return ctx.op("popcnt", x, out=x.aval)
    wide = ctx.convert(x, np.dtype(np.uint8))  # XLA would also count the copies of the sign bit
    wide = ctx.op("and", wide, ctx.full(wide.aval, 2**bits - 1), out=wide.aval)
    return ctx.convert(ctx.op("popcnt", wide, out=wide.aval), x.aval.dtype)


@xla_translations.register(mulhi_p)
def _mulhi(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    x, y = expanded(ctx, in_vals)
    dtype, bits = x.aval.dtype, dtypes.iinfo(x.aval.dtype).bits
    unsigned = dtypes.is_unsigned(dtype)
    wide = np.dtype(np.uint64 if unsigned else np.int64)
    x, y = ctx.convert(x, wide), ctx.convert(y, wide)
    if bits < 64:
        product = ctx.op("multiply", x, y, out=x.aval)
        return ctx.convert(_shifted(ctx, product, bits), dtype)
    return _mulhi_of_64_bits(ctx, x, y)


def _shifted(ctx: TranslationContext, x: Any, bits: int) -> Any:
    name = "shift_right_logical" if dtypes.is_unsigned(x.aval.dtype) else "shift_right_arithmetic"
    return ctx.op(name, x, ctx.full(x.aval, bits), out=x.aval)


def _mulhi_of_64_bits(ctx: TranslationContext, x: Any, y: Any) -> Any:
    """Multiply by halves of the factors, the upper ones signed (Knuth, The Art of Computer Programming, 4.3.1)."""
    aval = x.aval
    mask = ctx.full(aval, 2**32 - 1)

    def times(a: Any, b: Any) -> Any:
        return ctx.op("multiply", a, b, out=aval)

    def plus(a: Any, b: Any) -> Any:
        return ctx.op("add", a, b, out=aval)

    (x_high, x_low), (y_high, y_low) = ((_shifted(ctx, v, 32), ctx.op("and", v, mask, out=aval)) for v in (x, y))
    lowest = ctx.op("shift_right_logical", times(x_low, y_low), ctx.full(aval, 32), out=aval)
    middle = plus(times(x_high, y_low), lowest)
    other = plus(times(x_low, y_high), ctx.op("and", middle, mask, out=aval))
    return plus(plus(times(x_high, y_high), _shifted(ctx, middle, 32)), _shifted(ctx, other, 32))
