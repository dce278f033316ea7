"""Decompositions with SciPy's names and orders of results; SciPy's arguments about memory and checks are ignored."""

from __future__ import annotations

from typing import Any

import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax.extend.types import max_dim, min_dim
from corejax_lax_basic import lax
from corejax_linalg import lax_linalg
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import arrays, choice, flag, integer, matrices, pair, square
from corejax_linalg._base.types import complex_of
from corejax_linalg.numpy_linalg import equations, numbers
from corejax_linalg.primitives.qr import geqp3, geqrf


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Compute the Cholesky factor of positive definite matrices: `a = L @ L^H` if `lower`, else `U^H @ U`.

    Args:
        a: Hermitian matrices, `[..., n, n]`; only the triangle of the factor is used.
        lower: whether the factor is lower triangular.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        The factor; NaN for matrices that are not positive definite.

    Raises:
        ValueError: the matrices are not square.
    """
    lower = flag("cholesky", "lower", lower)
    (a,) = square("cholesky", a)
    factor = lax_linalg.cholesky(a if lower else mat.adjoint(a), symmetrize_input=False)
    return factor if lower else mat.adjoint(factor)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """Return `(cholesky(a, lower), lower)` for `cho_solve`; the other triangle of the factor is zero.

    Raises:
        ValueError: the matrices are not square.
    """
    lower = flag("cho_factor", "lower", lower)
    return cholesky(square("cho_factor", a)[0], lower), lower


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Compute determinants, as `corejax.numpy.linalg.det` does.

    Raises:
        ValueError: the matrices are not square.
    """
    return numbers.det(a)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Compute inverses, as `corejax.numpy.linalg.inv` does.

    Raises:
        ValueError: the matrices are not square.
    """
    return equations.inv(a)


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Compute eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: Hermitian matrices, `[..., n, n]`; `(a + a^H) / 2` is decomposed.
        b: must be None; generalised problems `a v = w b v` are not supported.
        lower: ignored, since both triangles are used.
        eigvals_only: whether only eigenvalues are returned.
        overwrite_a: ignored.
        overwrite_b: ignored.
        turbo: ignored.
        eigvals: must be None; ranges of eigenvalues are not supported.
        type: must be 1; other kinds of equations are not supported.
        check_finite: ignored.

    Returns:
        `(w, v)`, or only `w`: ascending eigenvalues, and vectors in columns.

    Raises:
        ValueError: the matrices are not square.
        NotImplementedError: `b`, `eigvals` or another type is given.
    """
    if b is not None or eigvals is not None or not isinstance(type, int) or type != 1:
        raise NotImplementedError("eigh: b, eigvals and types other than 1 are not supported; leave them out")
    (a,) = square("eigh", a)
    v, w = lax_linalg.eigh(a, lower=flag("eigh", "lower", lower))
    return w if flag("eigh", "eigvals_only", eigvals_only) else (w, v)


def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Compute eigenvalues and eigenvectors of a Hermitian tridiagonal matrix, by `eigh` of that matrix.

    Args:
        d: the diagonal, real, `[n]`.
        e: the diagonal below the main diagonal, `[n - 1]`.
        eigvals_only: whether only eigenvalues are returned.
        select: `"a"` for all eigenvalues, `"i"` for those with the indices in `select_range`, both ends included.
        select_range: the first and the last index.
        tol: ignored, since the result has full precision.
        key: ignored, since the algorithm is not random.

    Returns:
        `(w, v)`, or only `w`: ascending eigenvalues, and vectors in columns.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes do not match, or `select` is invalid or lacks its range.
        NotImplementedError: `select` is `"v"`, for which the number of results would depend on values.
    """
    choice("eigh_tridiagonal", "select", select, ("a", "i", "v"))
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: with select='v' the shape would depend on values; use 'a', and a mask"
        )
    d, e = (arrays("eigh_tridiagonal", x)[0] for x in (d, e))
    if d.dtype != e.dtype:
        raise TypeError(
            f"eigh_tridiagonal: d and e must have one dtype, got {d.aval.str_short()} and {e.aval.str_short()}"
        )
    if d.ndim != 1 or e.ndim != 1 or e.shape[0] != max_dim(d.shape[0] - 1, 0):
        raise ValueError(
            f"eigh_tridiagonal takes d [n] and e [n - 1], got {d.aval.str_short()} and {e.aval.str_short()}"
        )
    w, v = _eigh_tridiagonal(d, e)
    if select == "i":
        if select_range is None:
            raise ValueError("eigh_tridiagonal: select='i' requires select_range=(first, last)")
        first, last = (
            integer("eigh_tridiagonal", "select_range", i, 0)
            for i in pair("eigh_tridiagonal", "select_range", select_range)
        )
        if not first <= last < d.shape[0]:
            raise ValueError(
                f"eigh_tridiagonal: select_range must be within 0 and {d.shape[0] - 1}, got {select_range}"
            )
        w, v = w[first : last + 1], v[:, first : last + 1]
    return w if flag("eigh_tridiagonal", "eigvals_only", eigvals_only) else (w, v)


@remembered
def _eigh_tridiagonal(d: Any, e: Any) -> tuple[Any, Any]:
    v, w = lax_linalg.eigh(jnp.diag(d) + jnp.diag(e, -1), lower=True, symmetrize_input=False)
    return w, v


@remembered
def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Compute the Hessenberg form of square matrices: `a = q @ h @ q^H`.

    Args:
        a: matrices, `[..., n, n]`.
        calc_q: whether q is computed.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        `h`, which is zero below its first subdiagonal, or `(h, q)`. Not differentiable.

    Raises:
        ValueError: the matrices are not square.
    """
    calc_q = flag("hessenberg", "calc_q", calc_q)
    (a,) = square("hessenberg", a)
    n = a.shape[-1]
    if not n:
        return (a, a) if calc_q else a
    packed, taus = lax_linalg.hessenberg(a)
    h = mat.upper(packed, -1)
    if not calc_q:
        return h
    inner = lax_linalg.householder_product(packed[..., 1:, :-1], taus)
    q = lax.pad(inner, mat.constant(inner, 0), [(0, 0, 0)] * (a.ndim - 2) + [(1, 0, 0), (1, 0, 0)])
    corner = jnp.arange(n) == 0
    return h, jnp.where(corner[:, None] & corner, 1, q)


@remembered
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Compute the LU decomposition with partial pivoting: `a = p @ l @ u`.

    Args:
        a: matrices, `[..., m, n]`.
        permute_l: whether the result is `(p @ l, u)`.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        `(p, l, u)`: a real permutation matrix, a lower triangular matrix with unit diagonal, and an upper triangular
        matrix; or `(p @ l, u)`.

    Raises:
        ValueError: `a` has fewer than two axes.
    """
    (a,) = matrices("lu", a)
    factors, _, permutation = lax_linalg.lu(a)
    m, n = a.shape[-2:]
    k = min_dim(m, n)
    left = mat.columns_of(factors, 0, k)
    left = mat.lower(left, -1) + mat.eye(left)
    right = mat.rows_of(mat.upper(factors), 0, k)
    if flag("lu", "permute_l", permute_l):
        return mat.take_rows(left, mat.inverse_order(permutation)), right
    p = permutation[..., None, :] == jnp.arange(m)[:, None]
    return p.astype(jnp.real(a).dtype), left, right


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """Return `(lu, pivots)` for `lu_solve`: both factors in one matrix, and the row that each row is exchanged with.

    Raises:
        ValueError: `a` has fewer than two axes.
    """
    (a,) = matrices("lu_factor", a)
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Compute the QR decomposition: `a = q @ r`, or `a[:, p] = q @ r` with pivoting.

    Args:
        a: matrices, `[..., m, n]`.
        overwrite_a: ignored.
        lwork: ignored.
        mode: `"full"` for a square q, `"economic"` for min(m, n) columns of q, `"r"` for r alone.
        pivoting: whether columns are exchanged so that the diagonal of r descends.
        check_finite: ignored.

    Returns:
        A tuple of q (unless `mode` is `"r"`), r, and, with pivoting, p.

    Raises:
        ValueError: `mode` is invalid, or `a` has fewer than two axes.
    """
    choice("qr", "mode", mode, ("full", "r", "economic"))
    (a,) = matrices("qr", a)
    found = lax_linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return found[1:] if mode == "r" else found


@remembered
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """Multiply by Q of the QR decomposition of `a`, without forming Q.

    Args:
        a: matrices, `[..., m, n]`; Q has k = min(m, n) columns.
        c: matrices, `[..., j, m]` for `c @ Q`, `[..., k, j]` for `Q @ c`; or a vector.
        mode: `"right"` for `c @ Q`, `"left"` for `Q @ c`.
        pivoting: whether columns are exchanged.
        conjugate: whether the complex conjugate of Q is taken.
        overwrite_a: ignored.
        overwrite_c: ignored.

    Returns:
        `(product, r)`, or `(product, r, p)` with pivoting. Not differentiable.

    Raises:
        ValueError: `mode` is invalid, or the shapes do not match.
    """
    choice("qr_multiply", "mode", mode, ("right", "left"))
    a, c = arrays("qr_multiply", a, c)
    alone = c.ndim == 1
    columns = (c[:, None] if mode == "left" else c[None, :]) if alone else c
    m, k = a.shape[-2] if a.ndim > 1 else 0, min_dim(*a.shape[-2:]) if a.ndim > 1 else 0
    if a.ndim < 2 or not c.ndim or columns.shape[-2 if mode == "left" else -1] != (k if mode == "left" else m):
        wanted = "[..., k, j] with k = min(m, n)" if mode == "left" else "[..., j, m]"
        raise ValueError(
            f"qr_multiply with mode={mode!r} takes a [..., m, n] and c {wanted}, got a {a.aval.str_short()} and c "
            f"{c.aval.str_short()}"
        )
    batch = lax.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    columns = jnp.broadcast_to(columns, (*batch, *columns.shape[-2:]))
    packed, *order, taus = geqp3(a) if flag("qr_multiply", "pivoting", pivoting) else geqrf(a)
    reflectors = mat.columns_of(packed, 0, k)
    if mode == "left" and m != k:
        columns = jnp.concatenate([columns, jnp.zeros((*batch, m - k, columns.shape[-1]), a.dtype)], axis=-2)
    columns = mat.conj(columns) if conjugate else columns
    out = lax_linalg.ormqr(reflectors, taus, columns, left=mode == "left")
    out = mat.conj(out) if conjugate else out
    out = out[..., :k] if mode == "right" else out
    return (out.reshape(-1) if alone else out), mat.rows_of(mat.upper(packed), 0, k), *order


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Convert real Schur decompositions to complex ones with the same `Z @ T @ Z^H`.

    Args:
        T: block triangular matrices with blocks of one and two rows, `[..., n, n]`.
        Z: orthogonal matrices, `[..., n, n]`; the batch axes broadcast with those of `T`.
        check_finite: ignored.

    Returns:
        `(T, Z)`, complex: triangular and unitary matrices. Not differentiable.

    Raises:
        ValueError: the matrices are not square, differ in size, or their batch axes do not broadcast.
    """
    T, Z = square("rsf2csf", T, Z)
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"rsf2csf: T and Z must have one size, got {T.aval.str_short()} and {Z.aval.str_short()}")
    shape = lax.broadcast_shapes(T.shape, Z.shape)
    t, z = (lax.broadcast_to(x.astype(complex_of(x.dtype)), shape) for x in (T, Z))
    eps = float(dtypes.finfo(t.dtype).eps)
    # As SciPy does, rotate two rows and columns for each block of two rows.
    for m in range(shape[-1] - 1, 0, -1):
        below, last = t[..., m, m - 1], t[..., m, m]
        shift = lax_linalg.eig(t[..., m - 1 : m + 1, m - 1 : m + 1])[0][..., 0] - last
        length = lax.sqrt(abs(shift) ** 2 + abs(below) ** 2)
        turns = abs(below) > eps * (abs(t[..., m - 1, m - 1]) + abs(last))
        length = lax.select(turns, length, lax.full_like(length, 1))
        c = lax.select(turns, shift / length, lax.full_like(shift, 1))
        s = lax.select(turns, below / length, lax.full_like(below, 0))
        rows = [
            lax.concatenate([x[..., None, None], y[..., None, None]], c.ndim + 1) for x, y in ((c.conj(), s), (-s, c))
        ]
        rotation = lax.concatenate(rows, c.ndim)
        back = rotation.conj().mT
        t = t.at[..., m - 1 : m + 1, m - 1 :].set(mat.matmul(rotation, t[..., m - 1 : m + 1, m - 1 :]))
        t = t.at[..., : m + 1, m - 1 : m + 1].set(mat.matmul(t[..., : m + 1, m - 1 : m + 1], back))
        z = z.at[..., m - 1 : m + 1].set(mat.matmul(z[..., m - 1 : m + 1], back))
        t = t.at[..., m, m - 1].set(0)
    return t, z


def schur(a: Any, output: str = "real") -> tuple[Any, Any]:
    """Compute the Schur decomposition: `a = Z @ T @ Z^H`.

    Args:
        a: matrices, `[..., n, n]`.
        output: `"complex"` for a triangular T also for real matrices. With `"real"`, T of a real matrix has a block of
            two rows for each pair of complex eigenvalues.

    Returns:
        `(T, Z)`. Not differentiable.

    Raises:
        ValueError: `output` is invalid, or the matrices are not square.
    """
    choice("schur", "output", output, ("real", "complex"))
    (a,) = square("schur", a)
    t, z = lax_linalg.schur(a.astype(complex_of(a.dtype)) if output == "complex" else a)
    return t, z


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Compute the singular value decomposition: `a = u @ (s * vh)`.

    Args:
        a: matrices, `[..., m, n]`.
        full_matrices: whether u and vh are square.
        compute_uv: whether u and vh are computed; otherwise the result is s.
        overwrite_a: ignored.
        check_finite: ignored.
        lapack_driver: ignored.

    Raises:
        ValueError: `a` has fewer than two axes.
    """
    (a,) = matrices("svd", a)
    return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


@remembered
def polar(
    a: Any, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """Compute the polar decomposition `a = u @ p`, or `p @ u` for the left side; p is positive semidefinite.

    Args:
        a: matrices, `[..., m, n]`.
        side: the side of p, `"right"` or `"left"`.
        method: `"qdwh"`, an iteration (`lax.linalg.qdwh`), or `"svd"`.
        eps: as for `lax.linalg.qdwh`.
        max_iterations: as for `lax.linalg.qdwh`.

    Returns:
        `(u, p)`: u has orthonormal columns, or orthonormal rows if it has fewer rows. The iteration requires matrices
        of full rank.

    Raises:
        TypeError: LAPACK does not support the dtype of `a`.
        ValueError: `a` has fewer than two axes, or `side` or `method` is invalid.
    """
    choice("polar", "side", side, ("right", "left"))
    choice("polar", "method", method, ("qdwh", "svd"))
    (a,) = matrices("polar", a)
    if method == "svd":
        u, _, vh = lax_linalg.svd(a, full_matrices=False)
        unitary = mat.matmul(u, vh)
    else:
        wide = a.shape[-2] < a.shape[-1]
        one = jnp.vectorize(
            lambda x: lax_linalg.qdwh(x, eps=eps, max_iterations=max_iterations)[0], signature="(m,n)->(m,n)"
        )
        unitary = mat.adjoint(one(mat.adjoint(a))) if wide else one(a)
    turned = mat.adjoint(unitary)
    return unitary, mat.symmetrize(mat.matmul(turned, a) if side == "right" else mat.matmul(a, turned))
