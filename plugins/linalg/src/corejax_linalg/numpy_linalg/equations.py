"""Solve linear equations, exactly and by least squares, and invert matrices."""

from __future__ import annotations

import functools
import math
from typing import Any

import corejax
import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax.extend.types import max_dim
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base import on_host
from corejax_linalg._base.arguments import array, arrays, flag, integer, matrices, number, square, static_axes
from corejax_linalg.numpy_linalg.decompositions import svd
from corejax_linalg.primitives.solving import solve_broadcast, solve_by_lu


def solve(a: Any, b: Any) -> Any:
    """Solve `a @ x = b` by LU decomposition.

    Derivatives solve the differentiated equation with the same factors (`lax.custom_linear_solve`).

    Args:
        a: matrices, `[..., n, n]`.
        b: one vector, `[n]`, or matrices, `[..., n, k]`, with batch axes that broadcast with those of `a`.

    Returns:
        The solution x, `[..., n]` or `[..., n, k]`; infinite or NaN if a matrix is singular (an error in eager mode
        with `config.linalg_errors`).

    Raises:
        ValueError: the matrices are not square, or the shapes do not match.

    Example:
        >>> import corejax.numpy as jnp
        >>> print(jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([1.0, 2.0])))
        [0.5 0.5]
    """
    found = on_host.solved(a, b)
    return _solution(a, b) if found is None else found


@remembered
def _solution(a: Any, b: Any) -> Any:
    a, b = arrays("solve", a, b)
    n = a.shape[-1] if a.ndim >= 2 else None
    if n is None or a.shape[-2] != n or not b.ndim or b.shape[-2 if b.ndim > 1 else 0] != n:
        raise ValueError(
            f"solve takes a [..., n, n] with b [n] or [..., n, k], got a {a.aval.str_short()} and b "
            f"{b.aval.str_short()}; pass a stack of vectors as columns: solve(a, b[..., None])[..., 0]"
        )
    if b.ndim == 1:
        columns = lax.broadcast_to(b[:, None], (*a.shape[:-1], 1))
        return lax.squeeze(solve_by_lu(a, columns), (a.ndim - 1,))
    try:
        lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"solve: the batch axes of a and b must broadcast, got a {a.aval.str_short()} and b {b.aval.str_short()}"
        ) from None
    return solve_broadcast(solve_by_lu, a, b)


def inv(a: Any) -> Any:
    """Compute the inverses of square matrices.

    Args:
        a: matrices, `[..., n, n]`.

    Returns:
        The inverses; infinite or NaN if a matrix is singular (an error in eager mode with `config.linalg_errors`).

    Raises:
        ValueError: the matrices are not square.
    """
    found = on_host.inverse(a)
    return _inverse(a) if found is None else found


@remembered
def _inverse(a: Any) -> Any:
    (a,) = square("inv", a)
    return solve_by_lu(a, lax.broadcast_to(mat.eye(a), a.shape))


@remembered
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Compute the inverse of an array as a linear map from its last axes to its first `ind` axes.

    Raises:
        TypeError: `ind` is not an integer.
        ValueError: `ind` is not positive, or the first axes and the others have different numbers of elements.
    """
    (a,) = arrays("tensorinv", a)
    ind = integer("tensorinv", "ind", ind, 1)
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            f"tensorinv: the first ind={ind} axes of {a.aval.str_short()} must have as many elements as the others"
        )
    return inv(a.reshape(math.prod(rows), math.prod(columns))).reshape(*columns, *rows)


def tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Solve `tensordot(a, x, x.ndim) = b` for x.

    Args:
        a: an array; its first axes are those of `b`, and the others those of x.
        b: the right-hand side.
        axes: axes of `a` to move to the end first.

    Returns:
        The solution x, of the shape of the last axes of `a`.

    Raises:
        ValueError: the shapes do not match.
    """
    a, b = arrays("tensorsolve", a, b)
    if axes is not None:
        axes = static_axes("tensorsolve", axes)
        a = jnp.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        raise ValueError(
            "tensorsolve: the first axes of a must be those of b, and the others must have as many elements; "
            f"got a {a.aval.str_short()} and b {b.aval.str_short()}"
        )
    return solve(a.reshape(b.size, b.size), b.reshape(-1)).reshape(shape)


@remembered
def matrix_power(a: Any, n: int) -> Any:
    """Compute the `n`-th power of square matrices; a negative `n` gives powers of the inverses.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: the matrices are not square.
    """
    n = integer("matrix_power", "n", n)
    a = array("matrix_power", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, [..., n, n], got {a.aval.str_short()}")
    if n < 0:
        a, n = inv(a), -n
    out = None
    while n:
        if n & 1:
            out = a if out is None else out @ a
        n >>= 1
        a = a @ a if n else a
    return jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape) if out is None else out


# -- least squares ---------------------------------------------------------------------------------------------------


def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> tuple[Any, Any, Any, Any]:
    """Return the x of least norm that minimises `|a @ x - b|`.

    Args:
        a: a matrix, `[m, n]`.
        b: a vector `[m]`, or several as columns, `[m, k]`.
        rcond: singular values below this fraction of the largest count as zero. By default it is the dtype's epsilon
            times the larger of m and n; a negative number stands for the epsilon.
        numpy_resid: whether the residuals are an empty array if NumPy's are: if `a` is not of full rank or not tall.
            That looks at values, and so is for eager mode.

    Returns:
        `(x, residuals, rank, s)`: the solution, the sums of squares of `a @ x - b`, the rank, and the singular values.

    Raises:
        ValueError: the shapes do not match.
    """
    a, b = arrays("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(
            f"lstsq takes a [m, n] with b [m] or [m, k], got a {a.aval.str_short()} and b {b.aval.str_short()}"
        )
    if rcond is not None:
        rcond = number("lstsq", "rcond", rcond, dtypes.real_dtype_of(a.dtype))
    numpy_resid = flag("lstsq", "numpy_resid", numpy_resid)
    x, residuals, rank, s = _least_squares(a, b, rcond)
    if numpy_resid and (a.shape[0] <= a.shape[1] or int(rank) < a.shape[1]):
        residuals = jnp.zeros((0,), s.dtype)
    return x, residuals, rank, s


@remembered
def _least_squares(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    columns = b[:, None] if b.ndim == 1 else b
    u, s, vh = svd(a, full_matrices=False)
    eps = dtypes.finfo(s.dtype).eps
    cutoff = float(eps) * max_dim(*a.shape) if rcond is None else jnp.where(rcond < 0, eps, rcond)
    kept = (s > 0) & (s >= jnp.asarray(cutoff, s.dtype) * s[:1])
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0).astype(a.dtype)
    x = mat.matmul(mat.adjoint(vh), inverse[:, None] * mat.matmul(mat.adjoint(u), columns))
    error = columns - mat.matmul(a, x)
    residuals = jnp.sum(jnp.real(error * jnp.conj(error)), axis=0)
    return (x[:, 0] if b.ndim == 1 else x), residuals, jnp.sum(kept), s


@remembered
def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """Compute the Moore-Penrose pseudo-inverses of matrices, by singular values.

    Args:
        a: matrices, `[..., m, n]`.
        rtol: for each matrix, singular values up to this fraction of the largest count as zero; by default ten times
            the dtype's epsilon times the larger of m and n.
        hermitian: whether the matrices are Hermitian, which allows a faster algorithm.
        rcond: an alias of `rtol`.

    Returns:
        Matrices `[..., n, m]`. Derivatives assume constant rank (G. Golub and V. Pereyra, "The differentiation of
        pseudo-inverses and nonlinear least squares problems whose variables separate", 1973, equation 4.12).

    Raises:
        ValueError: both `rtol` and `rcond` are given, or `a` has fewer than two axes.
    """
    if rcond is not None and rtol is not None:
        raise ValueError(f"pinv: rcond is an alias of rtol, got both rtol={rtol!r} and rcond={rcond!r}")
    (a,) = matrices("pinv", a)
    hermitian = flag("pinv", "hermitian", hermitian)
    rtol = rtol if rcond is None else rcond
    if rtol is None:
        rtol = 10.0 * max_dim(*a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)
    return _pseudo_inverse(hermitian)(a, number("pinv", "rtol", rtol, dtypes.real_dtype_of(a.dtype)))


@functools.cache
def _pseudo_inverse(hermitian: bool) -> Any:
    """Return `f(a, rtol)` with a custom derivative, since singular vectors have none if singular values are equal."""

    def pinv(a: Any, rtol: Any) -> Any:
        if a.size == 0:
            return jnp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
        u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
        cutoff = rtol[..., None] * s[..., :1]
        inverse = jnp.where(s > cutoff, 1 / jnp.where(s > cutoff, s, 1), 0).astype(a.dtype)
        return mat.matmul(mat.adjoint(vh), inverse[..., :, None] * mat.adjoint(u))

    def pinv_jvp(primals: Any, tangents: Any) -> Any:
        (a, rtol), (da, _) = primals, tangents
        if hermitian:
            a, da = mat.symmetrize(a), mat.symmetrize(da)
        p = found(a, rtol)
        ph, dah = mat.adjoint(p), mat.adjoint(da)
        left = mat.matmul(p, mat.matmul(ph, dah))
        right = mat.matmul(mat.matmul(dah, ph), p)
        dp = left - mat.matmul(left, mat.matmul(a, p)) + right - mat.matmul(mat.matmul(p, a), right)
        return p, dp - mat.matmul(mat.matmul(p, da), p)

    found = corejax.custom_jvp(pinv)
    found.defjvp(pinv_jvp)
    return found
