"""Windows by NumPy: axis after axis, since the functions that reduce them are associative and commutative."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.strided import strided
from corejax_lax_basic._speed import COMPILED_WINDOW, FEW_IN_WINDOW
from corejax_lax_basic.shape.slicing import pad_on_host
from corejax_lax_basic.windows.geometry import Pads, count_windows, dilated, dilated_shape

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

Combine = Callable[..., Any]


def has_small_windows(avals: Avals, *, window_dimensions: Ints, **params: Any) -> bool:
    """Return whether a compiled program is faster than NumPy; its time is proportional to the size of all windows."""
    return math.prod(window_dimensions) <= COMPILED_WINDOW


def padded(x: Any, value: Any, padding: Pads, base_dilation: Ints) -> Any:
    """Pad and dilate an array."""
    config = tuple((low, high, d - 1) for (low, high), d in zip(padding, base_dilation, strict=True))
    return pad_on_host(x, value, padding_config=config) if any(map(any, config)) else x


def windows_view(x: Any, first: int, window: Ints, strides: Ints, dilation: Ints) -> Any:
    """Return a read-only view of the windows over some axes of a NumPy array.

    Args:
        x: the padded array.
        first: the first axis along which windows move; the others follow it.
        window: sizes of the windows.
        strides: distances between windows.
        dilation: distances between the elements of a window.

    Returns:
        An array of shape `(other axes..., counts..., other axes..., window...)`: each axis is replaced by the number of
        windows along it, and the windows' axes are last.
    """
    last = first + len(window)
    spans = dilated_shape(window, dilation)
    counts = [count_windows(n, k, s) for n, k, s in zip(x.shape[first:last], spans, strides, strict=True)]
    steps = x.strides[first:last]
    window_strides = [a * s for a, s in zip(steps, strides, strict=True)]
    element_strides = [a * d for a, d in zip(steps, dilation, strict=True)]
    return strided(
        x,
        (*x.shape[:first], *counts, *x.shape[last:], *window),
        (*x.strides[:first], *window_strides, *x.strides[last:], *element_strides),
        writeable=False,
    )


def reduce_windows(x: Any, ufunc: np.ufunc, window: Ints, strides: Ints, dilation: Ints) -> Any:
    """Reduce all windows of a padded array."""
    for axis, (w, s, d) in enumerate(zip(window, strides, dilation, strict=True)):
        if w > 1 or s > 1:
            x = _along(x, ufunc, axis, w, s, d)
    return x


def _along(x: Any, ufunc: np.ufunc, axis: int, window: int, stride: int, dilation: int) -> Any:
    """Reduce windows along one axis: element by element, all at once if windows share few elements, or by doubling."""
    size = x.shape[axis]
    count = count_windows(size, dilated(window, dilation), stride)
    lead = (slice(None),) * axis

    def part(y: Any, start: int, n: int, step: int = 1) -> Any:
        return y[(*lead, slice(start, start + (n - 1) * step + 1 if n else start, step))]

    if window <= FEW_IN_WINDOW or not count:
        out = part(x, 0, count, stride).copy()
        for k in range(1, window):
            ufunc(out, part(x, k * dilation, count, stride), out=out)
        return out
    if count * window <= 4 * size:
        return ufunc.reduce(windows_view(x, axis, (window,), (stride,), (dilation,)), axis=-1, dtype=x.dtype)
    every = size - dilated(window, dilation) + 1
    out, done, power, doubled = None, 0, 1, x
    while True:
        if window & power:
            piece = part(doubled, done * dilation, every)
            out = piece if out is None else ufunc(out, piece)
            done += power
        if done == window:
            return part(out, 0, count, stride)
        n = doubled.shape[axis] - power * dilation
        doubled = ufunc(part(doubled, 0, n), part(doubled, power * dilation, n))
        power *= 2


def offsets(shape: Ints, window: Ints, strides: Ints, dilation: Ints) -> Iterator[tuple[slice, ...]]:
    """Yield, for each position in a window in row-major order, the slices of a padded array's elements there."""
    counts = [count_windows(n, k, s) for n, k, s in zip(shape, dilated_shape(window, dilation), strides, strict=True)]
    for place in itertools.product(*map(range, window)):
        yield tuple(
            slice(k * d, k * d + (n - 1) * s + 1 if n else k * d, s)
            for k, d, n, s in zip(place, dilation, counts, strides, strict=True)
        )


def selected(x: Any, window: Ints, strides: Ints, dilation: Ints, greatest: bool) -> Any:
    """Return the position of the greatest or least element of each window: the first of equals, or the first NaN."""
    best: Any = None
    places: Any = None
    floats = dtypes.is_float(x.dtype)
    for k, key in enumerate(offsets(x.shape, window, strides, dilation)):
        elements = x[key]
        if best is None:
            best, places = elements.copy(), np.zeros(elements.shape, np.intp)
            continue
        wins = elements > best if greatest else elements < best
        if floats:
            wins |= (elements != elements) & (best == best)
        np.copyto(best, elements, where=wins)
        np.copyto(places, k, where=wins)
    return places
