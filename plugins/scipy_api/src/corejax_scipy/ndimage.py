"""`corejax.scipy.ndimage`: interpolate images of any number of axes."""

from __future__ import annotations

import functools as _functools
import itertools as _itertools
import operator as _operator
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

import corejax.numpy as _jnp
from corejax.extend import dtypes as _dtypes
from corejax.extend import remembered as _remembered
from corejax_lax_basic import lax as _lax
from corejax_scipy._arguments import array as _array
from corejax_scipy._arguments import static_int as _static_int

__all__ = ["map_coordinates"]


def _mirror(index: _Any, size: int) -> _Any:
    """Reflect indices at the centres of the first and last element."""
    period = max(2 * (size - 1), 1)
    return _jnp.abs((index + size - 1) % period - (size - 1)) if size > 1 else _jnp.zeros_like(index)


def _reflect(index: _Any, size: int) -> _Any:
    """Reflect indices at the outer edges of the first and last element."""
    inner = index % (2 * size)
    return _jnp.where(inner < size, inner, 2 * size - 1 - inner)


_MODES: dict[str, _Callable[[_Any, int], _Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: _jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirror,
    "reflect": _reflect,
}


def _nodes(coordinate: _Any, order: int, index: _Any) -> list[tuple[_Any, _Any]]:
    """Return the neighbouring indices of a coordinate, in an integer dtype, with their weights."""
    if not _dtypes.is_inexact(coordinate.dtype):
        return [(coordinate.astype(index), 1)]
    if order == 0:
        return [(_lax.round(coordinate).astype(index), 1)]
    lower = _jnp.floor(coordinate)
    part = coordinate - lower
    at = lower.astype(index)
    return [(at, 1 - part), (at + 1, part)]


@_remembered(numbers=True)
def map_coordinates(input: _Any, coordinates: _Any, order: int, mode: str = "constant", cval: _Any = 0.0) -> _Any:
    """Interpolate an array at coordinates between its elements.

    Args:
        input: the array.
        coordinates: an array of coordinates for each axis of `input`, all of one shape.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: the values outside: "constant" (`cval`), "nearest", "wrap", "mirror" (about the centres of the outer
            elements) or "reflect" (about their edges). "constant" and "wrap" are SciPy's "grid-constant" and
            "grid-wrap", as in JAX: SciPy's own "constant" does not interpolate with `cval`, and the period of its
            "wrap" is one element shorter.
        cval: the value outside for the mode "constant".

    Returns:
        An array of the coordinates' shape and the dtype of `input`; values are rounded if that is an integer dtype.

    Raises:
        TypeError: an argument is not an array, or `coordinates` is not a sequence of arrays.
        ValueError: the number of coordinates is not the number of axes, or an axis has no elements.
        NotImplementedError: `order` or `mode` is not supported.
    """
    x = _array("map_coordinates", input)
    if not isinstance(coordinates, _Sequence) and not _np.ndim(coordinates):
        raise TypeError(
            "map_coordinates: coordinates must be a sequence of arrays, one for each axis of input, got "
            f"{coordinates!r} of type {type(coordinates).__name__}"
        )
    if x.ndim != len(coordinates):
        raise ValueError(
            f"map_coordinates: coordinates must have an array for each of the {x.ndim} axes of input, got "
            f"{len(coordinates)}"
        )
    if mode not in _MODES:
        known = ", ".join(map(repr, _MODES))
        raise NotImplementedError(
            f"map_coordinates: mode must be one of {known}, got {mode!r}; 'constant' and 'wrap' are what SciPy calls "
            "'grid-constant' and 'grid-wrap'"
        )
    if _static_int("map_coordinates", order, "order") not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order must be 0 or 1, got {order!r}")
    if not x.size:
        raise ValueError(f"map_coordinates: input must have elements, got {x.aval.str_short()}")
    axes = []
    index, elements = _dtypes.default_int_dtype() if x.size < 1 << 31 else _np.int64, x.size
    for i, (c, size) in enumerate(zip(coordinates, x.shape, strict=True)):
        elements //= size  # the stride of the axis
        nodes = _nodes(_array("map_coordinates", c, f"coordinates[{i}]"), order, index)
        places = [(_MODES[mode](at, size) * elements, weight) for at, weight in nodes]
        inside = [(at >= 0) & (at < size) for at, _ in nodes] if mode == "constant" else [True] * len(nodes)
        axes.append([(at, valid, weight) for (at, weight), valid in zip(places, inside, strict=True)])
    filling = _lax.convert_element_type(cval, x.dtype)
    line = x.ravel()
    parts = []
    for corner in _itertools.product(*axes):
        place = _functools.reduce(_operator.add, (at for at, _, _ in corner))
        values = _jnp.take(line, place, mode="clip")  # values outside are replaced by `filling` below
        if mode == "constant":
            all_inside = _functools.reduce(_operator.and_, (valid for _, valid, _ in corner))
            values = _jnp.where(all_inside, values, filling)
        weight = _functools.reduce(_operator.mul, (weight for _, _, weight in corner))
        parts.append(weight * values)
    out = _functools.reduce(_operator.add, parts)
    if not _dtypes.is_inexact(x.dtype) and _dtypes.is_inexact(out.dtype):
        out = _lax.round(out)
    return _lax.convert_element_type(out, x.dtype)
