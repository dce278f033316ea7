"""StableHLO of comparisons in the total order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.sorting.total_order import eq_to_p, le_to_p, lt_to_p
from corejax_lax_basic.translations._widening import orderable
from corejax_lax_basic.translations.elementwise._family import expanded

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def compare_total(ctx: TranslationContext, direction: str, x: Any, y: Any) -> Any:
    """Lower to `compare` of two values of one type, with floats in their total order."""
    x, y = orderable(ctx, x), orderable(ctx, y)
    if not dtypes.is_float(x.aval.dtype):
        return ctx.compare(direction, x, y)
    attrs = (
        f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
        "compare_type = #stablehlo<comparison_type TOTALORDER>"
    )
    return ctx.op("compare", x, y, out=x.aval.update(dtype=dtypes.bool_), attrs=attrs)


def _comparison(direction: str) -> Callable[..., Any]:
    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
        # XLA compares constants as if 0.0 and -0.0 were equal: the barrier hides that the operands are constants.
        x, y = (ctx.op("optimization_barrier", v, out=v.aval) for v in expanded(ctx, in_vals))
        return compare_total(ctx, direction, x, y)

    return rule


for _primitive, _direction in ((eq_to_p, "EQ"), (lt_to_p, "LT"), (le_to_p, "LE")):
    xla_translations.register(_primitive, _comparison(_direction))
