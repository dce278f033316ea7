"""Gathers and scatters of NumPy arrays: where windows lie, and how their elements are accessed.

A plan holds everything that follows from shapes and dimension numbers; it is cached. Elements of one axis are taken by
`ndarray.take`, others by flat positions or by NumPy's indexing of a strided view of all windows.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.strided import strided
from corejax_lax_basic.indexing.dimension_numbers import CLIP, FILL, window_sizes

_Array = np.ndarray[Any, Any]


class Plan(NamedTuple):
    """The part of a gather or scatter that does not depend on its data.

    Attributes:
        lengths: for each component of an index, the number of positions on its axis.
        indexed: axes of the operand on which a window has a position: the axes of the components, then batching axes.
        rows: for each batching axis, its positions, shaped to broadcast against the indices.
        kept: axes of the operand along which a window extends.
        sizes: the window's sizes on the kept axes.
        whole: whether a window is one element on each indexed axis, and the whole operand on the other axes.
        places: shape of the indices without the axis of components.
        window: sizes of all axes of a window that the result has.
        axes: for each axis of the result, its position among the axes of the collected array (places, then windows).
    """

    lengths: Ints
    indexed: Ints
    rows: tuple[_Array, ...]
    kept: Ints
    sizes: Ints
    whole: bool
    places: Ints
    window: Ints
    axes: Ints


@functools.lru_cache(maxsize=1024)
def plan_of(shape: Ints, indices: Ints, numbers: Any, slice_sizes: Ints) -> Plan:
    """Return the plan for an operand and indices of these shapes."""
    offsets, _, index_map, batching, indices_batching = numbers
    places = indices[:-1]
    indexed = (*index_map, *batching)
    kept = tuple(d for d in range(len(shape)) if d not in indexed or slice_sizes[d] != 1)
    rows = []
    for axis in indices_batching:
        row = np.arange(places[axis]).reshape([n if d == axis else 1 for d, n in enumerate(places)])
        rows.append(row)
    count = len(places) + len(offsets)
    windows, outer = iter(range(len(places), count)), iter(range(len(places)))
    return Plan(
        lengths=tuple(shape[d] - slice_sizes[d] + 1 for d in index_map),
        indexed=indexed,
        rows=tuple(rows),
        kept=kept,
        sizes=tuple(slice_sizes[d] for d in kept),
        whole=all(d not in indexed and slice_sizes[d] == shape[d] for d in kept),
        places=places,
        window=window_sizes(numbers, slice_sizes),
        axes=tuple(next(windows) if d in offsets else next(outer) for d in range(count)),
    )


def _components(indices: _Array) -> list[_Array]:
    """Return the components of indices, as integers that NumPy indexes with."""
    if indices.dtype == np.uint64:  # any value beyond int64 is as far outside as its maximum
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    indices = indices.astype(np.intp)
    return [indices[..., k] for k in range(indices.shape[-1])]


def starts_of(indices: _Array, plan: Plan, drop: bool) -> tuple[list[_Array], _Array | None]:
    """Return the windows' positions on the indexed axes, clamped into the operand, and a mask of those inside.

    Args:
        indices: the indices.
        plan: the plan of the gather or scatter.
        drop: whether to compute the mask; it is None if all windows are inside, or if `drop` is False.
    """
    inside: _Array | None = None
    starts = []
    for i, length in zip(_components(indices), plan.lengths, strict=True):
        if drop:
            fits = (i >= 0) & (i < length)
            inside = fits if inside is None else inside & fits
        starts.append(i)
    if inside is not None and inside.all():
        return [*starts, *plan.rows], None
    starts = [np.minimum(np.maximum(i, 0), length - 1) for i, length in zip(starts, plan.lengths, strict=True)]
    return [*starts, *plan.rows], inside


def windows(x: _Array, plan: Plan) -> _Array:
    """Return a view of all windows: one axis for the position on each indexed axis, then the axes of the window."""
    if plan.whole:
        return x.transpose(plan.indexed + plan.kept)
    positions = [*plan.lengths, *(x.shape[d] for d in plan.indexed[len(plan.lengths) :])]
    strides = tuple(x.strides[d] for d in plan.indexed + plan.kept)
    return strided(x, (*positions, *plan.sizes), strides)


def flat_starts(shape: Ints, starts: list[_Array], plan: Plan) -> _Array:
    """Return the position of each window's first element in the flattened array of that shape."""
    flat: Any = np.zeros((), np.intp)
    for start, d in zip(starts, plan.indexed, strict=True):
        flat = flat + start * math.prod(shape[d + 1 :])
    return np.broadcast_to(flat, plan.places) if flat.shape != plan.places else flat


def flat_window(shape: Ints, plan: Plan) -> _Array:
    """Return the flat positions of a window's elements relative to its first."""
    flat = np.zeros((1,), np.intp)
    for d, size in zip(plan.kept, plan.sizes, strict=True):
        flat = (flat[:, None] + np.arange(size) * math.prod(shape[d + 1 :])).reshape(-1)
    return flat


# -- gather ------------------------------------------------------------------------------------------------------


def collect(x: _Array, indices: _Array, plan: Plan, mode: Any, fill: Any) -> _Array:
    """Gather the windows at the indices, with the axes of the result."""
    shape = plan.places + plan.window
    if 0 in shape:
        return np.empty([shape[a] for a in plan.axes], x.dtype)
    if plan.whole and len(plan.lengths) == len(plan.indexed) == 1 and mode is not FILL and x.flags.c_contiguous:
        return _arranged(_along_one_axis(x, indices, plan).reshape(shape), plan)
    starts, inside = starts_of(indices, plan, mode is FILL)
    if not starts:
        taken = np.array(np.broadcast_to(windows(x, plan), plan.places + plan.sizes))
    elif plan.whole and plan.indexed == tuple(range(len(plan.indexed))) and x.flags.c_contiguous:
        count = len(plan.indexed)
        flat = flat_starts(x.shape[:count], starts, plan)
        taken = x.reshape(-1, *x.shape[count:]).take(flat, axis=0, mode="clip")
    else:
        taken = windows(x, plan)[tuple(starts)]
    taken = taken.reshape(shape)
    if inside is not None:
        taken = taken if plan.places else np.array(taken)  # a single window is a view of the operand
        taken[~inside] = fill
    return _arranged(taken, plan)


def _along_one_axis(x: _Array, indices: _Array, plan: Plan) -> _Array:
    """Take elements along one axis, with clamped indices; the axes of places come first."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(plan.lengths[0]))
    axis, count = plan.indexed[0], len(plan.places)
    taken = x.take(indices.reshape(plan.places), axis=axis, mode="clip")
    if not axis:
        return taken
    return taken.transpose(*range(axis, axis + count), *range(axis), *range(axis + count, taken.ndim))


def _arranged(taken: _Array, plan: Plan) -> _Array:
    return taken.transpose(plan.axes) if plan.axes != tuple(range(len(plan.axes))) else taken


# -- scatter -----------------------------------------------------------------------------------------------------


def _outer_first(updates: _Array, plan: Plan) -> _Array:
    """Return updates with the axes of places before those of windows."""
    order = tuple(int(a) for a in np.argsort(plan.axes))
    return updates.transpose(order) if order != tuple(range(len(order))) else updates


def put(x: _Array, indices: _Array, updates: _Array, plan: Plan, mode: Any) -> _Array:
    """Return a copy of the array with windows replaced, one after another."""
    out = np.array(x, order="C")
    if not updates.size or not out.size:
        return out
    starts, inside = starts_of(indices, plan, mode is not CLIP)
    updates = _outer_first(updates, plan).reshape(plan.places + plan.sizes)
    if inside is not None:
        starts = [np.broadcast_to(s, plan.places)[inside] for s in starts]
        updates = updates[inside]
    if starts:
        windows(out, plan)[tuple(starts)] = updates
    elif updates.size:  # indices without components: every window is the first one
        windows(out, plan)[...] = updates.reshape(-1, *plan.sizes)[-1]
    return out


def combine(ufunc: Any, x: _Array, indices: _Array, updates: _Array, plan: Plan, mode: Any) -> _Array:
    """Return a copy of the array with updates combined into its windows, one after another."""
    out = np.array(x, order="C")
    if updates.size and out.size:
        flat, inside = elements(x.shape, indices, plan, mode)
        updates = _outer_first(updates, plan).reshape(math.prod(plan.places), -1)
        if inside is not None:
            updates = updates[inside]
        ufunc.at(out.reshape(-1), flat, updates.reshape(-1))
    return out


def elements(shape: Ints, indices: _Array, plan: Plan, mode: Any) -> tuple[_Array, _Array | None]:
    """Return the flat positions of all elements that a scatter writes, and a mask of the windows inside (None: all)."""
    starts, inside = starts_of(indices, plan, mode is not CLIP)
    flat = flat_starts(shape, starts, plan).reshape(-1)
    if inside is not None:
        inside = inside.reshape(-1)
        flat = flat[inside]
    if plan.sizes:
        flat = (flat[:, None] + flat_window(shape, plan)).reshape(-1)
    return flat, inside
