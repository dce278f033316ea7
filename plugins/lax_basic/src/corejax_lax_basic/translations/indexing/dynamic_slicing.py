"""StableHLO of dynamic slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p, starts_dtype

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _starts(ctx: TranslationContext, vals: Any) -> list[Any]:
    """Convert start indices to one dtype, as StableHLO requires."""
    dtype = starts_dtype([v.aval.dtype for v in vals]) if vals else None
    return [ctx.convert(v, dtype) for v in vals]


@xla_translations.register(dynamic_slice_p)
def dynamic_slice(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, slice_sizes: Any) -> Any:
    """Lower to `dynamic_slice`."""
    x, *starts = in_vals
    out = ShapedArray(slice_sizes, x.aval.dtype)
    return ctx.op("dynamic_slice", x, *_starts(ctx, starts), out=out, attrs=f"slice_sizes = {ctx.i64(slice_sizes)}")


@xla_translations.register(dynamic_update_slice_p)
def dynamic_update_slice(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    """Lower to `dynamic_update_slice`."""
    x, update, *starts = in_vals
    return ctx.op("dynamic_update_slice", x, ctx.written(x, update), *_starts(ctx, starts), out=x.aval)
