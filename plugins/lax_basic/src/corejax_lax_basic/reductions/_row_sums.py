"""Sums on the host over the last axes of large arrays.

Along contiguous memory `np.add.reduce` adds single elements, in a tree of pairs; `np.einsum` uses vector instructions
and takes a third of the time. It adds elements in sequence, so that rows are cut into blocks of `ROW_BLOCK` elements,
and the sums of the blocks are added by `np.add.reduce`: the error stays small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax_lax_basic._speed import ROW_BLOCK, ROW_SUMS, SHORT_ROW


def sums(x: Any, axes: int | tuple[int, ...] | None, dtype: Any) -> Any:
    """Sum an array of this dtype over axes in ascending order (None for all), as `np.add.reduce` does."""
    over = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    kept = x.ndim - len(over)
    columns = x.size // max(1, math.prod(x.shape[:kept]))
    by_rows = over == tuple(range(kept, x.ndim)) and x.flags.c_contiguous and x.size >= ROW_SUMS
    if not by_rows or not (dtype.kind == "f" or (dtype.kind in "iu" and columns <= SHORT_ROW)):
        return np.add.reduce(x, axes, dtype)
    out = _sums_of_rows(x.reshape(-1, columns)).reshape(x.shape[:kept])
    return out if kept else out[()]


def _sums_of_rows(x: Any) -> Any:
    rows, columns = x.shape
    blocks = columns // ROW_BLOCK
    if blocks <= 1:
        return np.einsum("rc->r", x)
    whole = blocks * ROW_BLOCK
    of_blocks = np.einsum("rbc->rb", x[:, :whole].reshape(rows, blocks, ROW_BLOCK))
    total = np.add.reduce(of_blocks, 1, x.dtype)
    return total if whole == columns else total + np.einsum("rc->r", x[:, whole:])
