"""StableHLO of select_n and clamp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.elementwise.select import clamp_p, select_n_p
from corejax_lax_basic.translations.elementwise._family import expanded, one_op

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(select_n_p)
def _select_n(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    which, *cases = expanded(ctx, in_vals)
    if len(cases) == 1:
        return cases[0]
    if dtypes.is_bool(which.aval.dtype):
        return ctx.op("select", which, cases[1], cases[0], out=cases[0].aval)
    return _halved(ctx, which, cases, 0)


def _halved(ctx: TranslationContext, which: Any, cases: Sequence[Any], first: int) -> Any:
    """Select a case by binary search; `first` is the index of the first of `cases`."""
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    below = ctx.compare("LT", which, ctx.full(which.aval, first + middle))
    low, high = _halved(ctx, which, cases[:middle], first), _halved(ctx, which, cases[middle:], first + middle)
    return ctx.op("select", below, low, high, out=low.aval)


xla_translations.register(clamp_p, one_op(clamp_p, "clamp"))
