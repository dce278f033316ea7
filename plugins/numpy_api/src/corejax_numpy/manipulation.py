"""Axes and shapes: the same elements arranged otherwise."""

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


def shape(a: Any) -> tuple[int, ...]:
    """Sizes of the axes; static, also of a traced array."""
    if isinstance(a, np.ndarray):  # of strings, say
        return a.shape
    if is_array_like(a):
        return get_aval(a).shape
    try:
        return np.shape(a)
    except ValueError:
        raise ValueError(f"{called_function() or 'shape'}: {a!r} is a ragged sequence, it has no shape") from None


def ndim(a: Any) -> int:
    """Number of axes."""
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Number of elements, or of those along some axes."""
    sizes = shape(a)
    return math.prod(sizes[d] for d in canonical_axes(axis, len(sizes)))


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Any:
    """The same elements in another shape.

    Args:
        a: the array.
        shape: sizes of the axes, or one size; one may be -1, which stands for what is left.
        order: "C" reads and writes elements with the last index running fastest, "F" with the first.
        copy: accepted as NumPy's; arrays cannot be changed.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shape does not have as many elements, or is not made of concrete integers.
        ValueError: more than one size is -1, or there is no such order.
    """
    return lax.place("reshape", _reshaped("reshape", a, shape, order), out_sharding)


def _reshaped(name: str, a: Any, shape: Any, order: str) -> Any:
    x = array_argument(name, a)
    if order == "C":
        return lax.reshape(x, shape)
    if order in ("A", "K"):
        raise NotImplementedError(f"{name}: arrays have no order in memory, so order {order!r} means nothing; use 'C'")
    if order != "F":
        raise ValueError(f"{name}: order is 'C' or 'F', got {order!r}")
    return transpose(lax.reshape(transpose(x), canonical_shape(shape)[::-1]))


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements as a vector; `order` as of `reshape`."""
    x = array_argument("ravel", a)
    return lax.place("ravel", _reshaped("ravel", x, (x.size,), order), out_sharding)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order: reversed, or as `axes` says, axis `i` of the result being axis `axes[i]`.

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
    """Axes in another order; see `transpose`."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged."""
    x = array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose takes an array of at least 2 dimensions, got {x.aval.str_short()}")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    x = array_argument("swapaxes", a)
    first, second = (canonical_axis(d, x.ndim, name="swapaxes") for d in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return lax.transpose(x, tuple(order))


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Axes moved to other places; the rest keep their order.

    Raises:
        ValueError: an axis does not exist or is given twice, or there are not as many places as axes.
    """
    x = array_argument("moveaxis", a)
    sources = canonical_axes(source, x.ndim, "source", "moveaxis")
    destinations = canonical_axes(destination, x.ndim, "destination", "moveaxis")
    if len(sources) != len(destinations):
        raise ValueError(f"moveaxis: as many places as axes, got source {source} and destination {destination}")
    order = [d for d in range(x.ndim) if d not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return lax.transpose(x, tuple(order))


def expand_dims(a: Any, axis: int | Sequence[int]) -> Any:
    """New axes of size 1 at the given places of the result."""
    x = array_argument("expand_dims", a)
    given = tuple(axis) if lax.is_several(axis) else (axis,)
    axes = canonical_axes(given, x.ndim + len(given), name="expand_dims")
    return lax.expand_dims(x, axes) if axes else x


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Without axes of size 1: those given, or all of them.

    Raises:
        ValueError: a given axis has another size, or does not exist.
    """
    x = array_argument("squeeze", a)
    axes = (
        tuple(d for d, n in enumerate(x.shape) if n == 1)
        if axis is None
        else canonical_axes(axis, x.ndim, name="squeeze")
    )
    return lax.squeeze(x, axes) if axes else x


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast.

    Raises:
        ValueError: they do not.
    """
    return lax.broadcast_shapes(*(s if isinstance(s, tuple | list) else (s,) for s in shapes))


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """The array repeated along new leading axes and axes of size 1.

    Raises:
        ValueError: the array does not broadcast to the shape.
    """
    out = lax.broadcast_to(array_argument("broadcast_to", array), canonical_shape(shape))
    return lax.place("broadcast_to", out, out_sharding)


def broadcast_arrays(*args: Any) -> list[Any]:
    """Arrays repeated so that they have one shape.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    arrays = array_arguments("broadcast_arrays", *args)
    sizes = lax.broadcast_shapes(*(x.shape for x in arrays))
    return [lax.broadcast_to(x, sizes) for x in arrays]


def atleast_1d(*arys: Any) -> Any:
    """Arrays of at least one axis (a list of them, unless one is given)."""
    return _each("atleast_1d", lambda x: lax.reshape(x, (1,)) if x.ndim == 0 else x, arys)


def atleast_2d(*arys: Any) -> Any:
    """Arrays of at least two axes, new ones first (a list of them, unless one is given)."""
    return _each("atleast_2d", lambda x: lax.expand_dims(x, tuple(range(2 - x.ndim))) if x.ndim < 2 else x, arys)


def atleast_3d(*arys: Any) -> Any:
    """Arrays of at least three axes (a list of them, unless one is given).

    A vector of `n` elements gets the shape `(1, n, 1)`, a matrix a new last axis.
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each("atleast_3d", lambda x: lax.expand_dims(x, new[x.ndim]) if x.ndim < 3 else x, arys)


def _each(name: str, change: Callable[[Any], Any], arrays: Sequence[Any]) -> Any:
    out = [change(x) for x in array_arguments(name, *arrays)]
    return out[0] if len(out) == 1 else out


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Any:
    """The order of elements reversed along axes; None is all of them."""
    x = array_argument("flip", m)
    axes = canonical_axes(axis, x.ndim, name="flip")
    return lax.rev(x, axes) if axes else x


def flipud(m: Any) -> Any:
    """The first axis reversed."""
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """The second axis reversed."""
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """The plane of two axes turned by `k` right angles, from the first of them to the second.

    Raises:
        ValueError: the array has fewer than two axes; they do not exist, are the same, or are not two.
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
    """An axis moved to before the axis `start`; `moveaxis` is easier to read.

    Raises:
        AxisError: there is no such axis, or `start` is no place between axes.
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
    """Coordinates of a grid, from those of its axes.

    Args:
        xi: vectors (or scalars), one for each axis.
        copy: True; results are new arrays.
        sparse: leave the axes along which an array is constant with size 1.
        indexing: "xy" puts the second vector along the first axis of the results, "ij" the first one.

    Raises:
        ValueError: an argument is no vector, or there is no such indexing; `copy` is False.
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
