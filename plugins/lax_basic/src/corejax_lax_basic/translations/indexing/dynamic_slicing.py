"""StableHLO of dynamic slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p


def _starts(ctx: Any, vals: Any) -> list[Any]:
    """Start indices in one dtype, as StableHLO wants them."""
    dtypes = {v.aval.dtype for v in vals}
    if len(dtypes) <= 1:
        return list(vals)
    wide = np.dtype(np.int64 if any(d.itemsize > 4 or d == np.uint32 for d in dtypes) else np.int32)
    return [ctx.convert(v, wide) for v in vals]


@xla_translations.register(dynamic_slice_p)
def dynamic_slice(ctx: Any, in_avals: Any, in_vals: Any, *, slice_sizes: Any) -> Any:
    """`dynamic_slice`."""
    x, *starts = in_vals
    out = ShapedArray(slice_sizes, x.aval.dtype)
    return ctx.op("dynamic_slice", x, *_starts(ctx, starts), out=out, attrs=f"slice_sizes = {ctx.i64(slice_sizes)}")


@xla_translations.register(dynamic_update_slice_p)
def dynamic_update_slice(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """`dynamic_update_slice`."""
    x, update, *starts = in_vals
    return ctx.op("dynamic_update_slice", x, update, *_starts(ctx, starts), out=x.aval)
