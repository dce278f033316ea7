"""StableHLO of `reduce_window` with any program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import ClosedJaxpr, xla_translations
from corejax_lax_basic.translations.windows._reduce_window import reduce_window
from corejax_lax_basic.windows.general import reduce_window_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(reduce_window_p)
def general_reduce_window(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Lower to `reduce_window` with the program as its region."""
    count = len(in_vals) // 2
    operands, initial = in_vals[:count], in_vals[count:]
    return reduce_window(ctx, operands, initial, lambda ctx, *vals: ctx.inline(jaxpr, vals), **params)
