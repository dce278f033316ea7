"""Indices without arrays: integers, slices, None, Ellipsis, scalar integers that are data, and blocks (`ds`).

Static entries become one `slice` (and a `rev` for negative steps). Scalars that are data become one `dynamic_slice`:
negative ones count from the end, then they are clamped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, config, dtypes
from corejax.extend.messages import InconclusiveDimensionOperation
from corejax.extend.types import SymbolicDim, array_method, as_dim, max_dim, min_dim
from corejax_lax_basic._base.scalars import is_array, make_scalar
from corejax_lax_basic.arrays.dynamic_slices import Slice, placed
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p
from corejax_lax_basic.elementwise.comparison import lt_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_p
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import rev_p, squeeze_p
from corejax_lax_basic.shape.slicing import canonical_index, slice_p


def _refusal(entry: Any) -> TypeError:
    if isinstance(entry, list):
        return TypeError(
            "arrays can be indexed by integers, slices, None, Ellipsis and arrays, not by lists: "
            f"use x[np.array({entry!r})]; x[tuple(...)] indexes several axes"
        )
    return TypeError(
        "arrays can be indexed by integers, slices, None, Ellipsis and integer or boolean arrays, "
        f"got {entry!r} of type {type(entry).__name__}"
    )


def _normalised(entry: Any) -> Any:
    """Return an entry of an index as `int`, `slice`, None, Ellipsis, or an `Array` or tracer."""
    if type(entry) is int or entry is None or entry is Ellipsis or isinstance(entry, slice | Slice) or is_array(entry):
        return entry
    if isinstance(entry, bool | np.bool_):
        return as_array(np.asarray(entry))
    if isinstance(entry, np.ndarray):
        return int(entry) if not entry.ndim and entry.dtype.kind in "iu" else as_array(entry)
    if array_method(type(entry)) is not None:
        return as_array(entry)
    if hasattr(type(entry), "__index__"):
        return entry.__index__()
    raise _refusal(entry)


def consumed(entry: Any) -> int:
    """Return how many axes an entry indexes: 0 for None or Ellipsis, `ndim` for a boolean array, else 1."""
    if entry is None or entry is Ellipsis:
        return 0
    if is_array(entry) and dtypes.is_bool(entry.aval.dtype):
        ndim: int = entry.aval.ndim
        return ndim
    return 1


def complete(x: Any, index: Any) -> list[Any]:
    """Return an index with an entry for each axis of `x`, and with its Nones.

    An Ellipsis that stands for no axis is kept if the index has arrays, because it separates them.

    Raises:
        IndexError: there are more entries than axes, or two Ellipses.
        TypeError: arrays cannot be indexed by an entry.
    """
    if type(index) is tuple:
        entries = [_normalised(_listed(e) if isinstance(e, list | tuple) else e) for e in index]
    else:
        entries = [_normalised(index)]
    places = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can have only one Ellipsis ('...')")
    missing = x.aval.ndim - sum(consumed(e) for e in entries)
    if missing < 0:
        indexed = x.aval.ndim - missing
        raise IndexError(
            f"Too many indices: array is {x.aval.ndim}-dimensional, but {indexed} were indexed, in {x.aval.str_short()}"
        )
    at = places[0] if places else len(entries)
    kept = [Ellipsis] if places and not missing and any(map(is_array, entries)) else []
    entries = [*entries[:at], *kept, *[slice(None)] * missing, *entries[at + 1 :]]
    return _with_blocks_placed(x, entries) if Slice in map(type, entries) else entries


def _with_blocks_placed(x: Any, entries: list[Any]) -> list[Any]:
    """Replace blocks (`ds`) with known starts by slices."""
    axis, out = 0, []
    for entry in entries:
        out.append(placed(entry, axis, x.aval.shape[axis]) if type(entry) is Slice else entry)
        axis += consumed(entry)
    return out


def _listed(entry: list[Any] | tuple[Any, ...]) -> Any:
    """Return a list or tuple inside of a tuple as an array; traced elements are stacked.

    Raises:
        TypeError: it is ragged, or not of integers or booleans.
    """
    if not entry:
        return as_array(np.zeros((0,), np.int32))
    if any(isinstance(e, Tracer) for e in entry):
        dtype = common_index_dtype([e for e in entry if isinstance(e, Tracer)], ())
        parts = [expand_dims(convert_element_type(e, dtype), 0) for e in entry]
        return concatenate(parts, 0)
    try:
        array = np.asarray([np.asarray(e) for e in entry])
    except ValueError:
        raise TypeError(f"a list in an index must not be ragged, got {entry!r}") from None
    if array.dtype.kind not in "biu":
        raise TypeError(f"a list in an index must have integers or booleans, got {entry!r}")
    return array


def basic_index(x: Any, entries: list[Any]) -> Any:
    """Apply an index without arrays."""
    entries = [e for e in entries if e is not Ellipsis]
    of_axes = [e for e in entries if e is not None]
    for axis, size in enumerate(x.aval.shape):
        if isinstance(size, SymbolicDim) and type(of_axes[axis]) is int:
            of_axes[axis] = position_in_symbol(of_axes[axis], axis, size)
    x = _static_part(x, of_axes)
    dynamic = {axis: e for axis, e in enumerate(of_axes) if is_array(e) or type(e) is Slice}
    if dynamic:
        x = _dynamic_part(x, dynamic)
    dropped = tuple(i for i, e in enumerate(e for e in entries if e is not None) if not isinstance(e, slice | Slice))
    if dropped:
        x = squeeze_p.bind(x, dimensions=dropped)
    kept = [e for e in entries if e is None or isinstance(e, slice | Slice)]
    new = tuple(i for i, e in enumerate(kept) if e is None)
    return expand_dims(x, new) if new else x


def static_position(index: Any, axis: int, size: Any) -> Any:
    """Return a static index counted from the front; out of bounds, it is clamped under `config.x64_compat`."""
    if config.x64_compat and type(size) is int and type(index) is int and size:
        return min(max(index + size * (index < 0), 0), size - 1)
    return canonical_index(index, axis, size)


def _static_part(x: Any, entries: list[Any]) -> Any:
    """Apply the static entries: slices, and integers, whose axes stay with size 1."""
    shape = x.aval.shape
    starts, limits, strides, reversed_axes = [], [], [], []
    for axis, (entry, size) in enumerate(zip(entries, shape, strict=True)):
        if type(entry) is int or isinstance(entry, SymbolicDim):
            start = static_position(entry, axis, size)
            start, limit, step = start, start + 1, 1
        elif isinstance(entry, slice):
            start, limit, step = forward(entry, size)
            if step < 0:
                step = -step
                reversed_axes.append(axis)
        else:
            start, limit, step = 0, size, 1
        starts.append(start)
        limits.append(limit)
        strides.append(step)
    if any(start != 0 for start in starts) or tuple(limits) != shape or any(s != 1 for s in strides):
        steps = tuple(strides) if any(s != 1 for s in strides) else None
        x = slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=steps)
    return rev_p.bind(x, dimensions=tuple(reversed_axes)) if reversed_axes else x


def forward(entry: slice, size: int) -> tuple[int, int, int]:
    """Return start, limit and step of a slice in increasing order; the step is negative if the result is reversed."""
    for bound in (entry.start, entry.stop, entry.step):
        if isinstance(bound, Tracer) and bound.steering() is None:
            raise IndexError(
                f"the bounds of a slice must be static, since they determine its size; got {entry}.\n{bound.origin()}\n"
                "Use lax.dynamic_slice for a block of static size at a start that is data."
            )
    if isinstance(size, SymbolicDim):
        return _forward_in_symbol(entry, size)
    try:
        start, stop, step = entry.indices(size)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the bounds of a slice must be integers, and its step must not be 0; got {entry}") from None
    count = len(range(start, stop, step))
    if not count:
        return 0, 0, 1
    last = start + (count - 1) * step
    return (start, last + 1, step) if step > 0 else (last, start + 1, step)


def _forward_in_symbol(entry: slice, size: Any) -> tuple[Any, Any, int]:
    """Return start, limit and step as `forward`, along an axis of symbolic size."""
    step = 1 if entry.step is None else as_dim(entry.step)
    if isinstance(step, SymbolicDim) or not step:
        raise IndexError(
            f"along an axis of symbolic size {size!r} the step of a slice must be an integer other than 0, got {entry}"
        )
    # As in Python, bounds lie between 0 and `size` for positive steps, between -1 and `size - 1` for negative ones.
    least, most = (0, size) if step > 0 else (-1, size - 1)

    def within(bound: Any, default: Any) -> Any:
        if bound is None:
            return default
        bound = as_dim(bound)
        return max_dim(size + bound, least) if bound < 0 else min_dim(bound, most)

    first, last = (least, most) if step > 0 else (most, least)
    start, stop = within(entry.start, first), within(entry.stop, last)
    if step > 0:
        return start, max_dim(stop, start), step
    count = max_dim(-((start - stop) // step), 0)
    return start + 1 - max_dim((count - 1) * -step + 1, 0), start + 1, step


def position_in_symbol(index: int, axis: int, size: Any) -> Any:
    """Count an index from the front along an axis of symbolic size, if it is within bounds for all sizes.

    Returns:
        The position; if the size decides whether the index is within bounds, an array, which is clamped like data.
    """
    try:
        return canonical_index(index, axis, size)
    except InconclusiveDimensionOperation:
        return as_array(np.asarray(index, np.int32))


def _dynamic_part(x: Any, entries: Mapping[int, Any]) -> Any:
    """Apply scalar entries that are data, by a block of size 1 along their axes, and blocks with such starts."""
    shape = x.aval.shape
    indices = {axis: e.start if type(e) is Slice else e for axis, e in entries.items()}
    for axis, index in indices.items():
        if not dtypes.is_integer(index.aval.dtype):
            raise TypeError(f"arrays can be indexed by integers; the index of axis {axis} is {index.aval.str_short()}")
        if not shape[axis] and type(entries[axis]) is not Slice:
            raise IndexError(f"axis {axis} of {x.aval.str_short()} has size 0: it has no element to index")
    dtype = common_index_dtype(list(indices.values()), shape)
    zero = make_scalar(0, dtype)
    starts = [
        from_front(convert_element_type(indices[axis], dtype), size) if axis in indices else zero
        for axis, size in enumerate(shape)
    ]
    counts = {axis: e.size if type(e) is Slice else 1 for axis, e in entries.items()}
    sizes = tuple(counts.get(axis, size) for axis, size in enumerate(shape))
    return dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)


def common_index_dtype(indices: list[Any], shape: tuple[int, ...]) -> np.dtype[Any]:
    """Return the dtype in which indices are computed: int32, or 64 bits if an index or size needs them."""
    wide: list[np.dtype[Any]] = [i.aval.dtype for i in indices if i.aval.dtype.itemsize > 4]
    if wide:
        return wide[0]
    unsigned = any(dtypes.is_unsigned(i.aval.dtype) and i.aval.dtype.itemsize == 4 for i in indices)
    return np.dtype(np.int64 if unsigned or any(type(d) is int and d > 2**31 - 1 for d in shape) else np.int32)


def from_front(index: Any, size: int) -> Any:
    """Return indices with the negative ones counted from the end."""
    dtype = index.aval.dtype
    if dtypes.is_unsigned(dtype):
        return index
    wrapped = add_p.bind(index, make_scalar(size, dtype))
    return select_n_p.bind(lt_p.bind(index, make_scalar(0, dtype)), index, wrapped)
