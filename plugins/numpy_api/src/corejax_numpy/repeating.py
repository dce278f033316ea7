"""Elements repeated, and moved along an axis."""

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
    """An array repeated as a whole along its axes, and new leading ones.

    Args:
        A: the array.
        reps: how often along each axis, matched from the last one.

    Raises:
        ValueError: a number is negative.
    """
    x = array_argument("tile", A)
    counts = tuple(static_int("tile", n, "reps") for n in (reps if lax.is_several(reps) else (reps,)))
    if any(n < 0 for n in counts):
        raise ValueError(f"tile: arrays are repeated 0 times or more, got {reps!r}")
    if x.ndim < len(counts):
        x = lax.expand_dims(x, tuple(range(len(counts) - x.ndim)))
    return lax.tile(x, (1,) * (x.ndim - len(counts)) + counts)


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Any:
    """Each element repeated along an axis (of the flattened array, for None).

    Args:
        a: the array.
        repeats: how often: one number, or one for each index along the axis; traced only with `total_repeat_length`.
        axis: the axis.
        total_repeat_length: size of the axis in the result: what is too much is cut off, and where it is too little
            the last element is repeated.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        ValueError: there are not as many numbers as indices, or one is negative; no elements are to be repeated.
        ConcretizationTypeError: `repeats` is traced, and no length is given.
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
        return _repeated_by_data(x, repeats, axis, length)
    if isinstance(repeats, SymbolicDim) and length is None:
        return _repeated_evenly(x, repeats, axis)
    counts = known_array("repeat", repeats, "with `total_repeat_length` they may be traced")
    if counts.size == 0 and not isinstance(repeats, Array | np.ndarray):
        counts = counts.astype(int)
    if counts.dtype.kind not in "iu" or counts.min(initial=0) < 0 or counts.shape not in ((), (1,), (size,)):
        raise ValueError(f"repeat: one number, or {size} numbers, that are not negative integers; got {repeats!r}")
    if counts.size == 1 and length is None:
        return _repeated_evenly(x, int(counts.reshape(())), axis)
    indices = np.repeat(np.arange(size), counts.astype(np.intp))  # as unsigned 64-bit ones they would be refused
    if length is not None:
        indices = _of_length(indices[:length], length, size)
    return x[(*[slice(None)] * axis, indices)] if size else x


@remembered
def _repeated_evenly(x: Any, count: int, axis: int) -> Any:
    spread = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    out = lax.broadcast_in_dim(x, spread, tuple(d for d in range(x.ndim + 1) if d != axis + 1))
    return lax.reshape(out, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))


def _of_length(indices: Any, length: int, size: int) -> Any:
    if length and not size:
        raise ValueError(f"repeat: there is no element to be repeated {length} times")
    return np.concatenate([indices, np.full(length - len(indices), size - 1, indices.dtype)])


def _repeated_by_data(x: Any, repeats: Any, axis: int, length: int) -> Any:
    """Index `i` of the result is that element at whose end more than `i` elements have been written."""
    from corejax_numpy.searching import searchsorted

    size = x.shape[axis]
    if repeats.shape not in ((), (1,), (size,)):
        raise ValueError(f"repeat: one number, or {size} numbers, got {repeats.aval.str_short()}")
    if length and not size:
        raise ValueError(f"repeat: there is no element to be repeated {length} times")
    ends = lax.cumsum(lax.broadcast_to(lax.reshape(repeats, (repeats.size,)), (size,)), 0)
    indices = searchsorted(ends, lax.iota(ends.dtype, length), side="right")
    indices = lax.min(indices, lax.make_scalar(size - 1, indices.dtype))
    return x[(*[slice(None)] * axis, indices)]


def resize(a: Any, new_shape: Any) -> Any:
    """The elements in another shape: repeated in their order where there are too few, the last left out if too many.

    Raises:
        TypeError: the shape is not made of concrete integers.
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
    """Elements moved along axes; those that leave at the end come back at the beginning.

    Args:
        a: the array.
        shift: by how much: one number or one for each axis; may be traced.
        axis: the axis or axes, the flattened array for None.

    Raises:
        ValueError: as many shifts as axes are needed.
        TypeError: a shift is not an integer.
    """
    x = array_argument("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(x), shift, 0), x.shape)
    axes = [canonical_axis(d, x.ndim, name="roll") for d in (axis if lax.is_several(axis) else [axis])]
    shifts = list(shift) if lax.is_several(shift) else [shift]
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError(f"roll: as many shifts as axes, got {shift!r} and {axis!r}")
    for d, by in zip(axes, shifts, strict=True):
        x = _rolled(x, by, d)
    return x


def _rolled(x: Any, shift: Any, axis: int) -> Any:
    size = x.shape[axis]
    if size == 0:
        return x
    if isinstance(shift, Tracer):
        return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), (-shift) % size, size, axis)
    try:
        start = -static_int("roll", shift, "shift") % size
    except TypeError:
        raise TypeError(f"roll: elements are moved by integers, got {shift!r}") from None
    if start == 0:
        return x
    front = lax.slice_in_dim(x, 0, start, axis=axis)
    return lax.concatenate([lax.slice_in_dim(x, start, size, axis=axis), front], axis)
