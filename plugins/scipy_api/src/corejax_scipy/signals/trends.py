"""Remove trends from signals: detrend."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import remembered
from corejax_scipy._arguments import axis_of, inexact, one_of

__all__ = ["detrend"]


@remembered
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None) -> Any:
    """Subtract from a signal its mean, or the line that fits it best.

    Args:
        data: an array.
        axis: the axis of the signal.
        type: "constant" or "c" for the mean, "linear" or "l" for the line.
        bp: static indices along the axis at which new lines begin.
        overwrite_data: must be None.

    Raises:
        TypeError: `data` is not an array, or `axis` is not an integer.
        ValueError: the axis is out of range, `type` is unknown, or `bp` is out of bounds.
        NotImplementedError: `overwrite_data` is given.
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data must be None, since results are new arrays")
    one_of("detrend", type, "type", ("linear", "constant", "l", "c"))
    (x,) = inexact("detrend", data)
    at = axis_of("detrend", axis, x.ndim)
    if type in ("constant", "c"):
        return x - jnp.mean(x, at, keepdims=True)
    size = operator.index(x.shape[at])
    breaks = np.unique(np.r_[0, np.asarray(bp).reshape(-1).astype(int), size])
    if breaks[0] < 0 or breaks[-1] > size:
        raise ValueError(f"detrend: bp must be between 0 and the length {size} of the axis, got {bp!r}")
    x = jnp.moveaxis(x, at, -1)
    rows = [_without_line(x[..., low:high]) for low, high in itertools.pairwise(breaks)]
    return jnp.moveaxis(jnp.concatenate(rows, axis=-1), -1, at) if rows else jnp.moveaxis(x, -1, at)


def _without_line(x: Any) -> Any:
    """Subtract the linear regression on the centred index."""
    index = np.arange(x.shape[-1]) - (x.shape[-1] - 1) / 2
    total = float(np.sum(index * index))
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    if total == 0:
        return centred
    row = jnp.asarray(index, dtype=jnp.real(x).dtype)
    slope = jnp.sum(centred * row, axis=-1, keepdims=True) / total
    return centred - slope * row
