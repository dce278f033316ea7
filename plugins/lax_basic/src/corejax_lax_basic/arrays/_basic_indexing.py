"""Indices without arrays: integers, slices, None, Ellipsis, scalar integers that are data, and blocks (`ds`).

Static entries become one `slice` (and a `rev` for negative steps). Scalars that are data become one `dynamic_slice`:
negative ones count from the end, then they are clamped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, config, dtypes
from corejax.extend.messages import InconclusiveDimensionOperation
from corejax.extend.types import SymbolicDim, array_method, as_dim, max_dim, min_dim
from corejax_lax_basic._base.scalars import is_array, make_scalar
from corejax_lax_basic.arrays.dynamic_slices import Slice, placed
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_p
from corejax_lax_basic.indexing.from_front import from_front
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import rev_p, squeeze_p
from corejax_lax_basic.shape.slicing import canonical_index, slice_p

_INT32, _INT64, _UINT32 = map(np.dtype, (np.int32, np.int64, np.uint32))
_KEPT = frozenset({int, slice, type(None), type(Ellipsis), Slice})


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
    if type(entry) in _KEPT or is_array(entry):
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


def is_advanced(entry: Any) -> bool:
    """Return whether an entry of an index is a boolean array, or an array with axes."""
    return is_array(entry) and (entry.aval.ndim > 0 or dtypes.is_bool(entry.aval.dtype))


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
    missing, gap = x.aval.ndim, None
    for place, entry in enumerate(entries):
        if entry is not Ellipsis:
            missing -= consumed(entry)
        elif gap is None:
            gap = place
        else:
            raise IndexError("an index can have only one Ellipsis ('...')")
    if missing < 0:
        indexed = x.aval.ndim - missing
        raise IndexError(
            f"Too many indices: array is {x.aval.ndim}-dimensional, but {indexed} were indexed, in {x.aval.str_short()}"
        )
    if gap is None:
        entries += [slice(None)] * missing
    elif missing or not any(map(is_array, entries)):
        entries[gap : gap + 1] = [slice(None)] * missing
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
    shape = x.aval.shape
    spans: list[Any] = []  # start, limit and step of each axis of `x`
    dynamic: dict[int, Any] = {}  # scalars that are data, and blocks, by axis
    dropped: list[int] = []  # axes of `x` that the result lacks
    new: list[int] = []  # axes of the result that `x` lacks
    for entry in entries:
        if entry is Ellipsis:
            continue
        axis = len(spans)
        if entry is None:
            new.append(axis - len(dropped) + len(new))
            continue
        if type(entry) is slice:
            spans.append(forward(entry, shape[axis]))
            continue
        if type(entry) is int and isinstance(shape[axis], SymbolicDim):
            entry = position_in_symbol(entry, axis, shape[axis])
        elif type(entry) is int:
            entry = static_position(entry, axis, shape[axis])
        if is_array(entry) or type(entry) is Slice:
            dynamic[axis] = entry
            spans.append((0, shape[axis], 1))
        else:
            spans.append((entry, entry + 1, 1))
        if type(entry) is not Slice:
            dropped.append(axis)
    x = _static_part(x, spans)
    if dynamic:
        x = _dynamic_part(x, dynamic)
    if dropped:
        x = squeeze_p.bind(x, dimensions=tuple(dropped))
    return expand_dims(x, tuple(new)) if new else x


def static_position(index: Any, axis: int, size: Any) -> Any:
    """Return a static index counted from the front; out of bounds, it is clamped under `config.x64_compat`."""
    if config.x64_compat and type(size) is int and type(index) is int and size:
        return min(max(index + size * (index < 0), 0), size - 1)
    return canonical_index(index, axis, size)


def _static_part(x: Any, spans: list[Any]) -> Any:
    """Apply static entries, `(start, limit, step)` for each axis."""
    if not spans:
        return x
    starts, limits, steps = zip(*spans, strict=True)
    ones = (1,) * len(steps)
    strides = tuple(map(abs, steps))
    if starts != (0,) * len(starts) or limits != x.aval.shape or strides != ones:
        x = slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=None if strides == ones else strides)
    if steps == strides:
        return x
    return rev_p.bind(x, dimensions=tuple(axis for axis, step in enumerate(steps) if step < 0))


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
    indices = {}
    for axis, entry in entries.items():
        index = indices[axis] = entry.start if type(entry) is Slice else entry
        if not dtypes.is_integer(index.aval.dtype):
            raise TypeError(f"arrays can be indexed by integers; the index of axis {axis} is {index.aval.str_short()}")
        if not shape[axis] and type(entry) is not Slice:
            raise IndexError(f"axis {axis} of {x.aval.str_short()} has size 0: it has no element to index")
    dtype = common_index_dtype(indices.values(), shape)
    starts, sizes = [], list(shape)
    for axis, size in enumerate(shape):
        if axis in indices:
            starts.append(from_front(in_index_dtype(indices[axis], dtype), size))
            sizes[axis] = entries[axis].size if type(entries[axis]) is Slice else 1
        else:
            starts.append(make_scalar(0, dtype))
    return dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(sizes))


def common_index_dtype(indices: Iterable[Any], shape: tuple[int, ...]) -> np.dtype[Any]:
    """Return the dtype in which indices are computed: int32, or 64 bits if an index or size needs them."""
    dtype = _INT32
    for size in shape:
        if type(size) is int and size > 2**31 - 1:
            dtype = _INT64
    for index in indices:
        own: np.dtype[Any] = index.aval.dtype
        if own.itemsize > 4:
            return own
        if own == _UINT32:
            dtype = _INT64
    return dtype


def in_index_dtype(index: Any, dtype: np.dtype[Any]) -> Any:
    """Convert an index to a dtype; an index may be weakly typed."""
    return index if index.aval.dtype == dtype else convert_element_type(index, dtype)
