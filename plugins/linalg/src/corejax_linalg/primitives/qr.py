"""`qr`, and the primitives for LAPACK's reflectors that it is built from.

    qr : f[*b, m, n] -> (f[*b, m, k], f[*b, k, n])        A = Q R; with pivoting also i32[*b, n]: A[:, p] = Q R
    geqrf : f[*b, m, n] -> (f[*b, m, n], f[*b, min(m, n)])
    geqp3 : f[*b, m, n] -> (f[*b, m, n], i32[*b, n], f[*b, min(m, n)])

For m >= n, the derivative is that of J. Townsend, "Differentiating the QR decomposition" (2018). For wide matrices, Q^H
A completes R. Columns of Q beyond the range follow LAPACK's reflectors: D. Roberts and L. Roberts, "QR and LQ
decomposition matrix backpropagation algorithms for square, wide, and deep matrices" (2020, arXiv:2009.10071), and
arXiv:2409.13374, equations 32 and 33.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, nondifferentiable
from corejax.extend.messages import warn_user
from corejax.extend.types import min_dim
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import routine, stacked, workspace
from corejax_linalg._base.types import INT32, like, stack_type
from corejax_linalg.primitives.householder import householder_product, multiplied
from corejax_linalg.primitives.lu import lu
from corejax_linalg.primitives.triangular_solve import triangular_solve


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """Compute the QR decomposition: `x = q @ r`, with `q` unitary and `r` upper triangular.

    Args:
        x: matrices, `f[..., m, n]`.
        pivoting: whether columns are exchanged so that the diagonal of `r` descends: `x[..., p] = q @ r`.
        full_matrices: whether `q` is square; otherwise it has min(m, n) columns, and `r` as many rows.
        use_magma: ignored; MAGMA is not supported.

    Returns:
        `(q, r)`, or `(q, r, p)` with `p: i32[..., n]`. Derivatives assume matrices of full rank and a constant order of
        columns.

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
    """
    if use_magma:
        warn_user("qr: MAGMA is not supported; use_magma is ignored", UserWarning)
    return tuple(
        qr_p.bind(
            x, pivoting=flag("qr", "pivoting", pivoting), full_matrices=flag("qr", "full_matrices", full_matrices)
        )
    )


def geqrf(a: Any) -> tuple[Any, Any]:
    """Return R in the upper triangle with Householder reflectors below it, and the reflectors' factors `taus`.

    Raises:
        TypeError: `a` has fewer than two axes, or LAPACK does not support its dtype.
    """
    reflectors, taus = geqrf_p.bind(a)
    return reflectors, taus


def geqp3(a: Any) -> tuple[Any, Any, Any]:
    """Factor as `geqrf`, with columns exchanged so that the diagonal of R descends; the second result is their order.

    Raises:
        TypeError: `a` has fewer than two axes, or LAPACK does not support its dtype.
    """
    reflectors, order, taus = geqp3_p.bind(a)
    return reflectors, order, taus


# -- rules of geqrf and geqp3 ------------------------------------------------------------------------------------


def _geqrf_type(a: ShapedArray) -> list[ShapedArray]:
    batch, (m, n) = stack_type("geqrf", "a", a)
    return [a, like((*batch, min_dim(m, n)), a.dtype, a)]


def _geqp3_type(a: ShapedArray) -> list[ShapedArray]:
    batch, (m, n) = stack_type("geqp3", "a", a)
    return [a, ShapedArray((*batch, n), INT32), like((*batch, min_dim(m, n)), a.dtype, a)]


@stacked("geqrf", (2,), _geqrf_type)
def _geqrf(a: Any) -> Any:
    reflectors, taus, _, _ = routine("geqrf", a.dtype)(a, lwork=workspace("geqrf", a.dtype, *a.shape))
    return [reflectors, taus]


@stacked("geqp3", (2,), _geqp3_type)
def _geqp3(a: Any) -> Any:
    run = routine("geqp3", a.dtype)
    room = int(np.real(run(a, lwork=-1)[3][0]))
    reflectors, order, taus, _, _ = run(a, lwork=room)
    return [reflectors, order - 1, taus]


_PACKED: dict[str, Any] = {
    "multiple_results": True,
    "jvp": nondifferentiable("differentiate qr instead, which uses it"),
}
geqrf_p = of_stacks(
    "geqrf",
    impl=_geqrf,
    abstract_eval=_geqrf_type,
    doc="R and Householder reflectors in one matrix, and taus.",
    **_PACKED,
)
geqp3_p = of_stacks(
    "geqp3",
    impl=_geqp3,
    abstract_eval=_geqp3_type,
    doc="As geqrf, with exchanged columns; the second result is their order.",
    **_PACKED,
)


# -- rules of qr -------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray, *, pivoting: bool, full_matrices: bool) -> list[ShapedArray]:
    batch, (m, n) = stack_type("qr", "x", x)
    k = m if full_matrices else min_dim(m, n)
    pair = [like((*batch, m, k), x.dtype, x), like((*batch, k, n), x.dtype, x)]
    return [*pair, ShapedArray((*batch, n), INT32)] if pivoting else pair


def _decomposition(x: Any, *, pivoting: bool, full_matrices: bool) -> list[Any]:
    *batch, m, n = x.shape
    order = []
    k = min_dim(m, n)
    if m == 0 or n == 0:
        k = m if full_matrices else k
        rows, columns = (lax.broadcasted_iota(INT32, (*batch, m, k), len(batch) + axis) for axis in (0, 1))
        pair = [lax.convert_element_type(lax.eq(rows, columns), x.dtype), lax.full((*batch, k, n), 0, x.dtype)]
        return [*pair, lax.broadcasted_iota(INT32, (*batch, n), len(batch))] if pivoting else pair
    if pivoting:
        packed, *order, taus = geqp3_p.bind(x)
    else:
        packed, taus = geqrf_p.bind(x)
    reflectors, triangle = packed, mat.upper(packed)
    if k != n:
        reflectors = mat.columns_of(packed, 0, k)
    if full_matrices and k != m:
        reflectors = lax.pad(reflectors, mat.constant(packed, 0), [(0, 0, 0)] * (x.ndim - 1) + [(0, m - k, 0)])
    elif k != m:
        triangle = mat.rows_of(triangle, 0, k)
    return [householder_product(reflectors, taus), triangle, *order]


def _jvp(primals: Any, tangents: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    (x,), (dx,) = primals, tangents
    q, r, *order = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices)
    m, n = x.shape[-2:]
    if pivoting:
        dx = mat.take_columns(dx, order[0])
    if m < n:
        dq, dr = _thin_jvp(q, mat.columns_of(r, 0, m), mat.columns_of(dx, 0, m))
        rest, d_rest = mat.columns_of(r, m, n), mat.columns_of(dx, m, n)
        # The remaining columns are X2 = Q R2, so dR2 = Q^H (dX2 - dQ R2).
        d_rest = mat.matmul(mat.adjoint(q), lax.sub(d_rest, mat.matmul(dq, rest)))
        dr = lax.concatenate([dr, d_rest], dr.ndim - 1)
    elif full_matrices and m > n:
        dq, dr = _thin_jvp(mat.columns_of(q, 0, n), mat.rows_of(r, 0, n), dx)
        dq = lax.concatenate([dq, _beyond_jvp(q, dq, n)], dq.ndim - 1)
        dr = lax.pad(dr, mat.constant(dr, 0), [(0, 0, 0)] * (dr.ndim - 2) + [(0, m - n, 0), (0, 0, 0)])
    else:
        dq, dr = _thin_jvp(q, r, dx)
    return [q, r, *order], [dq, dr, *(None for _ in order)]


def _thin_jvp(q: Any, r: Any, dx: Any) -> tuple[Any, Any]:
    """Return dQ and dR for m >= n, by dX R^-1 = dQ + Q dR R^-1, where Q^H dQ is skew and dR R^-1 triangular."""
    scaled = triangular_solve(r, dx)
    inner = mat.matmul(mat.adjoint(q), scaled)
    below = mat.lower(inner, -1)
    skew = lax.sub(below, mat.adjoint(below))
    if dtypes.is_complex(q.dtype):  # the diagonal of R is real, so the imaginary part belongs to dQ
        on_diagonal = lax.mul(inner, lax.broadcast_to(mat.eye(inner), inner.shape))
        imaginary = lax.complex(lax.zeros_like_array(lax.real(inner)), lax.imag(on_diagonal))
        skew = lax.add(skew, imaginary)
    triangular = lax.sub(inner, skew)
    return lax.sub(scaled, mat.matmul(q, triangular)), mat.matmul(triangular, r)


def _beyond_jvp(q: Any, dq: Any, n: int) -> Any:
    """Return the tangents of the columns of Q beyond the first `n`, whose reflectors determine them."""
    m = q.shape[-1]
    first, beyond = mat.columns_of(q, 0, n), mat.columns_of(q, n, m)
    top, bottom = mat.rows_of(first, 0, n), mat.rows_of(first, n, m)
    factors, _, order = lu(lax.sub(top, lax.broadcast_to(mat.eye(top), top.shape)))
    z_adjoint = _solved_adjoint(factors, order, mat.adjoint(bottom))
    z = mat.adjoint(z_adjoint)
    inner = lax.sub(mat.rows_of(dq, n, m), mat.matmul(z, mat.rows_of(dq, 0, n)))
    outer = lax.add(first, mat.matmul(beyond, z))
    return lax.sub(mat.matmul(dq, z_adjoint), mat.matmul(outer, mat.adjoint(inner)))


def _solved_adjoint(factors: Any, order: Any, b: Any) -> Any:
    """Solve A^H x = b by the LU factors of A."""
    x = triangular_solve(factors, b, left_side=True, transpose_a=True, conjugate_a=True)
    x = triangular_solve(factors, x, left_side=True, lower=True, transpose_a=True, conjugate_a=True, unit_diagonal=True)
    return mat.take_rows(x, mat.inverse_order(order))


@stacked("qr", (2,), _abstract_eval)
def _decomposed(a: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    m, n = a.shape
    packed, *order, taus = _geqp3(a) if pivoting else _geqrf(a)
    triangle = np.triu(packed if full_matrices or m <= n else packed[:n])
    if full_matrices and m > n:
        packed = np.pad(packed, ((0, 0), (0, m - n)))
    return [multiplied(packed[:, :m], taus), triangle, *order]


def _impl(x: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    outs = _decomposed(x, pivoting=pivoting, full_matrices=full_matrices)
    if not x.shape[-1] or not x.shape[-2]:  # no reflectors
        outs[0][...] = np.eye(*outs[0].shape[-2:], dtype=x.dtype)
        for order in outs[2:]:
            order[...] = np.arange(x.shape[-1], dtype=INT32)
    return outs


qr_p = of_stacks(
    "qr",
    multiple_results=True,
    impl=_impl,
    decomposition=_decomposition,
    abstract_eval=_abstract_eval,
    jvp=_jvp,
    doc="The QR decomposition. Params: pivoting, full_matrices.",
)
