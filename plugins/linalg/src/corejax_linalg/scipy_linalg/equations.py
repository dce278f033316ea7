"""Solvers of equations with SciPy's names; SciPy's arguments about memory and checks are ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax.extend.messages import warn_user
from corejax_lax_basic import lax
from corejax_linalg import lax_linalg
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import arrays, choice, flag, pair, real_number
from corejax_linalg._base.types import complex_of
from corejax_linalg.numpy_linalg import equations
from corejax_linalg.primitives.solving import is_only_evaluated, solve_broadcast, solve_with_factors
from corejax_linalg.scipy_linalg.factors import cholesky


def _solved_stacks(name: str, solve: Callable[..., Any], a: Any, b: Any, *vectors: Any) -> Any:
    """Call `solve(a, b, *vectors)`, which takes equal batch axes, for a vector b or matrices that broadcast.

    Raises:
        ValueError: the shapes do not match.
    """
    n = a.shape[-1] if a.ndim > 1 else None
    is_deprecated = b.ndim > 1 and a.ndim == b.ndim + 1 and n == b.shape[-1]
    if is_deprecated:
        warn_user(
            f"{name}: stacks of vectors are deprecated, as in JAX; pass columns instead: b[..., None]", FutureWarning
        )
    alone = is_deprecated or b.ndim == 1
    columns = b[..., None] if alone else b
    if n is None or a.shape[-2] != n or columns.ndim < 2 or columns.shape[-2] != n:
        raise ValueError(
            f"{name} takes a matrix [..., n, n] with b [n] or [..., n, k], got {a.aval.str_short()} and b "
            f"{b.aval.str_short()}"
        )
    out = solve_broadcast(solve, a, columns, *vectors)
    return out[..., 0] if alone else out


@remembered
def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """Solve `op(a) @ x = b` with triangular matrices.

    Args:
        a: triangular matrices, `[..., n, n]`.
        b: a vector `[n]`, or matrices `[..., n, k]`.
        trans: 0 or `"N"` if op is the identity, 1 or `"T"` if op transposes, 2 or `"C"` if op also conjugates.
        lower: whether the matrices are lower triangular.
        unit_diagonal: whether the diagonal counts as 1, whatever its elements are.
        overwrite_b: ignored.
        debug: ignored.
        check_finite: ignored.

    Returns:
        The solution x, of the shape of `b`.

    Raises:
        ValueError: `trans` is invalid, or the shapes do not match.
    """
    choice("solve_triangular", "trans", trans, (0, 1, 2, "N", "T", "C"))
    a, b = arrays("solve_triangular", a, b)
    name = "solve_triangular"
    flags = {"lower": flag(name, "lower", lower), "unit_diagonal": flag(name, "unit_diagonal", unit_diagonal)}

    def solve(a: Any, b: Any) -> Any:
        turned = {"transpose_a": trans not in (0, "N"), "conjugate_a": trans in (2, "C")}
        return lax_linalg.triangular_solve(a, b, left_side=True, **flags, **turned)

    return _solved_stacks("solve_triangular", solve, a, b)


@remembered
def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve `a @ x = b`, given the result of `cho_factor(a)`.

    Args:
        c_and_lower: the factor, and whether it is lower triangular.
        b: a vector `[n]`, or matrices `[..., n, k]`.
        overwrite_b: ignored.
        check_finite: ignored.

    Returns:
        The solution x, of the shape of `b`.

    Raises:
        ValueError: the shapes do not match.
    """
    factor, lower = pair("cho_solve", "c_and_lower", c_and_lower, "cho_factor")
    lower = flag("cho_solve", "lower", lower)
    factor, b = arrays("cho_solve", factor, b)
    return _solved_stacks("cho_solve", lambda c, b: _cho_solved(c, b, lower), factor, b)


def _cho_solved(factor: Any, b: Any, lower: bool) -> Any:
    for turned in (not lower, lower):
        b = lax_linalg.triangular_solve(factor, b, left_side=True, lower=lower, transpose_a=turned, conjugate_a=turned)
    return b


@remembered
def lu_solve(
    lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solve `a @ x = b`, given the result of `lu_factor(a)`.

    Args:
        lu_and_piv: the factors, and the exchanges of rows.
        b: a vector `[n]`, or matrices `[..., n, k]`.
        trans: 1 for `a^T`, 2 for `a^H` in place of a.
        overwrite_b: ignored.
        check_finite: ignored.

    Returns:
        The solution x, of the shape of `b`.

    Raises:
        ValueError: `trans` is invalid, or the shapes do not match.
    """
    choice("lu_solve", "trans", trans, (0, 1, 2))
    factors, pivots = pair("lu_solve", "lu_and_piv", lu_and_piv, "lu_factor")
    factors, b = arrays("lu_solve", factors, b)
    if factors.ndim < 2 or factors.shape[-1] != factors.shape[-2]:
        raise ValueError(f"lu_solve takes factors of square matrices, [..., n, n], got {factors.aval.str_short()}")
    order = lax_linalg.lu_pivots_to_permutation(pivots, factors.shape[-1])
    return _solved_stacks("lu_solve", lambda a, b, p: solve_with_factors(a, p, b, trans), factors, b, order)


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Any:
    """Solve `a @ x = b`.

    Args:
        a: matrices, `[..., n, n]`.
        b: a vector `[n]`, or matrices `[..., n, k]`.
        lower: which triangle of positive definite matrices is used.
        overwrite_a: ignored.
        overwrite_b: ignored.
        debug: ignored.
        check_finite: ignored.
        assume_a: `"pos"` for positive definite matrices, which use the Cholesky decomposition; `"gen"`, `"sym"` and
            `"her"` use the LU decomposition.

    Returns:
        The solution x, of the shape of `b`. Derivatives solve the differentiated equation.

    Raises:
        ValueError: `assume_a` is invalid, or the shapes do not match.
    """
    choice("solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    lower = flag("solve", "lower", lower)
    if assume_a != "pos":
        return equations.solve(a, b)
    a, b = arrays("solve", a, b)
    return _solved_stacks("solve", lambda a, b: _solved_definite(a, b, lower), a, b)


def _solved_definite(a: Any, b: Any, lower: bool) -> Any:
    factor = cholesky(lax.stop_gradient(a), lower)
    if is_only_evaluated():
        return _cho_solved(factor, b, lower)
    return lax.custom_linear_solve(
        lambda x: mat.matmul(a, x),
        b,
        solve=lambda _, b: _cho_solved(factor, b, lower),
        # The transpose of a Hermitian matrix is its conjugate.
        transpose_solve=lambda _, b: mat.conj(_cho_solved(factor, mat.conj(b), lower)),
    )


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """Solve the Sylvester equation `A @ X + X @ B = C`.

    Args:
        A: matrices, `[..., m, m]`.
        B: matrices, `[..., n, n]`.
        C: matrices, `[..., m, n]`.
        method: `"schur"`, which is not differentiable, or `"eigen"`, for diagonalisable matrices.
        tol: if an eigenvalue of A and one of -B are closer than this, or than rounding errors, the result is NaN.

    Returns:
        The solution X, of the shape of C.

    Raises:
        ValueError: `method` is invalid, or the shapes do not match.
    """
    choice("solve_sylvester", "method", method, ("schur", "eigen"))
    tol = real_number("solve_sylvester", "tol", tol)
    A, B, C = arrays("solve_sylvester", A, B, C)
    m, n = C.shape[-2:] if C.ndim > 1 else (None, None)
    if A.shape[-2:] != (m, m) or B.shape[-2:] != (n, n):
        raise ValueError(
            f"solve_sylvester takes A [..., m, m], B [..., n, n] and C [..., m, n], got {A.aval.str_short()}, "
            f"{B.aval.str_short()} and {C.aval.str_short()}"
        )
    batch = lax.broadcast_shapes(A.shape[:-2], B.shape[:-2], C.shape[:-2])
    A, B, C = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (A, B, C))
    return _sylvester(A, B, C, method, real_number("solve_sylvester", "tol", tol))


@remembered
def _sylvester(A: Any, B: Any, C: Any, method: str, tol: float) -> Any:
    wide = complex_of(C.dtype)
    if method == "schur":
        r, u = lax_linalg.schur(A.astype(wide))
        s, v = lax_linalg.schur(B.astype(wide))
        inner = mat.matmul(mat.matmul(mat.adjoint(u), C.astype(wide)), v)
        x = mat.matmul(mat.matmul(u, _triangular_sylvester(r, s, inner)), mat.adjoint(v))
        sums = mat.diagonal(r)[..., :, None] + mat.diagonal(s)[..., None, :]
    else:
        (w, u), (z, v) = (lax_linalg.eig(M, compute_left_eigenvectors=False) for M in (A, B))
        sums = w[..., :, None] + z[..., None, :]
        inner = mat.matmul(equations.solve(u, C.astype(wide)), v)
        x = mat.matmul(mat.matmul(u, inner / sums), equations.inv(v))
    x = x if dtypes.is_complex(C.dtype) else lax.real(x)
    size = jnp.abs(sums)
    rounding = float(8 * dtypes.finfo(size.dtype).eps) * jnp.max(size, axis=(-2, -1), keepdims=True, initial=0)
    near = jnp.any(size < jnp.maximum(tol, rounding), axis=(-2, -1), keepdims=True)
    return jnp.where(near, jnp.nan, x)


def _triangular_sylvester(r: Any, s: Any, f: Any) -> Any:
    """Solve `r @ y + y @ s = f` with upper triangular r and s, one column after the other."""
    one = mat.eye(r)
    columns = (jnp.moveaxis(s, -1, 0), jnp.moveaxis(f, -1, 0), jnp.moveaxis(mat.diagonal(s), -1, 0), mat.eye(s) != 0)

    def column(y: Any, given: Any) -> tuple[Any, None]:
        of_s, of_f, corner, here = given
        rhs = of_f[..., None] - mat.matmul(y, of_s[..., None])
        solved = lax_linalg.triangular_solve(r + corner[..., None, None] * one, rhs, left_side=True)
        return jnp.where(here, solved, y), None

    return lax.scan(column, jnp.zeros_like(f), columns)[0] if f.shape[-1] else f
