"""`qdwh`: the polar decomposition by Halley's iteration with dynamic weights.

Y. Nakatsukasa, Z. Bai and F. Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010),
algorithm 5.1, with steps by QR while weights are large and by Cholesky afterwards (Y. Nakatsukasa and N. Higham, 2013).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import array, integer, real_number
from corejax_linalg._base.types import stack_type
from corejax_linalg.primitives.cholesky import cholesky
from corejax_linalg.primitives.qr import qr
from corejax_linalg.primitives.triangular_solve import triangular_solve

_LARGE = 100.0  # the weight above which a Cholesky factor would lose digits


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Compute the polar decomposition of a matrix of full rank: `x = u @ h`.

    Args:
        x: a matrix `f[m, n]` with m >= n.
        is_hermitian: ignored.
        max_iterations: the maximal number of steps, 10 by default.
        eps: the precision, by default the dtype's. The iteration ends when the change is below `(4 eps)^(1/3)` of the
            result.
        dynamic_shape: the numbers of rows and columns to use; other elements count as zeros.

    Returns:
        `(u, h, num_iters, is_converged)`: a matrix with orthonormal columns, a Hermitian matrix `f[n, n]`, the number
        of steps, and whether the iteration converged.

    Raises:
        TypeError: LAPACK does not support the dtype of `x`.
        ValueError: `x` is not a matrix, or has fewer rows than columns.
    """
    x = array("qdwh", x)
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(f"qdwh takes a matrix [m, n] with m >= n, got {x.aval.str_short()}")
    stack_type("qdwh", "x", x.aval)
    if dynamic_shape is not None:
        rows, columns = (lax.broadcasted_iota(np.int32, x.shape, axis) for axis in (0, 1))
        m, n = _two_sizes(dynamic_shape)
        x = lax.select(lax.bitwise_and(lax.lt(rows, np.int32(m)), lax.lt(columns, np.int32(n))), x, mat.constant(x, 0))
    limit = 10 if max_iterations is None else integer("qdwh", "max_iterations", max_iterations, 0)
    real = dtypes.real_dtype_of(x.dtype)
    eps = float(dtypes.finfo(real).eps) if eps is None else real_number("qdwh", "eps", eps)
    scaled = _divided(x, lax.reduce_max(lax.abs(x), (0, 1)) if x.size != 0 else _number(real, 1))
    start = _divided(scaled, _norm(scaled))  # two steps, so that squares neither overflow nor underflow
    u, _, steps, change = lax.while_loop(
        lambda state: lax.bitwise_and(lax.gt(state[3], _number(real, 0)), lax.lt(state[2], np.int32(limit))),
        lambda state: _step(state, eps),
        (start, _number(real, eps), np.int32(0), _number(real, 1)),
    )
    h = mat.symmetrize(mat.matmul(mat.adjoint(u), x))
    return u, h, steps, lax.eq(change, _number(real, 0))


def _two_sizes(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise TypeError(f"qdwh: dynamic_shape must be two sizes, (rows, columns), got {shape!r}")
    return integer("qdwh", "dynamic_shape", shape[0], 0), integer("qdwh", "dynamic_shape", shape[1], 0)


def _number(dtype: Any, value: Any) -> Any:
    return lax.make_scalar(float(value), np.dtype(dtype))


def _divided(x: Any, size: Any) -> Any:
    """Divide a matrix by a number, unless the number is zero."""
    size = lax.select(lax.eq(size, _number(size.dtype, 0)), _number(size.dtype, 1), size)
    return lax.div(x, lax.convert_element_type(size, x.dtype))


def _norm(x: Any) -> Any:
    size = lax.abs(x)
    return lax.sqrt(lax.reduce_sum(lax.mul(size, size), (0, 1)))


def _step(state: tuple[Any, Any, Any, Any], eps: float) -> tuple[Any, Any, Any, Any]:
    """Do one step; `low` bounds singular values from below, and `change` becomes 0 when the iteration has converged."""
    u, low, steps, _ = state
    square = low * low
    d = lax.cbrt(4.0 * (1.0 / square - 1.0) / square)
    root = lax.sqrt(1.0 + d)
    a = root + lax.sqrt(8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * root)) / 2.0
    b = (a - 1.0) * (a - 1.0) / 4.0
    c = a + b - 1.0
    weights = [lax.convert_element_type(w, u.dtype) for w in (a, b, c)]
    new = lax.cond(lax.gt(c, _number(c.dtype, _LARGE)), _by_qr, _by_cholesky, u, *weights)
    low = lax.min(low * (a + b * square) / (1.0 + c * square), _number(c.dtype, 1))
    moved = _norm(lax.sub(new, u))
    ended = lax.bitwise_and(
        lax.le(moved, (4.0 * eps) ** (1 / 3) * _norm(new)), lax.lt(lax.abs(low - 1.0), _number(c.dtype, 10.0 * eps))
    )
    return new, low, lax.add(steps, np.int32(1)), lax.select(ended, _number(c.dtype, 0), _number(c.dtype, 1))


def _by_qr(u: Any, a: Any, b: Any, c: Any) -> Any:
    m, n = u.shape
    stacked = lax.concatenate([lax.mul(u, lax.sqrt(c)), lax.convert_element_type(_identity(n), u.dtype)], 0)
    q, _ = qr(stacked, full_matrices=False)
    product = mat.matmul(mat.rows_of(q, 0, m), mat.adjoint(mat.rows_of(q, m, m + n)))
    return lax.add(lax.mul(u, b / c), lax.mul(product, (a - b / c) / lax.sqrt(c)))


def _by_cholesky(u: Any, a: Any, b: Any, c: Any) -> Any:
    inner = lax.mul(mat.matmul(mat.adjoint(u), u), c)
    factor = cholesky(lax.add(inner, lax.convert_element_type(_identity(u.shape[1]), u.dtype)))
    solved = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    solved = triangular_solve(factor, solved, lower=True)
    return lax.add(lax.mul(u, b / c), lax.mul(solved, a - b / c))


def _identity(n: int) -> Any:
    rows, columns = (lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1))
    return lax.eq(rows, columns)
