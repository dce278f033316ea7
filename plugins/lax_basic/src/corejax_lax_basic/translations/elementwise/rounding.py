"""StableHLO of round."""

from __future__ import annotations

from typing import Any

from corejax.extend import xla_translations
from corejax_lax_basic.elementwise.rounding import RoundingMethod, round_p

_OPERATIONS = {
    RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz",
    RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
}


@xla_translations.register(round_p)
def _round(ctx: Any, in_avals: Any, in_vals: Any, *, rounding_method: RoundingMethod) -> Any:
    (x,) = in_vals
    return ctx.op(_OPERATIONS[rounding_method], x, out=x.aval)
