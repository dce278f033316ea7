"""`gather`: windows of an array at positions that are data.

    gather : a[*s] i[*places,k] -> a[places and windows]

StableHLO's `gather`, with a mode for windows that do not lie inside the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defjvp, dtypes, get_aval, impl_rules
from corejax.extend.speed import HostCode
from corejax.extend.transforms import zero_cotangent
from corejax.extend.types import from_numbers
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, canonical_shape, ints, sequence
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic.elementwise.arithmetic import add_p, rem_p
from corejax_lax_basic.elementwise.comparison import lt_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.indexing._host_windows import collect, plan_of
from corejax_lax_basic.indexing.dimension_numbers import (
    FILL,
    PROMISE,
    GatherDimensionNumbers,
    GatherScatterMode,
    canonical_mode,
    canonical_numbers,
    check_gather,
    scatter_numbers,
)
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import moveaxis

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["gather", "gather_p", "index_take"]


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Any:
    """Return windows of an array at positions that are data.

    Args:
        operand: the array.
        start_indices: integers; the last axis holds the components of a window's first position.
        dimension_numbers: the roles of the axes.
        slice_sizes: size of the windows on each axis of the operand.
        unique_indices: promise that windows do not overlap, which makes derivatives cheaper.
        indices_are_sorted: promise that indices increase.
        mode: treatment of windows that are not inside the operand: `"clip"` moves them inside, `"fill"` gives
            `fill_value`; `"promise_in_bounds"` and None promise that all are inside, and move others inside all the
            same.
        fill_value: a number; by default NaN, the least signed or greatest unsigned integer, or True.

    Raises:
        TypeError: dimension numbers, indices or sizes do not fit the operand.
        ValueError: `mode` is none of these.
    """
    mode = PROMISE if mode is None else canonical_mode("gather", mode)
    if not (fill_value is None or isinstance(fill_value, int | float | complex | np.generic)):
        raise TypeError(f"gather: fill_value must be a number, got {fill_value!r} of type {type(fill_value).__name__}")
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=canonical_numbers("gather", dimension_numbers, GatherDimensionNumbers),
        slice_sizes=canonical_shape(slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_value if mode is FILL else None,
    )


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Any:
    """Take elements along some axes, at positions that wrap around.

    Args:
        src: the array.
        idxs: a vector of integers for each of the axes, all of one length.
        axes: the axes to index, counted from the front.

    Returns:
        An array with the axis of the vectors first, followed by the other axes of `src`.

    Raises:
        TypeError: `idxs` does not have one vector for each axis, or they are not integers of one type.
    """
    shape = get_aval(src).shape
    axes = ints(axes, "index_take: axes")
    if any(not 0 <= axis < len(shape) for axis in axes) or len(set(axes)) != len(axes):
        raise TypeError(f"index_take: axes {axes} are not distinct axes of an array of {len(shape)}, from the front")
    idxs = sequence(idxs, "index_take: idxs")
    avals = [get_aval(i) for i in idxs]
    if len(avals) != len(axes) or any(
        a.ndim != 1 or a is not avals[0] or not dtypes.is_integer(a.dtype) for a in avals
    ):
        shown = ", ".join(a.str_short() for a in avals)
        raise TypeError(
            f"index_take: idxs must be a vector of integers of one type for each of the axes {axes}, got {shown}"
        )
    parts = []
    for i, axis in zip(idxs, axes, strict=True):
        size = make_scalar(shape[axis], get_aval(i).dtype)
        rest = rem_p.bind(i, size)
        if not dtypes.is_unsigned(get_aval(i).dtype):
            negative = lt_p.bind(rest, make_scalar(0, get_aval(i).dtype))
            rest = select_n_p.bind(negative, rest, add_p.bind(rest, size))
        parts.append(expand_dims(rest, 1))
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), tuple(sorted(axes)), axes)
    sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return gather(src, concatenate(parts, 1) if len(parts) > 1 else parts[0], numbers, sizes)


def fill_of(dtype: np.dtype[Any], fill_value: Any) -> Any:
    """Return the fill value of windows outside of the operand, as a NumPy scalar of the dtype."""
    if dtypes.is_extended(dtype):
        base, inner = dtypes.element_of(dtype)
        return from_numbers(np.full(inner, fill_of(base, fill_value)), dtype)
    if fill_value is None:
        if dtypes.is_integer(dtype):
            info = dtypes.iinfo(dtype)
            fill_value = int(info.max if dtypes.is_unsigned(dtype) else info.min)
        else:
            fill_value = True if dtypes.is_bool(dtype) else np.nan
    with np.errstate(all="ignore"):
        return np.asarray(fill_value).astype(dtype)[()]


def _impl(
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    mode: GatherScatterMode,
    fill_value: Any,
    **promises: bool,
) -> Any:
    plan = plan_of(x.shape, indices.shape, dimension_numbers, slice_sizes)
    return collect(x, indices, plan, mode, fill_of(x.dtype, fill_value) if mode is FILL else None)


def _prepared(
    avals: Avals,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    mode: GatherScatterMode,
    fill_value: Any,
    **promises: bool,
) -> HostCode | None:
    """Return code for the elements of a vector, which `ndarray.take` takes."""
    x, indices = avals
    usual = x.ndim == 1 and x.size and slice_sizes == (1,) and dimension_numbers == _OF_A_VECTOR
    if not usual or mode is FILL or indices.dtype.kind not in "iu" or indices.dtype.itemsize > 4:
        return None
    shape = indices.shape[:-1]
    return HostCode("{out} = {0}.take({1}.reshape({shape}), 0, None, 'clip')", shape=shape) if shape else None


_OF_A_VECTOR = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))


@takes("gather", 2)
def _abstract_eval(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    **others: Any,
) -> ShapedArray:
    return ShapedArray(check_gather(x, indices, dimension_numbers, slice_sizes), x.dtype, x.weak_type)


def _tangent(t: Any, x: Any, indices: Any, **params: Any) -> Any:
    if params["mode"] is FILL:
        params["fill_value"] = 0
    return gather_p.bind(t, indices, **params)


def _transpose(
    ct: Any,
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    fill_value: Any,
    **params: Any,
) -> list[Any]:
    zeros = zero_cotangent(x.aval)
    return [by_name.scatter_add(zeros, indices, ct, scatter_numbers(dimension_numbers), **params), None]


def _vmap(
    axis_size: int,
    vals: Any,
    dims: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    unique_indices: bool,
    indices_are_sorted: bool,
    **params: Any,
) -> Any:
    """Batch a gather: the batch is an axis of windows, of places, or a batching axis of both, in front."""
    (x, indices), (d, d_indices) = vals, dims
    numbers = batched_numbers(dimension_numbers, operand=d is not None, indices=d_indices is not None)
    if d is not None:
        x = moveaxis(x, d, 0)
        slice_sizes = (axis_size if d_indices is None else min(axis_size, 1), *slice_sizes)
    if d_indices is not None:
        indices = moveaxis(indices, d_indices, 0)
    is_disjoint = d is not None or d_indices is None  # else two examples may read the same place
    out = gather_p.bind(
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        unique_indices=unique_indices and is_disjoint,
        indices_are_sorted=indices_are_sorted and d_indices is None,
        **params,
    )
    return out, 0


def batched_numbers(numbers: Any, *, operand: bool, indices: bool) -> Any:
    """Return dimension numbers with a new first axis of the operand, of the indices or of both, and of the result."""
    windows, collapsed, index_map, batching, indices_batching = numbers
    windows = tuple(d + 1 for d in windows)
    if operand:
        collapsed, index_map, batching = (tuple(d + 1 for d in f) for f in (collapsed, index_map, batching))
    if indices:
        indices_batching = tuple(d + 1 for d in indices_batching)
    if operand and indices:
        batching, indices_batching = (0, *batching), (0, *indices_batching)
    elif operand:
        windows = (0, *windows)
    return type(numbers)(windows, collapsed, index_map, batching, indices_batching)


gather_p = Primitive(
    "gather",
    linear_in=(0,),
    tags=("structural",),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    transpose=_transpose,
    doc="Return windows of an array at positions that are data.",
)
impl_rules.register(gather_p, _impl, prepared=_prepared)
defjvp(gather_p, _tangent, None)
