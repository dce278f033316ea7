"""Change shapes, and the order of axes and elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import get_aval, is_array_like
from corejax.extend.messages import called_function
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    array_arguments,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    sequence,
    static_int,
)


def slice_along(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """Return the elements from `start` to `stop` along an axis, for functions of the plugin."""
    return lax.slice_in_dim(x, start, stop, axis=axis)


def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of the axes; they are static, also if the array is traced."""
    if isinstance(a, np.ndarray):  # also of dtypes that no `Array` has, such as strings
        return tuple(a.shape)
    if is_array_like(a):
        return get_aval(a).shape
    try:
        return np.shape(a)
    except ValueError:
        raise ValueError(f"{called_function() or 'shape'}: {a!r} is a ragged sequence, it has no shape") from None


def ndim(a: Any) -> int:
    """Return the number of axes."""
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements, or the product of the sizes of the given axes."""
    sizes = shape(a)
    return math.prod(sizes[d] for d in canonical_axes(axis, len(sizes)))


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Any:
    """Return the elements of an array in another shape.

    Args:
        a: the array.
        shape: sizes of the axes, a sequence or one integer; one size may be -1 and is then inferred.
        order: "C" (the default) reads and writes elements with the last index changing fastest, "F" with the first.
        copy: accepted for compatibility with NumPy and ignored; arrays are immutable.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shape has another number of elements, or contains something other than concrete integers.
        ValueError: more than one size is -1, or the order is unknown.
    """
    return lax.place("reshape", _reshaped("reshape", a, shape, order), out_sharding)


def _reshaped(name: str, a: Any, shape: Any, order: str) -> Any:
    x = array_argument(name, a)
    if order == "C":
        return lax.reshape(x, shape)
    if order in ("A", "K"):
        raise NotImplementedError(f"{name}: arrays have no memory layout, so order {order!r} has no meaning; use 'C'")
    if order != "F":
        raise ValueError(f"{name}: order is 'C' or 'F', got {order!r}")
    return transpose(lax.reshape(transpose(x), canonical_shape(shape)[::-1]))


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """Return the elements as a vector; `order` is as for `reshape`."""
    x = array_argument("ravel", a)
    return lax.place("ravel", _reshaped("ravel", x, (x.size,), order), out_sharding)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Permute the axes: axis `i` of the result is axis `axes[i]` of the array. By default the axes are reversed.

    Args:
        a: the array.
        axes: a permutation of the axes; None, the default, reverses them.

    Raises:
        ValueError: `axes` is not a permutation of the array's axes.
    """
    x = array_argument("transpose", a)
    order = tuple(range(x.ndim))[::-1] if axes is None else canonical_axes(axes, x.ndim, "axes", "transpose")
    if len(order) != x.ndim:
        raise ValueError(
            f"transpose: axes {tuple(order)} are not a permutation of the {x.ndim} axes of {x.aval.str_short()}"
        )
    return lax.transpose(x, order)


def permute_dims(a: Any, /, axes: Sequence[int]) -> Any:
    """Permute the axes; see `transpose`."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """Swap the last two axes."""
    x = array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose takes an array of at least 2 dimensions, got {x.aval.str_short()}")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Swap two axes."""
    x = array_argument("swapaxes", a)
    first, second = (canonical_axis(d, x.ndim, name="swapaxes") for d in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return lax.transpose(x, tuple(order))


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Move axes to other positions; the other axes keep their order.

    Args:
        a: the array.
        source: the axis or axes to move.
        destination: the position of each moved axis in the result.

    Raises:
        ValueError: an axis does not exist or is given twice, or the numbers of sources and destinations differ.
    """
    x = array_argument("moveaxis", a)
    sources = canonical_axes(source, x.ndim, "source", "moveaxis")
    destinations = canonical_axes(destination, x.ndim, "destination", "moveaxis")
    if len(sources) != len(destinations):
        raise ValueError(
            f"moveaxis: as many destinations as sources, got source {source} and destination {destination}"
        )
    order = [d for d in range(x.ndim) if d not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return lax.transpose(x, tuple(order))


def expand_dims(a: Any, axis: int | Sequence[int]) -> Any:
    """Insert axes of size 1; `axis` is one position or several, counted in the result."""
    x = array_argument("expand_dims", a)
    given: tuple[Any, ...] = (axis,) if isinstance(axis, int) or not lax.is_several(axis) else tuple(axis)
    axes = canonical_axes(given, x.ndim + len(given), name="expand_dims")
    return lax.expand_dims(x, axes) if axes else x


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Remove axes of size 1.

    Args:
        a: the array.
        axis: the axis or axes to remove; None, the default, removes all of size 1.

    Raises:
        ValueError: a given axis has another size, or does not exist.
        InconclusiveDimensionOperation: no axis is given, and a symbolic size may be 1.
    """
    x = array_argument("squeeze", a)
    axes = None if axis is None else canonical_axes(axis, x.ndim, name="squeeze")
    return lax.squeeze(x, axes)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which arrays of these shapes broadcast.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    shape: tuple[int, ...] = lax.broadcast_shapes(*(s if isinstance(s, tuple | list) else (s,) for s in shapes))
    return shape


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """Broadcast an array to a shape.

    Raises:
        ValueError: the array does not broadcast to the shape.
    """
    out = lax.broadcast_to(array_argument("broadcast_to", array), canonical_shape(shape))
    return lax.place("broadcast_to", out, out_sharding)


def broadcast_arrays(*args: Any) -> list[Any]:
    """Broadcast arrays to one shape; return a list.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    arrays = array_arguments("broadcast_arrays", *args)
    sizes = lax.broadcast_shapes(*(x.shape for x in arrays))
    return [lax.broadcast_to(x, sizes) for x in arrays]


def atleast_1d(*arys: Any) -> Any:
    """Return arrays with at least one axis; several arguments give a list."""
    return _each("atleast_1d", lambda x: lax.reshape(x, (1,)) if x.ndim == 0 else x, arys)


def atleast_2d(*arys: Any) -> Any:
    """Return arrays with at least two axes, new axes first; several arguments give a list."""
    return _each("atleast_2d", lambda x: lax.expand_dims(x, tuple(range(2 - x.ndim))) if x.ndim < 2 else x, arys)


def atleast_3d(*arys: Any) -> Any:
    """Return arrays with at least three axes; several arguments give a list.

    A vector of `n` elements gets the shape `(1, n, 1)`, a matrix a new last axis.
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each("atleast_3d", lambda x: lax.expand_dims(x, new[x.ndim]) if x.ndim < 3 else x, arys)


def _each(name: str, change: Callable[[Any], Any], arrays: Sequence[Any]) -> Any:
    out = [change(x) for x in array_arguments(name, *arrays)]
    return out[0] if len(out) == 1 else out


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Reverse the order of the elements along one axis or several; None, the default, reverses all axes."""
    x = array_argument("flip", m)
    axes = canonical_axes(axis, x.ndim, name="flip")
    return lax.rev(x, axes) if axes else x


def flipud(m: Any) -> Any:
    """Reverse the elements along the first axis."""
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """Reverse the elements along the second axis."""
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Rotate by 90 degrees, `k` times, in the plane of two axes, from the first axis towards the second.

    Args:
        m: an array of at least two axes.
        k: number of quarter turns, 1 by default; may be negative.
        axes: the two axes of the plane, (0, 1) by default.

    Raises:
        ValueError: the array has fewer than two axes; or `axes` are not two different axes of the array.
    """
    x = array_argument("rot90", m)
    if len(sequence("rot90", axes, "axes")) != 2:
        raise ValueError(f"rot90: axes are two, got {axes!r}")
    first, second = canonical_axes(tuple(axes), x.ndim, "axes", "rot90")
    turns = static_int("rot90", k, "k") % 4
    if turns == 0:
        return x
    if turns == 2:
        return lax.rev(x, (first, second))
    return (
        swapaxes(lax.rev(x, (second,)), first, second) if turns == 1 else lax.rev(swapaxes(x, first, second), (second,))
    )


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Move an axis to before the axis `start`; `moveaxis` is easier to read.

    Args:
        a: the array.
        axis: the axis to move.
        start: the axis before which it is inserted, 0 by default; `a.ndim` moves it to the end.

    Raises:
        AxisError: the axis does not exist, or `start` is out of bounds.
    """
    x = array_argument("rollaxis", a)
    axis = canonical_axis(axis, x.ndim, name="rollaxis")
    start = static_int("rollaxis", start, "start")
    if not -x.ndim <= start <= x.ndim:
        message = f"rollaxis: start is from {-x.ndim} to {x.ndim} for {x.aval.str_short()}, got {start}"
        raise np.exceptions.AxisError(message)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if start > axis else start)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Return coordinate arrays of a grid from the coordinate vectors of its axes.

    Args:
        xi: vectors (or scalars), one for each axis.
        copy: must be True; results are new arrays.
        sparse: whether axes along which a result is constant have size 1; False by default.
        indexing: "xy", the default, for Cartesian indexing: the first vector varies along the second axis; "ij" for
            matrix indexing: vector `i` varies along axis `i`.

    Raises:
        ValueError: an argument is not a vector, `indexing` is unknown, or `copy` is False.
    """
    if not copy:
        raise ValueError("meshgrid: results are new arrays, copy=False is not possible")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}")
    vectors = [x if x.ndim else lax.reshape(x, (1,)) for x in array_arguments("meshgrid", *xi)]
    if any(x.ndim != 1 for x in vectors):
        raise ValueError(f"meshgrid takes vectors, got shapes {[x.shape for x in vectors]}")
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    sizes = [0] * len(vectors)
    for place, x in zip(places, vectors, strict=True):
        sizes[place] = x.shape[0]
    if sparse:
        others = [tuple(d for d in range(len(vectors)) if d != place) for place in places]
        return [lax.expand_dims(x, rest) if rest else x for x, rest in zip(vectors, others, strict=True)]
    return [lax.broadcast_in_dim(x, tuple(sizes), (place,)) for place, x in zip(places, vectors, strict=True)]
