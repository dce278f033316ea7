"""StableHLO of broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(broadcast_in_dim_p)
def broadcast_in_dim(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, shape: Any, broadcast_dimensions: Any
) -> Any:
    """Lower to `broadcast_in_dim`."""
    return ctx.broadcast_in_dim(in_vals[0], shape, broadcast_dimensions)
