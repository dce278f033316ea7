"""Delete elements from arrays, and insert elements.

Sizes are static, so the deleted or inserted indices, or at least their number, are known while tracing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, dtypes
from corejax.extend.types import SymbolicDim, max_dim
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axes, canonical_axis, is_known, known_array, like
from corejax_numpy.creation import asarray
from corejax_numpy.manipulation import moveaxis, ravel
from corejax_numpy.ranges import arange


def _along(x: Any, axis: int, indices: Any) -> Any:
    return x[(*[slice(None)] * axis, indices)]


def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Any:
    """Return an array without some elements along an axis.

    Args:
        arr: the array.
        obj: the elements to delete: an integer, a slice, an array of integers, or a boolean mask.
        axis: the axis; None, the default, flattens the array first.
        assume_unique_indices: a promise that no index in `obj` occurs twice, so that the number of deleted elements is
            known, and `obj` may be traced.

    Raises:
        IndexError: a concrete index is out of bounds.
        ValueError: `obj` is of another kind, or the mask does not match the axis.
        ConcretizationTypeError: `obj` is traced, and `assume_unique_indices` is False.
    """
    x = array_argument("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.ndim, name="delete")
    size = x.shape[axis]
    if isinstance(size, SymbolicDim):
        obj = arange(size)[obj] if isinstance(obj, slice) else _distinct("delete", obj)
        return _delete_by_traced_indices(x, obj, axis)
    if isinstance(obj, slice):
        obj = np.arange(size)[obj]
    if isinstance(obj, Tracer) and assume_unique_indices and dtypes.is_integer(obj.dtype):
        return _delete_by_traced_indices(x, obj, axis)
    selector = known_array("delete", obj, "with `assume_unique_indices=True` indices may be traced")
    kept = np.ones(size, bool)
    if selector.dtype == bool:
        if selector.shape != (size,):
            raise ValueError(
                f"delete: a mask for axis {axis} of {x.aval.str_short()} has shape ({size},), got {selector.shape}"
            )
        kept = ~selector
    elif selector.dtype.kind in "iu" or not selector.size:
        indices = selector.astype(int).reshape(-1)
        if indices.size and not (-size <= indices.min() and indices.max() < size):
            raise IndexError(f"delete: indices {obj} are out of bounds for axis {axis} of {x.aval.str_short()}")
        kept[indices] = False
    else:
        raise ValueError(f"delete: obj must contain integers or booleans, got {selector.dtype}")
    return _select_runs(x, axis, np.flatnonzero(kept))


def _select_runs(x: Any, axis: int, indices: np.ndarray) -> Any:
    """Return the elements at increasing indices: one slice, or two joined slices if possible, else a gather."""
    cuts = np.flatnonzero(np.diff(indices) != 1) + 1
    if len(cuts) > 1:
        return _along(x, axis, indices)
    runs = [run for run in np.split(indices, cuts) if run.size]
    parts = [lax.slice_in_dim(x, int(run[0]), int(run[-1]) + 1, axis=axis) for run in runs]
    if not parts:
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    return lax.concatenate(parts, axis) if len(parts) > 1 else parts[0]


def _distinct(name: str, indices: Any) -> Any:
    """Return the unique indices along an axis of symbolic size.

    Raises:
        ValueError: the indices are not integers; or two of them may name one element, which depends on the size.
    """
    known = known_array(name, indices)
    if known.dtype.kind not in "iu" or (known.size and known.min() < 0 <= known.max()):
        raise ValueError(
            f"{name}: along an axis of symbolic size, indices must be integers that all count from the front "
            f"or all from the end, got {indices!r}"
        )
    return asarray(np.unique(known).astype(dtypes.default_int_dtype()))


def _delete_by_traced_indices(x: Any, obj: Any, axis: int) -> Any:
    """Take index `i` plus the number of elements deleted before it, for each index `i` of the result."""
    size, obj = x.shape[axis], lax.reshape(obj, (obj.size,))
    obj = lax.convert_element_type(obj, dtypes.default_int_dtype())
    obj = lax.select(lax.lt(obj, like(obj, 0)), lax.add(obj, like(obj, size)), obj)
    deleted = lax.sort(lax.clamp(0, obj, size))
    deleted = lax.sub(deleted, lax.iota(deleted.dtype, deleted.shape[0]))
    shape = (deleted.shape[0], max_dim(size - deleted.shape[0], 0))
    places = lax.iota(deleted.dtype, shape[1])
    before = lax.ge(lax.broadcast_in_dim(places, shape, (1,)), lax.broadcast_in_dim(deleted, shape, (0,)))
    shifts = lax.reduce_sum(lax.convert_element_type(before, deleted.dtype), (0,))
    return _along(x, axis, lax.add(places, shifts))


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Return an array with elements inserted along an axis.

    Args:
        arr: the array.
        obj: the indices before which elements are inserted: an integer, a slice, or a vector of integers; may be
            traced.
        values: the elements to insert, converted to the array's dtype; they broadcast to the number of indices.
        axis: the axis; None, the default, flattens the array first.

    Raises:
        IndexError: a concrete index is out of bounds. (Traced indices are clamped.)
        ValueError: `obj` is not a vector of integers, or the shape of `values` does not match.
    """
    x = array_argument("insert", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.ndim, name="insert")
    size = x.shape[axis]
    symbolic = isinstance(size, SymbolicDim)
    indices = (arange if symbolic else np.arange)(size)[obj] if isinstance(obj, slice) else obj
    indices = known_array("insert", indices) if is_known(indices) else array_argument("insert", indices, 1)
    if indices.size == 0 and not isinstance(obj, Array):
        indices = indices.astype(int)
    if symbolic:
        indices = asarray(indices)
    if indices.ndim > 1 or not dtypes.is_integer(indices.dtype):
        raise ValueError(f"insert: indices are an integer, a slice or a vector of integers, got {obj!r}")
    new = lax.convert_element_type(asarray(values), x.dtype)
    if new.ndim > x.ndim:
        raise ValueError(f"insert: values of shape {new.shape} have more axes than the array, {x.aval.str_short()}")
    new = lax.expand_dims(new, tuple(range(x.ndim - new.ndim)))
    if indices.ndim == 0:
        new = moveaxis(new, 0, axis)
    count = new.shape[axis] if indices.size == 1 else indices.size
    try:
        new = lax.broadcast_to(new, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    except ValueError:
        raise ValueError(
            f"insert: values of shape {new.shape} do not match {count} indices on axis {axis} of {x.aval.str_short()}"
        ) from None
    return _along(lax.concatenate([new, x], axis), axis, _order(x, obj, indices, count, axis))


def _order(x: Any, obj: Any, indices: Any, count: int, axis: int) -> Any:
    """Return the order of new and old elements: new elements come before the element at their index."""
    size = x.shape[axis]
    if isinstance(indices, np.ndarray):
        if indices.size and not (-size <= indices.min() and indices.max() <= size):
            raise IndexError(f"insert: indices {obj} are out of bounds for axis {axis} of {x.aval.str_short()}")
        places = np.where(indices < 0, indices + size, indices).reshape(-1)
        return np.argsort(np.concatenate([np.broadcast_to(places, (count,)), np.arange(size)]), kind="stable")
    from corejax_numpy.sorting import argsort

    places = lax.convert_element_type(lax.reshape(indices, (indices.size,)), dtypes.default_int_dtype())
    places = lax.select(lax.lt(places, like(places, 0)), lax.add(places, like(places, size)), places)
    places = lax.broadcast_to(lax.clamp(0, places, size), (count,))
    return argsort(lax.concatenate([places, lax.iota(places.dtype, size)], 0), stable=True)


def trim_zeros(filt: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Any:
    """Remove the zeros at the ends of an array.

    Args:
        filt: the array; its values must be concrete.
        trim: "f" removes leading zeros, "b" trailing zeros, "fb" (the default) both.
        axis: the axis or axes to trim; None, the default, trims all.

    Raises:
        ConcretizationTypeError: the array is traced, and the number of zeros is therefore unknown.
        ValueError: `trim` has other letters.
    """
    x = array_argument("trim_zeros", filt)
    sides = str(trim).lower()
    if not set(sides) <= {"f", "b"}:
        raise ValueError(f"trim_zeros: trim is 'f', 'b' or both, got {trim!r}")
    axes = canonical_axes(axis, x.ndim, name="trim_zeros")
    nonzero = known_array("trim_zeros", x) != 0
    for d in axes:
        places = np.flatnonzero(nonzero.any(axis=tuple(e for e in range(x.ndim) if e != d)))
        start = (places[0] if places.size else x.shape[d]) if "f" in sides else 0
        stop = (places[-1] + 1 if places.size else 0) if "b" in sides else x.shape[d]
        x = lax.slice_in_dim(x, min(int(start), int(stop)), int(stop), axis=d)
    return x
