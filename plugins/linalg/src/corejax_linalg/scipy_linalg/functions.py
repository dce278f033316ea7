"""Functions of matrices: exponential, square root, and general functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_linalg import lax_linalg
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import flag, integer, square
from corejax_linalg._base.types import complex_of
from corejax_linalg.primitives.solving import solve_by_lu

# Coefficients of the numerators of Padé approximants of exp (the denominators have alternating signs), and the largest
# norms for which they are exact: N. Higham, "The scaling and squaring method for the matrix exponential revisited"
# (2005).
_PADE_7 = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
_PADE_13 = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
    *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_FEW = 4  # the number of squarings that suffice for most matrices
_LARGEST = {7: 3.925724783138660, 13: 5.371920351148152}


@remembered
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """Compute the exponential of square matrices, by scaling, a Padé approximant, and squaring.

    Args:
        A: matrices, `[..., n, n]`.
        upper_triangular: whether the matrices are upper triangular, which allows a faster algorithm.
        max_squarings: the maximal number of times that a matrix is halved.

    Returns:
        The exponentials; NaN for matrices with a norm that `max_squarings` halvings do not reduce to about 5.

    Raises:
        TypeError: `max_squarings` is not an integer.
        ValueError: the matrices are not square.
    """
    most = integer("expm", "max_squarings", max_squarings, 0)
    (A,) = square("expm", A)
    if not A.size:
        return A
    real = dtypes.real_dtype_of(A.dtype)
    degree = 13 if real == np.float64 else 7
    norm = lax.stop_gradient(jnp.max(jnp.sum(lax.abs(A), axis=-2, keepdims=True), axis=-1, keepdims=True))
    halvings = jnp.maximum(0, jnp.ceil(jnp.log2(jnp.maximum(norm, 1) / _LARGEST[degree])))
    scaled = A * jnp.exp2(-halvings).astype(A.dtype)
    even, odd = _pade(scaled, _PADE_13 if degree == 13 else _PADE_7)
    if flag("expm", "upper_triangular", upper_triangular):
        out = lax_linalg.triangular_solve(even - odd, even + odd, left_side=True)
    else:
        out = solve_by_lu(even - odd, even + odd)
    for first, end in ((0, min(most, _FEW)), (_FEW, most)):  # most matrices are small and need few squarings
        if first < end:
            out = lax.cond(
                jnp.any(halvings > first),
                lambda x, halvings, steps: lax.scan(_squared, (x, halvings), steps)[0][0],
                lambda x, halvings, steps: x,
                *(out, halvings, jnp.arange(first, end, dtype=real)),
            )
    return jnp.where(halvings > most, jnp.nan, out)


def _squared(state: tuple[Any, Any], step: Any) -> tuple[tuple[Any, Any], None]:
    """Square the matrices that need more than `step` squarings; a module-level function, so that it is traced once."""
    x, halvings = state
    going = step < halvings

    def again(x: Any, going: Any) -> Any:
        inner = jnp.where(going, x, 0)  # an overflow of unused elements would make derivatives NaN
        return jnp.where(going, mat.matmul(inner, inner), x)

    return (lax.cond(jnp.any(going), again, lambda x, going: x, x, going), halvings), None


def _pade(a: Any, coefficients: tuple[float, ...]) -> tuple[Any, Any]:
    """Return the even and the odd part of the numerator."""
    one = jnp.broadcast_to(mat.eye(a), a.shape)
    square = mat.matmul(a, a)
    powers = [one, square]
    while len(powers) < min(len(coefficients) // 2, 4):
        powers.append(mat.matmul(powers[-1], square))

    def summed(given: Any) -> Any:
        """Sum powers of the square up to the third; factor the third power out of higher powers."""
        low = sum(c * p for c, p in zip(given[1:4], powers[1:], strict=False))
        low = low + given[0] * one
        high = given[4:]
        if not high:
            return low
        return low + mat.matmul(powers[3], sum(c * p for c, p in zip(high, powers[1:], strict=False)))

    return summed(coefficients[0::2]), mat.matmul(a, summed(coefficients[1::2]))


@remembered
def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """Compute the derivative of the exponential at `A` in the direction `E`.

    Args:
        A: matrices, `[..., n, n]`.
        E: the directions, of the same shape.
        method: ignored.
        compute_expm: whether the exponential is also returned.

    Returns:
        `(expm(A), derivative)`, or only the derivative.

    Raises:
        ValueError: the matrices are not square, or differ in shape.
    """
    A, E = square("expm_frechet", A, E)
    if A.shape != E.shape:
        raise ValueError(
            f"expm_frechet: A and E must have one shape, got {A.aval.str_short()} and {E.aval.str_short()}"
        )
    out, tangent = corejax.jvp(expm, (A,), (E,))
    return (out, tangent) if flag("expm_frechet", "compute_expm", compute_expm) else tangent


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """Evaluate a function of a square matrix, by its Schur decomposition and Parlett's recurrence.

    Args:
        A: a matrix `[n, n]` with distinct eigenvalues.
        func: the function, which is applied to the complex array of eigenvalues.
        disp: whether to return only the result, without an estimate of its error.

    Returns:
        The function of the matrix, complex, or `(result, error)`. Not differentiable.

    Raises:
        ValueError: the matrix is not square.
    """
    (A,) = square("funm", A)
    if A.ndim != 2:
        raise ValueError(f"funm takes one square matrix, got {A.aval.str_short()}")
    if not callable(func):
        raise TypeError(f"funm: func must be a function of an array, got {func!r} of type {type(func).__name__}")
    disp = flag("funm", "disp", disp)
    t, z = lax_linalg.schur(A.astype(complex_of(A.dtype)))
    values = jnp.asarray(func(mat.diagonal(t))).astype(t.dtype)
    return _by_recurrence(t, z, values, disp)


@remembered
def _by_recurrence(t: Any, z: Any, values: Any, disp: bool) -> Any:
    """Return the function of `z @ t @ z^H`, given its values at the eigenvalues."""
    gaps = mat.diagonal(t)[None, :] - mat.diagonal(t)[:, None]
    above, one = jnp.where(_offsets(t) > 0, t, 0), mat.eye(t)

    def column(f: Any, given: Any) -> tuple[Any, None]:
        # Solve t f = f t for column j above the diagonal; the unknown elements of f are still zero.
        wanted, value, gap, here = given
        rest = mat.matmul(f, wanted[:, None]) - (value * wanted)[:, None]
        found = lax_linalg.triangular_solve(above - jnp.where(gap == 0, 1, gap)[:, None] * one, rest, left_side=True)
        return f + jnp.where(here, found, 0), None

    f = jnp.diag(values)
    f = lax.scan(column, f, (above.T, values, gaps.T, one != 0))[0] if t.shape[0] else f
    out = mat.matmul(mat.matmul(z, f), mat.adjoint(z))
    if disp:
        return out
    eps = float(dtypes.finfo(jnp.real(t).dtype).eps)
    least = jnp.min(jnp.where(_offsets(t) > 0, jnp.abs(gaps), jnp.inf), initial=jnp.inf)
    least = jnp.where(least == 0, eps, least)
    norm = jnp.max(jnp.sum(jnp.abs(above), axis=0), initial=0)
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * norm))
    return out, jnp.where(jnp.any(jnp.isinf(out)), jnp.inf, error)


def _offsets(x: Any) -> Any:
    """Return the offset of each element's diagonal."""
    return jnp.arange(x.shape[-1])[None, :] - jnp.arange(x.shape[-2])[:, None]


@remembered
def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """Compute the principal square root of square matrices, by their Schur decomposition.

    Å. Björck and S. Hammarling, "A Schur method for the square root of a matrix" (1983).

    Args:
        A: matrices, `[..., n, n]`.
        blocksize: must be 1; other block sizes are not supported.

    Returns:
        The square roots, complex. Not differentiable.

    Raises:
        ValueError: the matrices are not square.
        NotImplementedError: `blocksize` is greater than 1.
    """
    if integer("sqrtm", "blocksize", blocksize) > 1:
        raise NotImplementedError(f"sqrtm: blocksize must be 1, got {blocksize}")
    (A,) = square("sqrtm", A)
    t, z = lax_linalg.schur(A.astype(complex_of(A.dtype)))
    if t.shape[-1] == 0:
        return t
    root, one, above = lax.sqrt(mat.diagonal(t)), mat.eye(t), _offsets(t) > 0
    sums = root[..., :, None] + root[..., None, :]
    corners = jnp.where(sums == 0, 1, sums)

    def column(u: Any, given: Any) -> tuple[Any, None]:
        # Above the diagonal, (u u)[:, j] = (u + u[j, j]) u[:, j]; the unknown elements of u are still zero.
        wanted, corner, here = given
        found = lax_linalg.triangular_solve(u + corner[..., None] * one, wanted[..., None], left_side=True)
        return u + jnp.where(here, found, 0), None

    columns = (*(jnp.moveaxis(x, -1, 0) for x in (jnp.where(above, t, 0), corners)), one != 0)
    u = lax.scan(column, jnp.zeros_like(t), columns)[0]
    u = jnp.where((sums == 0) & above & (u != 0), jnp.inf, u)  # such a matrix has no square root
    u = u + root[..., None, :] * one
    return mat.matmul(mat.matmul(z, u), mat.adjoint(z))
