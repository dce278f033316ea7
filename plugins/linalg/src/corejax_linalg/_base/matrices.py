"""Functions of stacks of matrices, `f[*batch, m, n]`, in terms of `lax`, for derivative rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax.extend.types import min_dim
from corejax_lax_basic import lax


def transpose(x: Any) -> Any:
    """Return the matrices' transposes."""
    n = x.ndim
    return lax.transpose(x, (*range(n - 2), n - 1, n - 2))


def conj(x: Any) -> Any:
    """Return the complex conjugate; real arrays are returned unchanged."""
    return lax.conj(x) if dtypes.is_complex(x.dtype) else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transposes."""
    return conj(transpose(x))


def matmul(x: Any, y: Any) -> Any:
    """Multiply matrices with equal batch axes, in full precision."""
    return lax.batch_matmul(x, y, lax.Precision.HIGHEST)


def symmetrize(x: Any) -> Any:
    """Return the Hermitian part, `(x + x^H) / 2`."""
    return lax.mul(lax.add(x, adjoint(x)), constant(x, 0.5))


def constant(x: Any, value: float) -> Any:
    """Return a number as a scalar of an array's dtype."""
    return lax.make_scalar(value, x.dtype)


def _places(x: Any) -> tuple[Any, Any]:
    return lax.broadcasted_iota(np.int32, x.shape[-2:], 0), lax.broadcasted_iota(np.int32, x.shape[-2:], 1)


def keep_where(mask: Any, x: Any) -> Any:
    """Return x with zeros at elements for which the mask, of the shape of one matrix, is false."""
    return lax.select(lax.broadcast_to(mask, x.shape), x, constant(x, 0))


def lower(x: Any, k: int = 0) -> Any:
    """Return the triangle on and below diagonal `k`, with zeros above."""
    rows, columns = _places(x)
    return keep_where(lax.ge(lax.add(rows, np.int32(k)) if k else rows, columns), x)


def upper(x: Any, k: int = 0) -> Any:
    """Return the triangle on and above diagonal `k`, with zeros below."""
    rows, columns = _places(x)
    return keep_where(lax.le(lax.add(rows, np.int32(k)) if k else rows, columns), x)


def eye(x: Any) -> Any:
    """Return the identity in the shape of one matrix of `x`, and in its dtype."""
    rows, columns = _places(x)
    return lax.convert_element_type(lax.eq(rows, columns), x.dtype)


def from_triangle(x: Any, is_lower: bool) -> Any:
    """Return the Hermitian matrix with the given triangle; imaginary parts on the diagonal are ignored."""
    rows, columns = _places(x)
    in_triangle = lax.ge(rows, columns) if is_lower else lax.le(rows, columns)
    whole = lax.select(lax.broadcast_to(in_triangle, x.shape), x, adjoint(x))
    if not dtypes.is_complex(x.dtype):
        return whole
    on_diagonal = lax.broadcast_to(lax.eq(rows, columns), x.shape)
    return lax.select(on_diagonal, lax.convert_element_type(lax.real(x), x.dtype), whole)


def diagonal(x: Any) -> Any:
    """Return the main diagonals, `f[*batch, min(m, n)]`."""
    *batch, m, n = x.shape
    flat = lax.reshape(x, (*batch, m * n))
    stop = 0 if m == 0 or n == 0 else (min_dim(m, n) - 1) * (n + 1) + 1
    return lax.slice_in_dim(flat, 0, stop, n + 1, axis=len(batch))


def as_rows(x: Any) -> Any:
    """Return vectors as matrices of one row, `f[*batch, 1, n]`."""
    return lax.expand_dims(x, (x.ndim - 1,))


def as_columns(x: Any) -> Any:
    """Return vectors as matrices of one column, `f[*batch, n, 1]`."""
    return lax.expand_dims(x, (x.ndim,))


def times_columns(x: Any, s: Any) -> Any:
    """Multiply column `j` of each matrix by `s[j]`."""
    return lax.mul(x, lax.broadcast_to(as_rows(s), x.shape))


def pairwise(s: Any) -> tuple[Any, Any]:
    """Return the matrices with the elements `s_i` and those with the elements `s_j`, for vectors `s`."""
    shape = (*s.shape, s.shape[-1])
    return lax.broadcast_to(as_columns(s), shape), lax.broadcast_to(as_rows(s), shape)


def reciprocal_differences(s: Any) -> Any:
    """Return `F_ij = 1 / (s_j - s_i)` with a zero diagonal: the factors of first-order perturbation theory."""
    rows, columns = pairwise(s)
    one = lax.broadcast_to(eye(rows), rows.shape)
    return lax.sub(lax.reciprocal(lax.add(lax.sub(columns, rows), one)), one)


def columns_of(x: Any, start: int, stop: int) -> Any:
    """Return the columns from `start` up to `stop`."""
    return lax.slice_in_dim(x, start, stop, axis=x.ndim - 1)


def rows_of(x: Any, start: int, stop: int) -> Any:
    """Return the rows from `start` up to `stop`."""
    return lax.slice_in_dim(x, start, stop, axis=x.ndim - 2)


def take_rows(x: Any, order: Any) -> Any:
    """Reorder the rows of each matrix by its vector in `order`, `i32[*batch, m]`."""
    return _taken(x, order, x.ndim - 2)


def take_columns(x: Any, order: Any) -> Any:
    """Reorder the columns of each matrix by its vector in `order`, `i32[*batch, n]`."""
    return _taken(x, order, x.ndim - 1)


def _taken(x: Any, order: Any, axis: int) -> Any:
    batch = tuple(range(x.ndim - 2))
    sizes = tuple(1 if d == axis or d in batch else size for d, size in enumerate(x.shape))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(2 * x.ndim - 3 - axis,),  # the axis that is not reordered
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return lax.gather(x, as_columns(order), numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def inverse_order(order: Any) -> Any:
    """Return the inverse permutations of `order`, `i32[*batch, n]`."""
    places = lax.broadcasted_iota(np.int32, order.shape, order.ndim - 1)
    return lax.sort_key_val(order, places)[1]
