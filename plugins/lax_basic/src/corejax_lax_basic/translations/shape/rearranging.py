"""StableHLO of primitives that rearrange elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.shape.rearranging import reshape_p, rev_p, squeeze_p, transpose_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(reshape_p)
def reshape(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, new_sizes: Any) -> Any:
    """Lower to `reshape`."""
    return ctx.reshape(in_vals[0], new_sizes)


@xla_translations.register(squeeze_p)
def squeeze(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, dimensions: Any) -> Any:
    """Lower to `reshape`."""
    return ctx.reshape(in_vals[0], squeeze_p.abstract(tuple(in_avals), {"dimensions": dimensions})[0].shape)


@xla_translations.register(transpose_p)
def transpose(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, permutation: Any) -> Any:
    """Lower to `transpose`."""
    out = transpose_p.abstract(tuple(in_avals), {"permutation": permutation})[0]
    return ctx.op("transpose", in_vals[0], out=out, attrs=f"permutation = {ctx.i64(permutation)}")


@xla_translations.register(rev_p)
def rev(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, dimensions: Any) -> Any:
    """Lower to `reverse`."""
    return ctx.op("reverse", in_vals[0], out=in_avals[0], attrs=f"dimensions = {ctx.i64(dimensions)}")
