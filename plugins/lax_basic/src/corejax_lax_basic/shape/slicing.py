"""`slice`: part of an array, with bounds and strides that are static."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, UndefPrimal, as_array, deflinear, get_aval
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, canonical_axis, ints
from corejax_lax_basic.shape.joining import pad_p
from corejax_lax_basic.shape.rearranging import squeeze_p


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """The elements from `start_indices` to `limit_indices` (not included) in steps of `strides`.

    Args:
        operand: the array.
        start_indices: first index along each axis.
        limit_indices: the index behind the last one, along each axis.
        strides: steps along each axis, positive; None for 1.

    Raises:
        TypeError: the bounds do not lie inside the operand, or a stride is not positive.
    """
    starts, limits = ints(start_indices), ints(limit_indices)
    steps = None if strides is None else ints(strides)
    if steps is not None and all(s == 1 for s in steps):
        steps = None
    shape = get_aval(operand).shape
    if limits == shape and steps is None and not any(starts) and len(starts) == len(shape):
        return as_array(operand)
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def _impl(x: Any, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> Any:
    steps = strides or (1,) * len(start_indices)
    return x[tuple(map(builtins.slice, start_indices, limit_indices, steps))]


@takes("slice", 1)
def _abstract_eval(x: ShapedArray, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> ShapedArray:
    steps = (1,) * x.ndim if strides is None else strides
    where = f"slice: operand {x.str_short()}, start_indices {start_indices}, limit_indices {limit_indices}"
    where += "" if strides is None else f", strides {strides}"
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        raise TypeError(f"{where}: the operand has {x.ndim} axes, each of them needs an entry")
    for axis, (size, start, limit, step) in enumerate(zip(x.shape, start_indices, limit_indices, steps, strict=True)):
        if not 0 <= start <= limit <= size:
            raise TypeError(
                f"{where}: on axis {axis}, {start} to {limit} is not inside 0 to {size} "
                "(starts and limits count from the front)"
            )
        if step <= 0:
            raise TypeError(f"{where}: strides are positive, axis {axis} has {step}")
    shape = tuple(-((a - b) // s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True))
    return ShapedArray(shape, x.dtype, x.weak_type)


def _transpose(ct: Any, x: UndefPrimal, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> list[Any]:
    shape, sizes = x.aval.shape, get_aval(ct).shape
    steps = strides or (1,) * len(shape)
    config = []
    for n, start, count, step in zip(shape, start_indices, sizes, steps, strict=True):
        covered = (count - 1) * step + 1 if count else 0
        config.append((start, n - start - covered, step - 1))
    zero = np.zeros((), get_aval(ct).dtype)[()]
    return [pad_p.bind(ct, zero, padding_config=tuple(config))]


def _vmap(
    axis_size: int, vals: Any, dims: Any, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None
) -> Any:
    d = dims[0]
    starts = (*start_indices[:d], 0, *start_indices[d:])
    limits = (*limit_indices[:d], axis_size, *limit_indices[d:])
    steps = None if strides is None else (*strides[:d], 1, *strides[d:])
    return slice_p.bind(vals[0], start_indices=starts, limit_indices=limits, strides=steps), d


slice_p = Primitive(
    "slice",
    linear_in=(0,),
    tags=("linear", "structural"),
    impl=_impl,
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Part of an array, with static bounds and strides.",
)
deflinear(slice_p, _transpose)


# -- in terms of it ----------------------------------------------------------------------------------------------


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """`slice` along one axis; negative indices count from the end, None is the beginning or the end."""
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape), "slice_in_dim: axis")
    size = shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = size if limit_index is None else operator.index(limit_index)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """One element along an axis, the axis kept with size 1 or dropped.

    Raises:
        IndexError: there is no such element.
    """
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape), "index_in_dim: axis")
    index = canonical_index(index, axis, shape[axis])
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze_p.bind(out, dimensions=(axis,))


def canonical_index(index: Any, axis: int, size: int) -> int:
    """A static index counted from the front.

    Raises:
        IndexError: it is out of bounds; names index, axis and size.
    """
    i = operator.index(index)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {size}")
    return i + size if i < 0 else i
