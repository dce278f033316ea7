"""Repeat elements, and move them along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, dtypes, remembered
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    canonical_axis,
    canonical_shape,
    known_array,
    static_int,
)
from corejax_numpy.manipulation import ravel


def tile(A: Any, reps: int | Sequence[int]) -> Any:
    """Repeat an array as a whole along its axes and along new leading axes.

    Args:
        A: the array.
        reps: the number of repetitions along each axis, aligned with the last axis; or one number.

    Raises:
        ValueError: a number of repetitions is negative.
    """
    x = array_argument("tile", A)
    given: Any = reps if lax.is_several(reps) else (reps,)
    counts = tuple(static_int("tile", n, "reps") for n in given)
    if any(n < 0 for n in counts):
        raise ValueError(f"tile: arrays are repeated 0 times or more, got {reps!r}")
    if x.ndim < len(counts):
        x = lax.expand_dims(x, tuple(range(len(counts) - x.ndim)))
    return lax.tile(x, (1,) * (x.ndim - len(counts)) + counts)


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Any:
    """Repeat each element along an axis.

    Args:
        a: the array.
        repeats: the number of repetitions, one for all elements or one for each index along the axis. It may be traced
            only if `total_repeat_length` is given.
        axis: the axis to repeat along; None, the default, flattens the array first.
        total_repeat_length: the size of the axis in the result. A longer result is cut, and a shorter one repeats the
            last element. By default the sum of the repetitions.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        ValueError: the number of repetitions does not match the axis, or a repetition is negative; or there is no
            element to repeat.
        ConcretizationTypeError: `repeats` is traced, and `total_repeat_length` is not given.
    """
    if out_sharding is not None:
        return lax.place("repeat", repeat(a, repeats, axis, total_repeat_length=total_repeat_length), out_sharding)
    x = array_argument("repeat", a)
    if axis is None or not x.ndim:  # a scalar is repeated along its only axis, as in NumPy
        x, axis = ravel(x), axis or 0
    axis = canonical_axis(axis, x.ndim, name="repeat")
    size = x.shape[axis]
    length = total_repeat_length
    if length is not None:
        length = static_int("repeat", length, "total_repeat_length", least=0)
    if isinstance(repeats, Tracer) and length is not None:
        return _repeat_by_traced_counts(x, repeats, axis, length)
    if isinstance(repeats, SymbolicDim) and length is None:
        return _repeat_evenly(x, repeats, axis)
    counts = known_array("repeat", repeats, "with `total_repeat_length` they may be traced")
    if counts.size == 0 and not isinstance(repeats, Array | np.ndarray):
        counts = counts.astype(int)
    if counts.dtype.kind not in "biu" or counts.min(initial=0) < 0 or counts.shape not in ((), (1,), (size,)):
        raise ValueError(f"repeat: one number, or {size} numbers, that are not negative integers; got {repeats!r}")
    if counts.size == 1 and length is None:
        return _repeat_evenly(x, int(counts.reshape(())), axis)
    # np.repeat does not accept counts of dtype uint64.
    indices = np.repeat(np.arange(size), counts.astype(np.intp))
    if length is not None:
        indices = _extend_to(indices[:length], length, size)
    return x[(*[slice(None)] * axis, indices)] if size else x


@remembered
def _repeat_evenly(x: Any, count: int | SymbolicDim, axis: int) -> Any:
    spread = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    out = lax.broadcast_in_dim(x, spread, tuple(d for d in range(x.ndim + 1) if d != axis + 1))
    return lax.reshape(out, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))


def _extend_to(indices: Any, length: int, size: int) -> Any:
    if length and not size:
        raise ValueError(f"repeat: there is no element to repeat {length} times")
    return np.concatenate([indices, np.full(length - len(indices), size - 1, indices.dtype)])


def _repeat_by_traced_counts(x: Any, repeats: Any, axis: int, length: int) -> Any:
    """Repeat by traced counts: index `i` of the result takes the first element with a cumulative count above `i`."""
    from corejax_numpy.searching import searchsorted

    size = x.shape[axis]
    if repeats.shape not in ((), (1,), (size,)):
        raise ValueError(f"repeat: one number, or {size} numbers, got {repeats.aval.str_short()}")
    if length and not size:
        raise ValueError(f"repeat: there is no element to repeat {length} times")
    repeats = lax.convert_element_type(repeats, dtypes.default_int_dtype())  # sums of int8 would overflow
    ends = lax.cumsum(lax.broadcast_to(lax.reshape(repeats, (repeats.size,)), (size,)), 0)
    indices = searchsorted(ends, lax.iota(ends.dtype, length), side="right")
    indices = lax.min(indices, lax.make_scalar(size - 1, indices.dtype))
    return x[(*[slice(None)] * axis, indices)]


def resize(a: Any, new_shape: Any) -> Any:
    """Return the elements in another shape: repeated in order if there are too few, cut if there are too many.

    Args:
        a: the array, which is flattened.
        new_shape: the shape of the result, a sequence or one integer.

    Raises:
        TypeError: the shape contains something other than concrete integers.
        ValueError: a size is negative.
    """
    x = ravel(array_argument("resize", a))
    shape = canonical_shape(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"resize: sizes are not negative, got {shape}")
    size = math.prod(shape)
    if x.size == 0:
        return lax.full(shape, 0, x.dtype)
    if isinstance(size, SymbolicDim) or isinstance(x.size, SymbolicDim):
        places = lax.iota(dtypes.default_int_dtype(), size)
        return lax.reshape(x[lax.rem(places, lax.full_like(places, x.size))], shape)
    if size > x.size:
        x = tile(x, -(-size // x.size))
    return lax.reshape(lax.slice_in_dim(x, 0, size) if size < x.size else x, shape)


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Roll elements along an axis: elements shifted beyond the end reappear at the start.

    Args:
        a: the array.
        shift: the number of positions, one for all axes or one for each; may be traced.
        axis: the axis or axes to roll along; None, the default, rolls the flattened array and restores the shape.

    Raises:
        ValueError: the numbers of shifts and axes differ.
        TypeError: a shift is not an integer.
    """
    x = array_argument("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(x), shift, 0), x.shape)
    given: Any = axis if lax.is_several(axis) else [axis]
    axes = [canonical_axis(d, x.ndim, name="roll") for d in given]
    shifts = list(shift) if lax.is_several(shift) else [shift]
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError(f"roll: as many shifts as axes, got {shift!r} and {axis!r}")
    for d, offset in zip(axes, shifts, strict=True):
        x = _roll_axis(x, offset, d)
    return x


def _roll_axis(x: Any, shift: Any, axis: int) -> Any:
    size = x.shape[axis]
    if size == 0:
        return x
    if isinstance(shift, Tracer):
        return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), (-shift) % size, size, axis)
    try:
        start = -static_int("roll", shift, "shift") % size
    except TypeError:
        raise TypeError(f"roll: shift is an integer, got {shift!r}") from None
    if start == 0:
        return x
    front = lax.slice_in_dim(x, 0, start, axis=axis)
    return lax.concatenate([lax.slice_in_dim(x, start, size, axis=axis), front], axis)
