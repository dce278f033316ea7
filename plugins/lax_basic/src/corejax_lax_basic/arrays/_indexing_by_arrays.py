"""`x[index]` where the index has integer or boolean arrays.

Concrete values are indexed by NumPy. Of traced ones, elements are taken along an axis by comparing it with the
indices (`batched_blocks.take_along`), until there is a gather primitive. Indices out of bounds are clamped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Tracer,
    as_array,
    dtypes,
    host_value,
    recording_trace,
)
from corejax_lax_basic._base.scalars import is_array, make_scalar
from corejax_lax_basic.arrays._basic_indexing import basic_index, from_front
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p, max_p, min_p, mul_p
from corejax_lax_basic.indexing._batched_blocks import take_along
from corejax_lax_basic.shape.broadcasting import broadcast_shapes, broadcast_to
from corejax_lax_basic.shape.rearranging import reshape, transpose
from corejax_lax_basic.shape.slicing import canonical_index

_INDEX = np.dtype(np.int32)


def index_by_arrays(x: Any, entries: list[Any]) -> Any:
    """`x[entries]`, with an entry for each axis (several for a boolean array) and Nones.

    Raises:
        IndexError: a boolean array is traced or of another shape than the axes it indexes, index arrays do not
            broadcast together, or an integer is out of bounds.
    """
    entries = _without_masks(x, entries)
    for e in entries:
        if is_array(e) and not dtypes.is_integer(e.aval.dtype):
            raise TypeError(f"arrays are indexed by integer and boolean arrays, got one of type {e.aval.str_short()}")
    if _concrete(x, entries):
        return _by_numpy(x, entries)
    return _by_comparison(x, entries)


def _without_masks(x: Any, entries: list[Any]) -> list[Any]:
    """Boolean arrays replaced by the indices of their True elements."""
    out: list[Any] = []
    axis = 0
    for entry in entries:
        if entry is None:
            out.append(entry)
            continue
        if not (is_array(entry) and dtypes.is_bool(entry.aval.dtype)):
            out.append(entry)
            axis += 1
            continue
        shape = x.aval.shape[axis : axis + entry.aval.ndim]
        if shape != entry.aval.shape:
            raise IndexError(
                f"boolean index {entry.aval.str_short()} does not fit the axes it indexes: "
                f"they have shape {shape} in {x.aval.str_short()}"
            )
        out.extend(as_array(i.astype(np.int64)) for i in np.nonzero(_known_mask(entry)))
        axis += entry.aval.ndim
    return out


def _known_mask(mask: Any) -> Any:
    value = mask.concrete() if isinstance(mask, Tracer) else mask
    if value is None:
        raise IndexError(
            f"boolean index arrays have to be concrete, since the result's shape depends on them; got {mask!r}.\n"
            f"{mask.origin()}\nUse a select instead: corejax.numpy.where(mask, x, 0), lax.select(mask, x, y)."
        )
    return host_value(value)


def _concrete(x: Any, entries: list[Any]) -> bool:
    """Whether everything is known and nothing is being recorded."""
    if isinstance(x, Tracer) or any(isinstance(e, Tracer) for e in entries):
        return False
    return recording_trace() is None


def _clipped(index: Any, size: int) -> Any:
    """NumPy indices, negative ones counted from the end, then clamped."""
    index = index.astype(np.int64)
    return np.clip(np.where(index < 0, index + size, index), 0, max(size - 1, 0))


def _by_numpy(x: Array, entries: list[Any]) -> Array:
    sizes = iter(x.aval.shape)
    host = []
    for entry in entries:
        size = next(sizes) if entry is not None else 0
        if type(entry) is Array and not size and entry.aval.size:
            raise IndexError(f"an axis of {x.aval.str_short()} has size 0: it has no element to index")
        host.append(_clipped(host_value(entry), size) if type(entry) is Array else entry)
    out = np.asarray(host_value(x)[tuple(host)])
    return Array(out, x.aval.update(shape=out.shape))


def _by_comparison(x: Any, entries: list[Any]) -> Any:
    """Slices first, then the arrays, whose axes become one; integers count as arrays, as in NumPy."""
    advanced = [i for i, e in enumerate(entries) if e is not None and not isinstance(e, slice)]
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    static = [slice(None) if i in advanced else e for i, e in enumerate(entries)]
    # Axes of the result of the slices: Nones are axes there too, so entries and axes correspond.
    indices = [_as_indices(entries[i], i, entries, x) for i in advanced]
    x = basic_index(x, static)
    if not adjacent:
        rest = [d for d in range(x.aval.ndim) if d not in advanced]
        x = transpose(x, (*advanced, *rest))
    first = advanced[0] if adjacent else 0
    return _take(x, indices, first)


def _as_indices(entry: Any, place: int, entries: list[Any], x: Any) -> Any:
    """An integer or an array of them as int32, counted from the front and clamped."""
    axis = sum(e is not None for e in entries[:place])
    size = x.aval.shape[axis]
    if type(entry) is int:
        return make_scalar(canonical_index(entry, axis, size), _INDEX)
    if not size and entry.aval.size:
        raise IndexError(f"axis {axis} of {x.aval.str_short()} has size 0: it has no element to index")
    if not isinstance(entry, Tracer):
        return as_array(_clipped(host_value(entry), size).astype(_INDEX))
    entry = entry if entry.aval.dtype.itemsize >= 4 else convert_element_type(entry, _INDEX)
    entry = from_front(entry, size)
    dtype = entry.aval.dtype
    last = min(max(size - 1, 0), int(dtypes.iinfo(dtype).max))
    clamped = max_p.bind(min_p.bind(entry, make_scalar(last, dtype)), make_scalar(0, dtype))
    return convert_element_type(clamped, _INDEX)


def _take(x: Any, indices: list[Any], first: int) -> Any:
    """Elements of the axes from `first` on at places given by as many indices that broadcast together."""
    shape, count = x.aval.shape, len(indices)
    try:
        places = broadcast_shapes(*(i.aval.shape for i in indices))
    except ValueError as error:
        raise IndexError(f"index arrays do not broadcast together: {error}") from None
    sizes = shape[first : first + count]
    flat = broadcast_to(indices[0], places)
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        flat = add_p.bind(mul_p.bind(flat, make_scalar(size, _INDEX)), broadcast_to(index, places))
    x = reshape(x, (*shape[:first], math.prod(sizes), *shape[first + count :]))
    out = take_along(x, reshape(flat, (math.prod(places),)), first)
    return reshape(out, (*shape[:first], *places, *shape[first + count :]))
