"""Diagonals of matrices: extraction and construction.

A diagonal of a square matrix is every `n + 1`-th element of its concatenated rows, so it is a strided slice; and a
matrix with a given diagonal is a vector with padding between its elements.
"""

from __future__ import annotations

from typing import Any

from corejax.extend.types import max_dim, min_dim
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, refuse_out, static_int, strong
from corejax_numpy.manipulation import ravel
from corejax_numpy.reductions import sum


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return a diagonal of the matrices in two axes, as a new last axis.

    Args:
        a: an array of at least two axes.
        offset: the diagonal, 0 by default; positive diagonals lie above the main diagonal.
        axis1: the axis of the rows, 0 by default.
        axis2: the axis of the columns, 1 by default.

    Raises:
        ValueError: the array has fewer than two axes, an axis does not exist, or the axes are the same.
    """
    return _diagonal("diagonal", a, offset, axis1, axis2)


def _diagonal(name: str, a: Any, offset: int, axis1: int, axis2: int) -> Any:
    x = array_argument(name, a)
    if x.ndim < 2:
        raise ValueError(f"{name} takes an array of at least 2 dimensions, got {x.aval.str_short()}")
    first, second = canonical_axis(axis1, x.ndim, "axis1", name), canonical_axis(axis2, x.ndim, "axis2", name)
    if first == second:
        raise ValueError(f"{name}: axis1 and axis2 can not be same, got {axis1} and {axis2} of {x.aval.str_short()}")
    others = [d for d in range(x.ndim) if d not in (first, second)]
    if [*others, first, second] != list(range(x.ndim)):
        x = lax.transpose(x, (*others, first, second))
    offset = static_int(name, offset, "offset")
    row, column = max(-offset, 0), max(offset, 0)
    lead, (rows, columns) = x.shape[:-2], x.shape[-2:]
    size = max_dim(0, min_dim(rows - row, columns - column))
    if size == 0:
        return lax.full((*lead, 0), 0, x.dtype)
    if size != rows or size != columns:
        zeros = (0,) * len(lead)
        x = lax.slice(x, (*zeros, row, column), (*lead, row + size, column + size))
    return lax.slice_in_dim(lax.reshape(x, (*lead, size * size)), 0, None, size + 1, axis=-1)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """Sum a diagonal of the matrices in two axes.

    Args:
        a: an array of at least two axes.
        offset: the diagonal, 0 by default; positive diagonals lie above the main diagonal.
        axis1: the axis of the rows, 0 by default.
        axis2: the axis of the columns, 1 by default.
        dtype: dtype of the sum; by default as for `sum`.
        out: not supported; must be None.

    Raises:
        ValueError: the array has fewer than two axes, an axis does not exist, or the axes are the same.
        NotImplementedError: `out` is given.
    """
    refuse_out("trace", out)
    return sum(_diagonal("trace", a, offset, axis1, axis2), -1, dtype)


def diag(v: Any, k: int = 0) -> Any:
    """Return a diagonal of a matrix, or for a vector the matrix with this diagonal and zeros elsewhere.

    Args:
        v: a matrix or a vector.
        k: the diagonal, 0 by default; positive diagonals lie above the main diagonal.

    Raises:
        ValueError: `v` is neither a vector nor a matrix.
    """
    v = array_argument("diag", v)
    if v.ndim == 2:
        return _diagonal("diag", v, k, 0, 1)
    if v.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, got {v.aval.str_short()}")
    return _with_diagonal(v, static_int("diag", k, "k"))


def diagflat(v: Any, k: int = 0) -> Any:
    """Return the matrix with the elements of an array on its `k`-th diagonal, and zeros elsewhere."""
    return _with_diagonal(strong(ravel(array_argument("diagflat", v))), static_int("diagflat", k, "k"))


def _with_diagonal(v: Any, k: int) -> Any:
    size = v.shape[0] + abs(k)
    if not v.shape[0]:
        return lax.full((size, size), 0, v.dtype)
    before = max(k, 0) + max(-k, 0) * size
    after = size * size - before - v.shape[0] - (v.shape[0] - 1) * size
    flat = lax.pad(v, lax.make_scalar(0, v.dtype, v.aval.weak_type), [(before, after, size)])
    return lax.reshape(flat, (size, size))
