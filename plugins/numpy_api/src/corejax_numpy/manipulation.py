"""Axes and shapes: the same elements arranged otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import get_aval, is_array_like
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, array_arguments, canonical_axes, canonical_axis, canonical_shape


def shape(a: Any) -> tuple[int, ...]:
    """Sizes of the axes; static, also of a traced array."""
    return get_aval(a).shape if is_array_like(a) else np.shape(a)


def ndim(a: Any) -> int:
    """Number of axes."""
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Number of elements, or of those along some axes."""
    sizes = shape(a)
    return int(np.prod([sizes[d] for d in canonical_axes(axis, len(sizes))], dtype=int))


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements in another shape.

    Args:
        a: the array.
        shape: sizes of the axes, or one size; one may be -1, which stands for what is left.
        order: "C" reads and writes elements with the last index running fastest, "F" with the first.
        copy: accepted as NumPy's; arrays cannot be changed.

    Raises:
        TypeError: the shape does not have as many elements, or is not made of concrete integers.
        ValueError: more than one size is -1, or there is no such order.
    """
    x = array_argument("reshape", a)
    if order == "C":
        return lax.reshape(x, shape)
    if order != "F":
        raise ValueError(f"reshape: order is 'C' or 'F', got {order!r}")
    return transpose(lax.reshape(transpose(x), canonical_shape(shape)[::-1]))


def ravel(a: Any, order: str = "C") -> Any:
    """The elements as a vector."""
    return reshape(a, (-1,) if size(a) else (0,), order)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order: reversed, or as `axes` says, axis `i` of the result being axis `axes[i]`.

    Raises:
        ValueError: `axes` is not a permutation of the array's axes.
    """
    x = array_argument("transpose", a)
    order = tuple(range(x.ndim))[::-1] if axes is None else canonical_axes(axes, x.ndim, "axes")
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
    first, second = canonical_axis(axis1, x.ndim), canonical_axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return lax.transpose(x, tuple(order))


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Axes moved to other places; the rest keep their order.

    Raises:
        ValueError: an axis does not exist or is given twice, or there are not as many places as axes.
    """
    x = array_argument("moveaxis", a)
    sources = canonical_axes(source, x.ndim, "source")
    destinations = canonical_axes(destination, x.ndim, "destination")
    if len(sources) != len(destinations):
        raise ValueError(f"moveaxis: as many places as axes, got source {source} and destination {destination}")
    order = [d for d in range(x.ndim) if d not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return lax.transpose(x, tuple(order))


def expand_dims(a: Any, axis: int | Sequence[int]) -> Any:
    """New axes of size 1 at the given places of the result."""
    x = array_argument("expand_dims", a)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    axes = canonical_axes(axis, x.ndim + count)
    return lax.expand_dims(x, axes) if axes else x


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Without axes of size 1: those given, or all of them.

    Raises:
        ValueError: a given axis has another size, or does not exist.
    """
    x = array_argument("squeeze", a)
    axes = tuple(d for d, n in enumerate(x.shape) if n == 1) if axis is None else canonical_axes(axis, x.ndim)
    return lax.squeeze(x, axes) if axes else x


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast.

    Raises:
        ValueError: they do not.
    """
    return lax.broadcast_shapes(*(s if isinstance(s, tuple | list) else (s,) for s in shapes))


def broadcast_to(array: Any, shape: Any) -> Any:
    """The array repeated along new leading axes and axes of size 1.

    Raises:
        ValueError: the array does not broadcast to the shape.
    """
    return lax.broadcast_to(array_argument("broadcast_to", array), canonical_shape(shape))


def broadcast_arrays(*args: Any) -> list[Any]:
    """Arrays repeated so that they have one shape.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    arrays = array_arguments("broadcast_arrays", *args)
    sizes = lax.broadcast_shapes(*(x.shape for x in arrays))
    return [lax.broadcast_to(x, sizes) for x in arrays]


def atleast_1d(*arys: Any) -> Any:
    """Arrays of at least one axis (a list of them, if several are given)."""
    out = [lax.reshape(x, (1,)) if x.ndim == 0 else x for x in array_arguments("atleast_1d", *arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: Any) -> Any:
    """Arrays of at least two axes, new ones first (a list of them, if several are given)."""
    out = [
        lax.expand_dims(x, tuple(range(2 - x.ndim))) if x.ndim < 2 else x for x in array_arguments("atleast_2d", *arys)
    ]
    return out[0] if len(out) == 1 else out


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Any:
    """The order of elements reversed along axes; None is all of them."""
    x = array_argument("flip", m)
    axes = canonical_axes(axis, x.ndim)
    return lax.rev(x, axes) if axes else x


def flipud(m: Any) -> Any:
    """The first axis reversed."""
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """The second axis reversed."""
    return flip(m, 1)


def meshgrid(*xi: Any, indexing: str = "xy") -> list[Any]:
    """Coordinates of a grid, from those of its axes.

    Args:
        xi: vectors, one for each axis.
        indexing: "xy" puts the second vector along the first axis of the results, "ij" the first one.

    Raises:
        ValueError: an argument is no vector, or there is no such indexing.
    """
    vectors = atleast_1d(*xi) if len(xi) > 1 else [atleast_1d(x) for x in xi]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}")
    if any(x.ndim != 1 for x in vectors):
        raise ValueError(f"meshgrid takes vectors, got shapes {[x.shape for x in vectors]}")
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    sizes = [0] * len(vectors)
    for place, x in zip(places, vectors, strict=True):
        sizes[place] = x.shape[0]
    return [lax.broadcast_in_dim(x, tuple(sizes), (place,)) for place, x in zip(places, vectors, strict=True)]
