"""The structural operations that interpreters request from the plugin (`corejax.arrays.structural`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, get_aval
from corejax.extend.messages import clears_cache
from corejax.extend.transforms import recording_trace
from corejax.extend.types import ValueType
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import moveaxis, reshape_p
from corejax_lax_basic.shape.slicing import slice_p
from corejax_lax_basic.transforms import batched as batched  # derives vmap rules
from corejax_lax_basic.values.pack import pack_p, unpack_p
from corejax_lax_basic.values.rearranged import rearranged_p


def add(x: Any, y: Any) -> Any:
    """Return the sum of two values of one type; of a value type, which is its own tangent type, by the parts."""
    if isinstance(getattr(x, "aval", None), ValueType):
        return pack_p.bind(*map(add, unpack_p.bind(x), unpack_p.bind(y)), type=x.aval)
    return add_p.bind(x, y)


def zeros(aval: ShapedArray) -> Any:
    """Return zeros of a type: a view of one element or, while a program is recorded, a broadcast literal."""
    if isinstance(aval, ValueType):
        return pack_p.bind(*map(zeros, aval.parts()), type=aval)
    if not aval.shape or recording_trace() is None:
        return _concrete_zeros(aval)
    return broadcast_in_dim_p.bind(_concrete_zeros(aval.update(shape=())), shape=aval.shape, broadcast_dimensions=())


@functools.lru_cache(1024)
def _concrete_zeros(aval: ShapedArray) -> Array:
    return Array(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval)


clears_cache(_concrete_zeros.cache_clear)


def broadcast_axis(x: Any, size: int, axis: int) -> Any:
    """Insert a new axis of `size` copies at position `axis`."""
    aval = get_aval(x)
    if isinstance(aval, ValueType):
        return rearranged_p.bind(x, name="broadcast_axis", args=(size, axis))
    shape = aval.shape
    ndim = len(shape) + 1
    out = (*shape[:axis], size, *shape[axis:])
    dims = tuple(d for d in range(ndim) if d != axis)
    return broadcast_in_dim_p.bind(x, shape=out, broadcast_dimensions=dims)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """Return `x` with one axis at another position."""
    if isinstance(get_aval(x), ValueType):
        return rearranged_p.bind(x, name="move_axis", args=(source, destination))
    return moveaxis(x, source, destination)


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the same elements in another shape."""
    return x if get_aval(x).shape == shape else reshape_p.bind(x, new_sizes=tuple(shape))


def index_axis(x: Any, i: int, axis: int) -> Any:
    """Return the slice at position `i` of an axis, without that axis."""
    aval = get_aval(x)
    if isinstance(aval, ValueType):
        return rearranged_p.bind(x, name="index_axis", args=(i, axis))
    shape = aval.shape
    start, limit = [0] * len(shape), list(shape)
    start[axis], limit[axis] = i, i + 1
    if shape[axis] != 1:
        x = slice_p.bind(x, start_indices=tuple(start), limit_indices=tuple(limit), strides=None)
    return reshape(x, (*shape[:axis], *shape[axis + 1 :]))


def stack(xs: Sequence[Any], axis: int) -> Any:
    """Join values of one type along a new axis."""
    if isinstance(get_aval(xs[0]), ValueType):
        return rearranged_p.bind(*xs, name="stack", args=(axis,))
    return concatenate([broadcast_axis(x, 1, axis) for x in xs], axis)


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": add,
    "zeros": zeros,
    "broadcast_axis": broadcast_axis,
    "move_axis": move_axis,
    "reshape": reshape,
    "astype": convert_element_type,
    "index_axis": index_axis,
    "stack": stack,
}
