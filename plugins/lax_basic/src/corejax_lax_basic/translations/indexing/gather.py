"""StableHLO of gathers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, xla_translations
from corejax.extend.types import SymbolicDim
from corejax_lax_basic.indexing.dimension_numbers import FILL, check_gather
from corejax_lax_basic.indexing.gather import fill_of, gather_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def signed_indices(ctx: TranslationContext, indices: Any, shape: Any) -> Any:
    """Convert indices to int32 or int64; a value beyond int64 is as far outside as its maximum."""
    dtype = indices.aval.dtype
    if dtype == np.uint64:
        top = ctx.full(indices.aval, np.iinfo(np.int64).max)
        indices = ctx.op("minimum", indices, top, out=indices.aval)
    wide = dtype.itemsize > 4 or dtype == np.uint32 or any(_is_large(d) for d in shape)
    return ctx.convert(indices, np.dtype(np.int64 if wide else np.int32))


def _is_large(size: Any) -> bool:
    return not isinstance(size, SymbolicDim) and size > np.iinfo(np.int32).max


def last_starts(ctx: TranslationContext, indices: Any, shape: Any, sizes: Any, axes: Any) -> Any:
    """Return, for each component of an index, the last position at which a window lies inside the operand."""
    starts, dtype = [shape[d] - sizes[d] for d in axes], indices.aval.dtype
    if any(isinstance(n, SymbolicDim) for n in starts):
        text = f"dense<[{', '.join(map(str, starts))}]> : tensor<{len(starts)}xi{8 * dtype.itemsize}>"
        last = ctx.op("constant", out=ShapedArray((len(starts),), dtype), attrs=f"value = {text}")
    else:
        last = ctx.constant(np.array(starts, dtype))
    return ctx.broadcast_in_dim(last, indices.aval.shape, (indices.aval.ndim - 1,))


def clamped(ctx: TranslationContext, indices: Any, last: Any) -> Any:
    """Clamp indices, so that their windows lie inside the operand."""
    return ctx.op("clamp", ctx.full(indices.aval, 0), indices, last, out=indices.aval)


def inside(ctx: TranslationContext, indices: Any, last: Any) -> Any:
    """Return which windows lie inside the operand: a boolean for each place."""
    flags = ctx.op(
        "and",
        ctx.compare("GE", indices, ctx.full(indices.aval, 0)),
        ctx.compare("LE", indices, last),
        out=indices.aval.update(dtype=dtypes.bool_),
    )
    scalar = ShapedArray((), dtypes.bool_)
    body = ctx.region([scalar, scalar], lambda inner, a, b: inner.op("and", a, b, out=scalar))
    axis = indices.aval.ndim - 1
    return ctx.op(
        "reduce",
        flags,
        ctx.full(scalar, True),
        out=[ShapedArray(indices.aval.shape[:-1], dtypes.bool_)],
        attrs=f"dimensions = {ctx.i64((axis,))}",
        regions=[body],
    )[0]


@xla_translations.register(gather_p)
def gather(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    dimension_numbers: Any,
    slice_sizes: Any,
    indices_are_sorted: bool,
    mode: Any,
    fill_value: Any,
    **others: Any,
) -> Any:
    """Lower to `gather`; filled windows are selected afterwards."""
    x, indices = in_vals
    aval = ShapedArray(check_gather(x.aval, indices.aval, dimension_numbers, slice_sizes), x.aval.dtype)
    if aval.size == 0:
        return ctx.full(aval, 0)
    offsets, collapsed, index_map, batching, indices_batching = dimension_numbers
    indices = signed_indices(ctx, indices, x.aval.shape)
    mask = None
    if mode is FILL and index_map:
        mask = inside(ctx, indices, last_starts(ctx, indices, x.aval.shape, slice_sizes, index_map))
    numbers = (
        f"#stablehlo.gather<offset_dims = {list(offsets)}, collapsed_slice_dims = {list(collapsed)}, "
        f"operand_batching_dims = {list(batching)}, start_indices_batching_dims = {list(indices_batching)}, "
        f"start_index_map = {list(index_map)}, index_vector_dim = {indices.aval.ndim - 1}>"
    )
    flag = "true" if indices_are_sorted else "false"
    out = ctx.op(
        "gather",
        x,
        indices,
        out=aval,
        attrs=f"dimension_numbers = {numbers}, slice_sizes = {ctx.i64(slice_sizes)}, indices_are_sorted = {flag}",
    )
    if mask is None:
        return out
    places = tuple(d for d in range(aval.ndim) if d not in offsets)
    mask = ctx.broadcast_in_dim(mask, aval.shape, places)
    return ctx.op("select", mask, out, ctx.full(aval, fill_of(aval.dtype, fill_value)), out=aval)
