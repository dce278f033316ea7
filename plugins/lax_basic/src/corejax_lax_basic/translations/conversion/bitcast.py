"""StableHLO of bitcast_convert_type and reduce_precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.conversion.bitcast import bitcast_convert_type_p
from corejax_lax_basic.conversion.precision import reduce_precision_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(bitcast_convert_type_p)
def _bitcast_convert_type(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, new_dtype: Any) -> Any:
    (x,) = in_vals
    if x.aval.dtype == new_dtype:
        return x
    return ctx.op(
        "bitcast_convert", x, out=bitcast_convert_type_p.abstract(tuple(in_avals), {"new_dtype": new_dtype})[0]
    )


@xla_translations.register(reduce_precision_p)
def _reduce_precision(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, exponent_bits: int, mantissa_bits: int
) -> Any:
    (x,) = in_vals
    attrs = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
    return ctx.op("reduce_precision", x, out=x.aval, attrs=attrs)
