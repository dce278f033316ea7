"""All windows of a NumPy array, as a view of it."""

from __future__ import annotations

from typing import Any

from corejax_lax_basic._base.strided import strided
from corejax_lax_basic.windows.geometry import Ints, count_windows, dilated_shape


def windows_view(x: Any, first: int, window: Ints, strides: Ints, dilation: Ints) -> Any:
    """The windows over some axes of a NumPy array: a read-only view.

    Args:
        x: the array, with its padding.
        first: the first axis that windows move along; the others follow it.
        window: their sizes.
        strides: how far apart they are.
        dilation: how far apart a window's elements are.

    Returns:
        `(other axes..., counts..., other axes..., window...)`: what was an axis counts windows.
    """
    last = first + len(window)
    spans = dilated_shape(window, dilation)
    counts = [count_windows(n, k, s) for n, k, s in zip(x.shape[first:last], spans, strides, strict=True)]
    steps = x.strides[first:last]
    moves = [a * s for a, s in zip(steps, strides, strict=True)]
    within = [a * d for a, d in zip(steps, dilation, strict=True)]
    return strided(
        x,
        (*x.shape[:first], *counts, *x.shape[last:], *window),
        (*x.strides[:first], *moves, *x.strides[last:], *within),
        writeable=False,
    )
