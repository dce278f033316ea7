"""`dynamic_slice` and `dynamic_update_slice`: a block of static size at a position that is data.

The start is clamped, so that the block lies inside the operand. There is one scalar start operand for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    Tracer,
    as_array,
    dtypes,
    get_aval,
    is_undef_primal,
    move_batch_axis,
    vmap_rules,
)
from corejax.extend.transforms import zero_cotangent
from corejax.extend.types import SymbolicDim, min_dim
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, canonical_axis, canonical_shape
from corejax_lax_basic._base.derivatives import linear_in
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.indexing.dimension_numbers import CLIP, GatherDimensionNumbers, ScatterDimensionNumbers
from corejax_lax_basic.indexing.from_front import from_front
from corejax_lax_basic.indexing.gather import gather_p
from corejax_lax_basic.indexing.scatter import scatter_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p, expand_dims
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import squeeze_p

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_slice_p",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p",
]

# -- public ------------------------------------------------------------------------------------------------------


def _start_operands(name: str, operand: Any, start_indices: Any, negative: bool | Sequence[bool]) -> list[Any]:
    """Return one scalar for each axis; negative ones are counted from the end if they are allowed."""
    aval = get_aval(operand)
    if isinstance(start_indices, tuple | list):
        starts = list(start_indices)
    elif get_aval(start_indices).ndim == 1:
        array = as_array(start_indices)
        starts = [array[i] for i in range(array.shape[0])]
    else:
        raise TypeError(f"{name}: start_indices must be a sequence of scalars or a vector, got {start_indices!r}")
    kinds = {get_aval(i) for i in starts if type(i) is not int}
    if len({i.dtype for i in kinds if not i.weak_type}) > 1:
        shown = ", ".join(sorted(i.dtype.name for i in kinds))
        raise TypeError(f"{name}: index arguments to {name} must be integers of the same type, got {shown}")
    if len(starts) != aval.ndim:
        raise TypeError(f"{name}: operand {aval.str_short()} has {aval.ndim} axes, got {len(starts)} start indices")
    allowed = [negative] * aval.ndim if isinstance(negative, bool) else [bool(n) for n in negative]
    if len(allowed) != aval.ndim:
        raise TypeError(
            f"{name}: allow_negative_indices must have an entry for each axis of {aval.str_short()}: {negative}"
        )
    return [_start(i, n, a) for i, n, a in zip(starts, aval.shape, allowed, strict=True)]


def _start(index: Any, size: int, negative: bool) -> Any:
    """Return a start counted from the front; if `negative` is True, negative ones count from the end.

    Narrow integers become int32, which counts far enough.
    """
    symbolic = isinstance(size, SymbolicDim)
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        if symbolic and negative:
            index = np.asarray(index, dtypes.default_int_dtype())  # the size decides whether it is out of bounds
        else:
            return _known_start(int(index), size, negative)
    index = as_array(index)
    dtype = index.aval.dtype
    if not dtypes.is_integer(dtype) or index.aval.ndim:
        return index  # abstract evaluation refuses anything but integer scalars
    if dtype.itemsize < 4:
        index, dtype = convert_element_type(index, np.int32), np.dtype(np.int32)
    if not negative:
        return index
    if not isinstance(index, Tracer) and not symbolic:
        value = int(np.asarray(index))
        return index if value >= 0 else as_array(np.asarray(value + size, dtype))
    return from_front(index, size)


def _known_start(value: int, size: int, negative: bool) -> Any:
    if value < 0 and not negative:
        raise ValueError(f"start {value} of an axis of size {size} is negative, and allow_negative_indices is False")
    value += size if value < 0 else 0
    return as_array(np.asarray(min_dim(max(value, 0), size), dtypes.default_int_dtype()))


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """Return a block of an array.

    Args:
        operand: the array.
        start_indices: the block's first index along each axis: a sequence of integer scalars, or a vector. Negative
            ones count from the end; then all are clamped, so that the block lies inside the operand.
        slice_sizes: the block's shape, static.
        allow_negative_indices: whether negative indices count from the end, for all axes or for each. If not, they are
            clamped to 0, which saves operations if no index is negative.

    Raises:
        TypeError: the starts are not one integer for each axis, or the block is larger than the operand.
    """
    starts = _start_operands("dynamic_slice", operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=canonical_shape(slice_sizes))


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Any:
    """Replace a block of an array.

    Args:
        operand: the array.
        update: the block, of the operand's dtype and rank.
        start_indices: the block's first index along each axis, as in `dynamic_slice`.
        allow_negative_indices: as in `dynamic_slice`.

    Raises:
        TypeError: dtypes or ranks differ, the block is larger than the operand, or a start is not an integer scalar.
    """
    starts = _start_operands("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def _one_start(ndim: int, axis: int, start: Any) -> list[Any]:
    return [start if d == axis else 0 for d in range(ndim)]


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Any:
    """Slice along one axis, as `dynamic_slice`."""
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape), "dynamic_slice_in_dim: axis")
    sizes = (*shape[:axis], slice_size, *shape[axis + 1 :])
    starts = _one_start(len(shape), axis, start_index)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=bool(allow_negative_indices))


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """Return one element along an axis; the axis is kept with size 1 or dropped."""
    axis = canonical_axis(axis, get_aval(operand).ndim, "dynamic_index_in_dim: axis")
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze_p.bind(out, dimensions=(axis,))


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Replace a block along one axis, as `dynamic_update_slice`."""
    ndim = get_aval(operand).ndim
    axis = canonical_axis(axis, ndim, "dynamic_update_slice_in_dim: axis")
    starts = _one_start(ndim, axis, start_index)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=bool(allow_negative_indices))


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Replace one element along an axis; `update` may lack the axis.

    Raises:
        TypeError: the rank of `update` is neither that of the operand nor one less.
    """
    ndim, update_ndim = get_aval(operand).ndim, get_aval(update).ndim
    axis = canonical_axis(axis, ndim, "dynamic_update_index_in_dim: axis")
    if update_ndim not in (ndim, ndim - 1):
        raise TypeError(
            f"dynamic_update_index_in_dim: an operand of {ndim} dimensions takes an update of {ndim - 1} or {ndim}, "
            f"got {get_aval(update).str_short()}"
        )
    if update_ndim != ndim:
        update = expand_dims(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


# -- rules -------------------------------------------------------------------------------------------------------


def _check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray], sizes: Ints, what: str) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise TypeError(
            f"{name}: operand {x.str_short()} has {x.ndim} axes, got {len(starts)} start indices and {what} {sizes}"
        )
    for axis, (n, size) in enumerate(zip(x.shape, sizes, strict=True)):
        if not 0 <= size <= n:
            raise TypeError(f"{name}: {what} {sizes} does not fit inside operand {x.str_short()} on axis {axis}")
    for axis, start in enumerate(starts):
        if start.ndim or not dtypes.is_integer(start.dtype):
            raise TypeError(
                f"{name}: start indices must be integer scalars, but that of axis {axis} is {start.str_short()}"
            )


def _block(shape: Ints, starts: Sequence[Any], sizes: Ints) -> tuple[slice, ...]:
    """Return the clamped block as NumPy's slices."""
    out = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        first = min(max(int(start), 0), n - size)
        out.append(slice(first, first + size))
    return tuple(out)


def _slice_impl(x: Any, *starts: Any, slice_sizes: Ints) -> Any:
    return x[_block(x.shape, starts, slice_sizes)]


@takes("dynamic_slice", 1, at_least=True)
def _slice_abstract_eval(x: ShapedArray, *starts: ShapedArray, slice_sizes: Ints) -> ShapedArray:
    _check_starts("dynamic_slice", x, starts, slice_sizes, "slice_sizes")
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: Ints) -> list[Any]:
    return [dynamic_update_slice_p.bind(zero_cotangent(x.aval), ct, *starts), *(None for _ in starts)]


def _slice_vmap(axis_size: int, vals: Any, dims: Any, *, slice_sizes: Ints) -> Any:
    (x, *starts), (d, *start_dims) = vals, dims
    if any(b is not None for b in start_dims):
        numbers = GatherDimensionNumbers(tuple(range(len(starts))), (), tuple(range(len(starts))))
        options = {"unique_indices": True, "indices_are_sorted": True, "mode": CLIP, "fill_value": None}
        indices, d_indices = _batched_starts(axis_size, starts, start_dims)
        params = {"dimension_numbers": numbers, "slice_sizes": slice_sizes, **options}
        return vmap_rules.lookup(gather_p)(axis_size, (x, indices), (d, d_indices), **params)
    starts.insert(d, np.zeros((), get_aval(starts[0]).dtype)[()] if starts else np.int32(0))
    sizes = (*slice_sizes[:d], axis_size, *slice_sizes[d:])
    return dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), d


def _batched_starts(axis_size: int, starts: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    """Return starts as the components of an index, with the batch in front: `(axis_size, len(starts))`."""
    avals = [get_aval(s) for s in starts]
    dtype = starts_dtype([aval.dtype for aval in avals])
    columns = []
    for start, d, aval in zip(starts, dims, avals, strict=True):
        start = start if aval.dtype == dtype else convert_element_type(start, dtype)
        axes = () if d is None else (0,)
        columns.append(broadcast_in_dim_p.bind(start, shape=(axis_size, 1), broadcast_dimensions=axes))
    return concatenate(columns, 1) if len(columns) > 1 else columns[0], 0


def starts_dtype(dtypes_: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return a common dtype for starts: their own, or a signed one that counts as far as any of them."""
    if len(set(dtypes_)) == 1:
        return dtypes_[0]
    return np.dtype(np.int64 if any(d.itemsize > 4 or d == np.uint32 for d in dtypes_) else np.int32)


dynamic_slice_p = Primitive(
    "dynamic_slice",
    linear_in=(0,),
    tags=("structural",),
    impl=_slice_impl,
    abstract_eval=_slice_abstract_eval,
    vmap=_slice_vmap,
    transpose=_slice_transpose,
    doc="Return a block of static size at a start that is data, clamped so that the block lies inside.",
)
linear_in(dynamic_slice_p)


def _update_impl(x: Any, update: Any, *starts: Any) -> Any:
    out = np.array(x)
    out[_block(x.shape, starts, update.shape)] = update
    return out


@takes("dynamic_update_slice", 2, at_least=True)
def _update_abstract_eval(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    name = "dynamic_update_slice"
    if x.dtype != update.dtype:
        raise TypeError(f"{name}: operand {x.str_short()} and update {update.str_short()} differ in dtype; convert one")
    if x.ndim != update.ndim:
        raise TypeError(f"{name}: operand {x.str_short()} and update {update.str_short()} differ in rank")
    _check_starts(name, x, starts, update.shape, "an update of shape")
    return ShapedArray(x.shape, x.dtype, x.weak_type and update.weak_type)


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list[Any]:
    ct_x = ct_update = None
    shape = (update.aval if is_undef_primal(update) else get_aval(update)).shape
    if is_undef_primal(x):
        zeros = zero_cotangent(get_aval(ct).update(shape=shape))
        ct_x = dynamic_update_slice_p.bind(ct, zeros, *starts)
    if is_undef_primal(update):
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape)
    return [ct_x, ct_update, *(None for _ in starts)]


def _update_vmap(axis_size: int, vals: Any, dims: Any) -> Any:
    (x, update, *starts), (d, d_update, *start_dims) = vals, dims
    if any(b is not None for b in start_dims):
        numbers = ScatterDimensionNumbers(tuple(range(len(starts))), (), tuple(range(len(starts))))
        options = {"unique_indices": True, "indices_are_sorted": True, "mode": CLIP}
        indices, d_indices = _batched_starts(axis_size, starts, start_dims)
        if not get_aval(update).weak_type:
            x = convert_element_type(x, get_aval(x).dtype)  # the scatter takes its weak type from `x`
        operands, places = (x, indices, update), (d, d_indices, d_update)
        return vmap_rules.lookup(scatter_p)(axis_size, operands, places, dimension_numbers=numbers, **options)
    x, update = move_batch_axis(axis_size, d, 0, x), move_batch_axis(axis_size, d_update, 0, update)
    starts.insert(0, np.zeros((), get_aval(starts[0]).dtype)[()] if starts else np.int32(0))
    return dynamic_update_slice_p.bind(x, update, *starts), 0


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    linear_in=(0, 1),
    tags=("structural",),
    impl=_update_impl,
    abstract_eval=_update_abstract_eval,
    vmap=_update_vmap,
    transpose=_update_transpose,
    doc="Replace a block at a start that is data, clamped so that the block lies inside.",
)
linear_in(dynamic_update_slice_p)
