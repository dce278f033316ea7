"""`triangular_solve`: solve equations with a triangular matrix.

    triangular_solve : f[*b, n, n] -> f[*b, n, k] -o f[*b, n, k]        op(A) X = B, or X op(A) = B

With A X = B: A dX = dB - dA X, where dA is the triangle of the tangent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    add_tangents,
    config,
    dtypes,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.types import max_dim
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import array, flag
from corejax_linalg._base.eager import FailureError, routine, stacked
from corejax_linalg._base.types import LAPACK, check_alike, like


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solve `op(a) @ x = b` (or `x @ op(a) = b` without `left_side`) with triangular matrices.

    Args:
        a: triangular matrices, `f[..., n, n]`; the other triangle is ignored.
        b: right-hand sides, `f[..., n, k]`, or `f[..., k, n]` if not `left_side`; or one vector each, `f[..., n]`.
        left_side: whether the matrix stands on the left side of x.
        lower: whether the matrices are lower triangular.
        transpose_a: whether op transposes.
        conjugate_a: whether op conjugates.
        unit_diagonal: whether the diagonal counts as 1, whatever its elements are.

    Returns:
        The solutions x, of the type of `b`; infinite or NaN if the diagonal has a zero.

    Raises:
        TypeError: the dtypes or batch axes differ, or `a` has fewer than two axes.
        ValueError: `a` is not square, or its size differs from that of `b`.
    """
    a, b = array("triangular_solve", a, "a"), array("triangular_solve", b, "b")
    x, y = a.aval, b.aval
    alone = y.ndim == x.ndim - 1
    if alone:
        b = lax.expand_dims(b, (y.ndim if left_side else y.ndim - 1,))
    out = triangular_solve_p.bind(
        a,
        b,
        left_side=flag("triangular_solve", "left_side", left_side),
        lower=flag("triangular_solve", "lower", lower),
        transpose_a=flag("triangular_solve", "transpose_a", transpose_a),
        conjugate_a=flag("triangular_solve", "conjugate_a", conjugate_a) and dtypes.is_complex(x.dtype),
        unit_diagonal=flag("triangular_solve", "unit_diagonal", unit_diagonal),
    )
    return lax.squeeze(out, (y.ndim if left_side else y.ndim - 1,)) if alone else out


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: Any) -> ShapedArray:
    name = "triangular_solve"
    if a.ndim < 2 or b.ndim < 2 or not dtypes.is_inexact(a.dtype):
        raise TypeError(
            f"{name}: a must be a stack of matrices [..., n, n] and b of right-hand sides, floating or complex; "
            f"got a {a.str_short()} and b {b.str_short()}"
        )
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name}: a must be a square matrix or a stack of them, [..., n, n], got {a.str_short()}")
    check_alike(name, [("a", a, 2), ("b", b, 2)])
    if a.shape[-1] != b.shape[-2 if left_side else -1]:
        shape = "[..., n, k]" if left_side else "[..., k, n]"
        raise ValueError(
            f"{name}: with a of shape [..., n, n] and left_side={left_side}, b must have shape {shape}; "
            f"got a {a.str_short()} and b {b.str_short()}"
        )
    return like(b.shape, b.dtype, a, b)


@stacked("triangular_solve", (2, 2), _abstract_eval)
def _impl(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    dtype = a.dtype
    if dtype not in LAPACK:
        a, b = a.astype(np.float32), b.astype(np.float32)
    if config.linalg_errors and not unit_diagonal and not np.diagonal(a).all():
        place = int(np.flatnonzero(np.diagonal(a) == 0)[0])
        raise FailureError(f"singular (element {place} of its diagonal is 0)")
    if conjugate_a and not transpose_a:
        a = a.conj()
    # Rows in C's order are columns in Fortran's. So solve X^T op(A)^T = B^T, whose transposes need no copies.
    out = routine("trsm", a.dtype, "blas")(
        1.0,
        a.T,
        b.T,
        side=left_side,
        lower=not lower,
        trans_a=2 if transpose_a and conjugate_a else int(transpose_a),
        diag=unit_diagonal,
    )
    return out.T.astype(dtype, copy=False)


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (a, b), (da, db) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    parts = [None, None]
    if da is not None:
        parts[0] = _jvp_matrix(da, x, a, **params)
    if db is not None:
        parts[1] = triangular_solve_p.bind(a, db, **params)
    return x, add_tangents(*parts)


def _jvp_matrix(da: Any, x: Any, a: Any, *, left_side: bool, **params: Any) -> Any:
    """Return `-op(A)^-1 op(dA) X` (or its mirror image), multiplied in the cheaper order."""
    off = int(params["unit_diagonal"])
    da = lax.neg(mat.lower(da, -off) if params["lower"] else mat.upper(da, off))
    da = mat.transpose(da) if params["transpose_a"] else da
    da = mat.conj(da) if params["conjugate_a"] else da

    def solved(rhs: Any) -> Any:
        return triangular_solve_p.bind(a, rhs, left_side=left_side, **params)

    rows, columns = x.shape[-2:]
    if left_side:
        return solved(mat.matmul(da, x)) if max_dim(rows, columns) != columns else mat.matmul(solved(da), x)
    return solved(mat.matmul(x, da)) if max_dim(rows, columns) != rows else mat.matmul(x, solved(da))


def _transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> list[Any]:
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


def _vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    (a, b), (da, db) = vals, dims
    if da is not None:
        a, b = move_batch_axis(axis_size, da, 0, a), move_batch_axis(axis_size, db, 0, b)
        return triangular_solve_p.bind(a, b, **params), 0
    # The batch shares one matrix: make the right-hand sides columns of one array.
    place = b.ndim - 1 if params["left_side"] else b.ndim - 3
    b = move_batch_axis(axis_size, db, place, b)
    start = place - 1 if params["left_side"] else place
    sizes = (*b.shape[:start], b.shape[start] * b.shape[start + 1], *b.shape[start + 2 :])
    out = triangular_solve_p.bind(a, lax.reshape(b, sizes), **params)
    return lax.reshape(out, b.shape), place


triangular_solve_p = Primitive(
    "triangular_solve",
    linear_in=(1,),
    impl=_impl,
    abstract_eval=_abstract_eval,
    doc="The solutions of linear equations with a triangular matrix. "
    "Params: left_side, lower, transpose_a, conjugate_a, unit_diagonal.",
)
jvp_rules.register(triangular_solve_p, _jvp, symbolic_zeros=True)
transpose_rules.register(triangular_solve_p, _transpose)
vmap_rules.register(triangular_solve_p, _vmap)
