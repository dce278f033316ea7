"""Dynamic slices whose starts differ in a batch, said with comparisons and sums.

An axis of which a block is taken is compared with the positions wanted and what does not match is left out of a
sum. That costs (block size) x (axis size), which compilers fuse into one loop; a gather primitive will replace it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import dtypes, get_aval
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.iota import broadcasted_iota
from corejax_lax_basic.elementwise.arithmetic import add_p, max_p, min_p, sub_p
from corejax_lax_basic.elementwise.comparison import eq_p, ge_p, lt_p
from corejax_lax_basic.elementwise.logical import and_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.reductions.reduce import reduce_or_p, reduce_sum_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim, broadcast_in_dim_p
from corejax_lax_basic.shape.rearranging import moveaxis

_INDEX = np.dtype(np.int32)


def take_blocks(axis_size: int, x: Any, starts: Sequence[Any], dims: Sequence[int | None], sizes: Ints) -> Any:
    """`x[i][starts[i] : starts[i] + sizes]` for each `i` of the batch, along the axes whose starts differ in it.

    Args:
        axis_size: size of the batch.
        x: operands, the batch in front.
        starts: a start for each axis behind it: a scalar, or a vector over the batch.
        dims: 0 for a vector, None for a scalar: `x` is the block already along this axis.
        sizes: shape of the block.
    """
    for axis, (start, d, size) in enumerate(zip(starts, dims, sizes, strict=True), 1):
        length = get_aval(x).shape[axis]
        if d is not None and size < length:
            first = _clamped(start, length - size)
            wanted = _plus_iota(first, axis_size, size)
            x = take_along(x, wanted, axis)
    return x


def take_along(x: Any, wanted: Any, axis: int) -> Any:
    """The elements of an axis at positions that differ in a batch.

    Args:
        x: array with the batch in front, or without batch (`wanted` then is for all).
        wanted: int32 positions `(batch, count)`, or `(count,)`.
        axis: the axis of `x`.

    Returns:
        `x` with `count` elements along that axis; zeros where a position does not exist.
    """
    shape = get_aval(x).shape
    count, ndim = get_aval(wanted).shape[-1], len(shape)
    out_shape = (*shape[:axis], count, *shape[axis + 1 :], shape[axis])
    # The axis goes last, to be summed over; the new one takes its place.
    spread = broadcast_in_dim_p.bind(
        moveaxis(x, axis, ndim - 1),
        shape=out_shape,
        broadcast_dimensions=tuple(d for d in range(ndim + 1) if d != axis),
    )
    batched = (0, axis) if get_aval(wanted).ndim == 2 else (axis,)
    here = broadcasted_iota(_INDEX, out_shape, ndim)
    match = eq_p.bind(here, broadcast_in_dim_p.bind(wanted, shape=out_shape, broadcast_dimensions=batched))
    return _sum_where(match, spread, ndim)


def _sum_where(mask: Any, x: Any, axis: int) -> Any:
    aval = get_aval(x)
    if dtypes.is_bool(aval.dtype):
        return reduce_or_p.bind(and_p.bind(mask, x), axes=(axis,))
    return reduce_sum_p.bind(select_n_p.bind(mask, np.zeros((), aval.dtype)[()], x), axes=(axis,))


def put_blocks(axis_size: int, x: Any, update: Any, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """`x[i]` with the block at `starts[i]` replaced by `update[i]`, for each `i` of the batch.

    Args:
        axis_size: size of the batch.
        x: operands, the batch in front.
        update: blocks, the batch in front.
        starts: a start for each axis behind it: a scalar, or a vector over the batch.
        dims: 0 for a vector, None for a scalar.
    """
    shape = get_aval(x).shape
    inside = None
    for axis, (start, d) in enumerate(zip(starts, dims, strict=True), 1):
        size, length = get_aval(update).shape[axis], shape[axis]
        if size == length:
            continue
        first = _clamped(start, length - size)
        if d is None:
            first = broadcast_in_dim(first, (axis_size,), ())
        # Position of each place of the axis inside the block.
        first = broadcast_in_dim_p.bind(first, shape=(axis_size, length), broadcast_dimensions=(0,))
        offset = sub_p.bind(broadcasted_iota(_INDEX, (axis_size, length), 1), first)
        hit = and_p.bind(ge_p.bind(offset, np.int32(0)), lt_p.bind(offset, np.int32(size)))
        hit = broadcast_in_dim_p.bind(hit, shape=shape, broadcast_dimensions=(0, axis))
        inside = hit if inside is None else and_p.bind(inside, hit)
        update = take_along(update, offset, axis)
    return update if inside is None else select_n_p.bind(inside, x, update)


def _clamped(start: Any, last: int) -> Any:
    """A start brought inside its operand, as int32."""
    aval = get_aval(start)
    if dtypes.is_unsigned(aval.dtype) or aval.dtype.itemsize > _INDEX.itemsize:  # compare before it could wrap
        bound = min(last, int(dtypes.iinfo(aval.dtype).max))
        start = min_p.bind(start, np.asarray(bound, aval.dtype)[()])
        start = max_p.bind(start, np.zeros((), aval.dtype)[()])
    start = convert_element_type(start, _INDEX)
    return max_p.bind(min_p.bind(start, np.int32(last)), np.int32(0))


def _plus_iota(first: Any, axis_size: int, count: int) -> Any:
    spread = broadcast_in_dim_p.bind(first, shape=(axis_size, count), broadcast_dimensions=(0,))
    return add_p.bind(spread, broadcasted_iota(_INDEX, (axis_size, count), 1))
