"""StableHLO of indices that are counted from the end of an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.indexing.from_front import from_front_p
from corejax_lax_basic.translations.elementwise._family import expanded

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(from_front_p)
def from_front(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    """Lower to a selection between an index and its sum with the size."""
    index, size = expanded(ctx, in_vals)
    is_negative = ctx.compare("LT", index, ctx.full(index.aval, 0))
    return ctx.op("select", is_negative, ctx.op("add", index, size, out=index.aval), index, out=index.aval)
