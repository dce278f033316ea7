"""`x[index]` with integer or boolean arrays in the index.

Concrete arrays are indexed by NumPy, traced ones by a gather. Positions out of bounds are clamped.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, as_array, config, dtypes, host_value
from corejax.extend.devices import is_spread
from corejax.extend.messages import NonConcreteBooleanIndexError, observe
from corejax.extend.transforms import recording_trace
from corejax_lax_basic._base.scalars import is_array
from corejax_lax_basic.arrays._basic_indexing import static_position
from corejax_lax_basic.arrays._places import joint_shape, places_of
from corejax_lax_basic.arrays.dynamic_slices import Slice
from corejax_lax_basic.indexing.dimension_numbers import FILL, PROMISE, GatherScatterMode
from corejax_lax_basic.indexing.gather import gather
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.rearranging import rev_p


def index_by_arrays(x: Any, entries: list[Any]) -> Any:
    """Return `x[entries]`, with an entry for each axis (several for a boolean array) and Nones.

    Raises:
        IndexError: a boolean array is traced or of another shape than the axes it indexes, index arrays do not
            broadcast together, or an integer is out of bounds.
    """
    if any(is_array(e) and dtypes.is_bool(e.aval.dtype) for e in entries):
        if _concrete(x, entries) and (out := _by_a_mask(x, entries)) is not None:
            return out
        x, entries, _ = without_masks(x, entries)
    if _concrete(x, entries):
        return _by_numpy(x, entries)
    return gather_places(x, entries, PROMISE)


def _by_a_mask(x: Array, entries: list[Any]) -> Array | None:
    """Return the elements where a boolean array is True, if it is the only entry and fits its axes; else None."""
    whole = slice(None)
    chosen = [axis for axis, e in enumerate(entries) if type(e) is Array or e != whole]
    if len(chosen) != 1 or type(mask := entries[chosen[0]]) is not Array or not dtypes.is_bool(mask.aval.dtype):
        return None
    [axis], shape = chosen, mask.aval.shape
    if not shape or x.aval.shape[axis : axis + len(shape)] != shape:
        return None
    out = host_value(x)[(*[whole] * axis, host_value(mask))]
    return Array(out, x.aval.update(shape=out.shape))


def _is_mask(entry: Any) -> bool:
    return is_array(entry) and dtypes.is_bool(entry.aval.dtype)


def without_masks(x: Any, entries: list[Any]) -> tuple[Any, list[Any], tuple[int, ...]]:
    """Replace boolean arrays by the indices of their True elements, and boolean scalars by an axis each.

    Returns:
        The array, with new axes of size 1 for boolean scalars to index; the entries; the new axes.
    """
    if not any(map(_is_mask, entries)):
        return x, entries, ()
    out: list[Any] = []
    axis = 0
    new: list[int] = []
    for entry in entries:
        if not _is_mask(entry):
            out.append(entry)
            axis += entry is not None and entry is not Ellipsis
            continue
        mask = _known_mask(entry)
        if not mask.ndim:
            new.append(axis + len(new))
            out.append(as_array(np.zeros(int(mask), np.int32)))
            continue
        shape = x.aval.shape[axis : axis + mask.ndim]
        if any(size not in (0, fits) for size, fits in zip_longest(mask.shape, shape)):
            raise IndexError(
                f"boolean index did not match shape {shape} of the axes that it indexes in {x.aval.str_short()}: got "
                f"{entry.aval.str_short()}"
            )
        out.extend(as_array(i.astype(np.int64)) for i in np.nonzero(mask))
        axis += mask.ndim
    return (expand_dims(x, tuple(new)) if new else x), out, tuple(new)


def _known_mask(mask: Any) -> Any:
    value = mask.concrete() if isinstance(mask, Tracer) else mask
    if value is None:
        raise NonConcreteBooleanIndexError(
            f"boolean index arrays have to be concrete, since the result's shape depends on them; got {mask!r}.\n"
            f"{mask.origin()}\nUse a select instead: corejax.numpy.where(mask, x, 0), lax.select(mask, x, y); or "
            "indices of a fixed number: corejax.numpy.nonzero(mask, size=n)."
        )
    return host_value(value)


def _concrete(x: Any, entries: list[Any]) -> bool:
    """Return whether array and index are concrete and on one device, and no program is being recorded."""
    if isinstance(x, Tracer) or is_spread(x) or any(isinstance(e, Tracer | Slice) for e in entries):
        return False
    return recording_trace() is None and not observe.checking


def _by_numpy(x: Array, entries: list[Any]) -> Array:
    sizes = iter(x.aval.shape)
    host: list[Any] = []
    for entry in entries:
        if entry is None or entry is Ellipsis:
            host.append(entry)
            continue
        size = next(sizes)
        if type(entry) is Array:
            if not dtypes.is_integer(entry.aval.dtype):
                raise TypeError(
                    f"arrays can be indexed by integer and boolean arrays, got one of type {entry.aval.str_short()}"
                )
            if not size and entry.aval.size:
                raise IndexError(f"an axis of {x.aval.str_short()} has size 0: it has no element to index")
            entry = host_value(entry)
            if entry.dtype == np.uint64:  # NumPy casts it to int64
                entry = np.minimum(entry, np.uint64(size)).astype(np.int64)
        host.append(entry)
    shapes = [e.shape for e in host if isinstance(e, np.ndarray)]
    if len(shapes) > 1:
        joint_shape(shapes)
    try:
        out = _taken(host_value(x), host)
    except IndexError:  # an index is out of bounds, or NumPy does not index by its dtype
        sizes = iter(x.aval.shape)
        clamped = [e if e is None or e is Ellipsis else _within(e, next(sizes)) for e in host]
        out = _taken(host_value(x), clamped)
    return Array(out, x.aval.update(shape=out.shape))


def _taken(value: Any, index: list[Any]) -> Any:
    arrays = [axis for axis, e in enumerate(index) if not isinstance(e, slice) or e != slice(None)]
    if len(arrays) == 1 and len(index) == value.ndim and value.flags.c_contiguous:
        places = index[arrays[0]]
        if places.dtype.kind not in "iu":
            raise IndexError
        return value.take(places, axis=arrays[0])
    return np.asarray(value[tuple(index)])


def _within(index: Any, size: int) -> Any:
    """Clamp NumPy indices that are out of bounds; negative ones count from the end."""
    if type(index) is int and config.x64_compat:
        return static_position(index, 0, size)
    if not isinstance(index, np.ndarray):
        return index
    index = index.astype(np.int64)
    return np.minimum(np.maximum(np.where(index < 0, index + size, index), 0), size - 1)


def gather_places(
    x: Any,
    entries: list[Any],
    mode: GatherScatterMode,
    *,
    strict: bool = True,
    wrap: bool = True,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """Return the elements at a complete index without boolean arrays; arguments as in `gather` and `places_of`."""
    places = places_of(x, entries, strict=strict, wrap=wrap)
    for axis in places.numbers.collapsed_slice_dims:
        size = x.aval.shape[axis]
        if strict and type(size) is int and not size and places.indices.aval.size:
            raise IndexError(f"axis {axis} of {x.aval.str_short()} has size 0: it has no element to index")
    out = gather(
        x,
        places.indices,
        places.numbers,
        places.sizes,
        unique_indices=unique_indices or places.distinct,
        indices_are_sorted=indices_are_sorted or places.distinct,
        mode=mode,
        fill_value=fill_value if mode is FILL else None,
    )
    if places.reverse:
        out = rev_p.bind(out, dimensions=places.reverse)
    return expand_dims(out, places.new_axes) if places.new_axes else out
