"""`lu`: triangular factors of a matrix with partial pivoting, and the permutation of its pivots.

    lu : f[*b, m, n] -> (f[*b, m, n], i32[*b, k], i32[*b, m])        A[permutation] = L U, k = min(m, n)
    lu_pivots_to_permutation : i32[*b, k] -> i32[*b, m]

The derivative is that of F. de Hoog, R. Anderssen and M. Lukas, "Differentiation of matrix functionals using triangular
factorization" (2011): with G = L^-1 P dA U^-1, dL = L tril(G, -1) and dU = triu(G) U.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax.extend.types import max_dim, min_dim
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import size
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import routine, stacked
from corejax_linalg._base.types import INT32, stack_type
from corejax_linalg.primitives.triangular_solve import triangular_solve


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Compute the LU decomposition with partial pivoting: `x[permutation] = L @ U`.

    Args:
        x: matrices, `f[..., m, n]`.

    Returns:
        `(lu, pivots, permutation)`: `lu` has U in its upper triangle and L, without its unit diagonal, below. `pivots`
        has the row that each row is exchanged with in turn, `i32[..., min(m, n)]`. `permutation` is the resulting order
        of rows, `i32[..., m]`.

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
    """
    factors, pivots, permutation = lu_p.bind(x)
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """Convert exchanges of rows to the order of rows that they result in.

    Args:
        pivots: the row that each row is exchanged with in turn, `i32[..., k]`.
        permutation_size: the number of rows, at least k.

    Returns:
        The permutation, `i32[..., permutation_size]`.

    Raises:
        TypeError: `pivots` is a scalar, or does not hold integers.
        ValueError: there are more pivots than rows.
    """
    rows = size("lu_pivots_to_permutation", "permutation_size", permutation_size)
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=rows)


# -- rules of lu -------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray) -> list[ShapedArray]:
    batch, (m, n) = stack_type("lu", "x", x)
    return [x, ShapedArray((*batch, min_dim(m, n)), INT32), ShapedArray((*batch, m), INT32)]


def _impl(x: Any) -> Any:
    factors, pivots = _factored(x)
    return [factors, pivots, _permutation(np.asarray(pivots), permutation_size=x.shape[-2])]


@stacked("lu", (2,), lambda x: _abstract_eval(x)[:2])
def _factored(a: Any) -> Any:
    factors, pivots, _ = routine("getrf", a.dtype)(a)  # `info` is ignored: U of a singular matrix has a zero diagonal
    return [factors, pivots]


def _jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    factors, pivots, permutation = lu_p.bind(x)
    m, n = x.shape[-2:]
    k = min_dim(m, n)
    # Extend L and U to square matrices by the identity, so that both have inverses.
    left = mat.columns_of(factors, 0, k)
    right = mat.rows_of(factors, 0, k)
    if m != k:
        left = _padded(left, 0, m - k)
    if n != k:
        right = lax.add(
            mat.upper(_padded(right, n - k, 0)), lax.broadcast_to(_eye_below(factors, n, k), (*x.shape[:-2], n, n))
        )
    solved = triangular_solve(left, mat.take_rows(dx, permutation), left_side=True, lower=True, unit_diagonal=True)
    solved = triangular_solve(right, solved)
    unit = lax.add(mat.lower(left, -1), lax.broadcast_to(mat.eye(left), left.shape))
    d_left = mat.matmul(unit, mat.lower(solved, -1))
    d_right = mat.matmul(mat.upper(solved), mat.upper(right))
    return [factors, pivots, permutation], [lax.add(d_left, d_right), None, None]


def _padded(x: Any, rows: int, columns: int) -> Any:
    widths = [(0, 0, 0)] * (x.ndim - 2) + [(0, rows, 0), (0, columns, 0)]
    return lax.pad(x, mat.constant(x, 0), widths)


def _eye_below(x: Any, n: int, k: int) -> Any:
    """Return the identity of size `n` with zeros in place of the first `k` ones."""
    rows, columns = (lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1))
    there = lax.bitwise_and(lax.eq(rows, columns), lax.ge(rows, k))
    return lax.convert_element_type(there, x.dtype)


lu_p = of_stacks(
    "lu",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    jvp=_jvp,
    doc="The LU decomposition with partial pivoting: both factors in one matrix, pivots, permutation.",
)


# -- rules of lu_pivots_to_permutation ---------------------------------------------------------------------------


def _permutation(pivots: Any, *, permutation_size: int) -> Any:
    count = math.prod(pivots.shape[:-1])
    out = np.empty((count, permutation_size), INT32)
    swaps = pivots.reshape(count, pivots.shape[-1])
    if count <= _FEW:
        for row, exchanges in zip(out, swaps.tolist(), strict=True):
            order = list(range(permutation_size))
            for i, j in enumerate(exchanges):
                order[i], order[j] = order[j], order[i]
            row[:] = order
    else:
        out[:] = np.arange(permutation_size, dtype=INT32)
        stack = np.arange(count)
        for i, j in enumerate(swaps.T):
            out[stack, i], out[stack, j] = out[stack, j], out[stack, i].copy()
    return out.reshape((*pivots.shape[:-1], permutation_size))


_FEW = 32  # the number of permutations up to which a loop over Python lists is faster than array operations


def _permutation_type(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    name = "lu_pivots_to_permutation"
    if pivots.ndim < 1 or not dtypes.is_integer(pivots.dtype):
        raise TypeError(f"{name}: pivots must be integers of shape [..., k], got {pivots.str_short()}")
    if max_dim(pivots.shape[-1], permutation_size) != permutation_size:
        raise ValueError(
            f"{name}: permutation_size must be at least the number of pivots, got {permutation_size} "
            f"for {pivots.str_short()}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), INT32)


def _in_a_loop(pivots: Any, *, permutation_size: int) -> Any:
    """Decompose into a loop over the exchanges."""
    *batch, k = pivots.shape
    pivots = lax.convert_element_type(pivots, INT32)
    start = lax.broadcasted_iota(INT32, (*batch, permutation_size), len(batch))
    if k == 0 or permutation_size == 0:
        return start

    if not batch:
        return lax.fori_loop(0, k, functools.partial(_exchange, pivots), start)

    def exchange(i: Any, order: Any) -> Any:
        j = lax.dynamic_slice_in_dim(pivots, i, 1, axis=len(batch))
        at_i = lax.dynamic_slice_in_dim(order, i, 1, axis=len(batch))
        is_j = lax.eq(start, lax.broadcast_to(j, start.shape))
        at_j = lax.reduce_sum(lax.select(is_j, order, np.int32(0)), (len(batch),))
        order = lax.select(is_j, lax.broadcast_to(at_i, start.shape), order)
        return lax.dynamic_update_slice_in_dim(order, lax.expand_dims(at_j, (len(batch),)), i, axis=len(batch))

    return lax.fori_loop(0, k, exchange, start)


def _exchange(pivots: Any, i: Any, order: Any) -> Any:
    """Exchange two elements of one permutation."""
    j = lax.dynamic_index_in_dim(pivots, i, keepdims=False)
    at_i, at_j = (lax.dynamic_index_in_dim(order, place) for place in (i, j))
    order = lax.dynamic_update_slice_in_dim(order, at_j, i, axis=0)
    return lax.dynamic_update_slice_in_dim(order, at_i, j, axis=0)


lu_pivots_to_permutation_p = of_stacks(
    "lu_pivots_to_permutation",
    decomposition=_in_a_loop,
    impl=_permutation,
    abstract_eval=_permutation_type,
    doc="The permutation that results from exchanges of rows. Params: permutation_size.",
)
