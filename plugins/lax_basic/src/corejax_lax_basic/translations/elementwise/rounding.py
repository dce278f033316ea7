"""StableHLO of round and nextafter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.elementwise.rounding import RoundingMethod, nextafter_p, round_p
from corejax_lax_basic.translations.elementwise._family import expanded

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

_OPERATIONS = {
    RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz",
    RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
}


@xla_translations.register(round_p)
def _round(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, rounding_method: RoundingMethod) -> Any:
    (x,) = in_vals
    return ctx.op(_OPERATIONS[rounding_method], x, out=x.aval)


@xla_translations.register(nextafter_p)
def _nextafter(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    x, y = expanded(ctx, in_vals)
    out = ctx.op("chlo.next_after", x, y, out=x.aval)
    if not x.aval.dtype.name.endswith("fnuz"):
        return out
    # Formats without -0.0, for which its bits mean NaN: the number before the least positive one is 0.0.
    zero = ctx.full(x.aval, 0)
    lost = ctx.compare("NE", out, out)
    for v in (x, y):
        lost = ctx.op("and", lost, ctx.compare("EQ", v, v), out=lost.aval)
    return ctx.op("select", lost, zero, out, out=x.aval)
