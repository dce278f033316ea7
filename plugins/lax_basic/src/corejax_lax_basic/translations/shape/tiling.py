"""StableHLO of `tile`: new axes for the copies, broadcast and merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.shape.tiling import tile_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(tile_p)
def tile(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, reps: Any) -> Any:
    """Lower to `broadcast_in_dim` and `reshape`."""
    (x,) = in_vals
    shape = x.aval.shape
    split = tuple(d for pair in zip(reps, shape, strict=True) for d in pair)
    copies = ctx.broadcast_in_dim(x, split, tuple(range(1, 2 * len(shape), 2)))
    return ctx.reshape(copies, tuple(n * r for n, r in zip(shape, reps, strict=True)))
