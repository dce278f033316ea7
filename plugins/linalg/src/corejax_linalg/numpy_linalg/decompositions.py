"""Decompositions, with NumPy's names, orders of results and named tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

import corejax.numpy as jnp
from corejax.extend import Array, remembered
from corejax_lax_basic import lax
from corejax_linalg import lax_linalg
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import choice, flag, matrices, square
from corejax_linalg.primitives.qr import geqrf


class EighResult(NamedTuple):
    """The results of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """The results of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The results of `qr`."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The results of `svd`."""

    U: Array
    S: Array
    Vh: Array


@remembered
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """Compute the Cholesky factor of positive definite matrices: `a = L @ L^H`, or `U^H @ U`.

    Args:
        a: Hermitian matrices, `[..., n, n]`.
        upper: whether the factor is upper triangular.
        symmetrize_input: whether `(a + a^H) / 2` is factored; otherwise only the lower triangle is used.

    Returns:
        The factor, `[..., n, n]`; NaN for matrices that are not positive definite.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import corejax.numpy as jnp
        >>> print(jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
        [[2. 0.]
         [1. 2.]]
    """
    (a,) = square("cholesky", a)
    factor = lax_linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return mat.adjoint(factor) if flag("cholesky", "upper", upper) else factor


def eig(a: Any) -> EigResult:
    """Compute eigenvalues, in no particular order, and eigenvectors of square matrices; both are complex.

    Args:
        a: matrices, `[..., n, n]`.

    Returns:
        `(eigenvalues, eigenvectors)`, with the eigenvectors in columns.

    Raises:
        ValueError: the matrices are not square.
        NotImplementedError: the eigenvectors are differentiated, for which see `lax.linalg.eig`.
    """
    (a,) = square("eig", a)
    w, v = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: Any) -> Any:
    """Compute the eigenvalues of square matrices, complex and in no particular order.

    Raises:
        ValueError: the matrices are not square.
    """
    (a,) = square("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@remembered
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Compute eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: Hermitian matrices, `[..., n, n]`.
        UPLO: the triangle that is used if `symmetrize_input` is False, `"L"` (the default) or `"U"`.
        symmetrize_input: whether `(a + a^H) / 2` is decomposed.

    Returns:
        `(eigenvalues, eigenvectors)`: real, ascending eigenvalues, and eigenvectors in columns.

    Raises:
        ValueError: the matrices are not square, or `UPLO` is invalid.

    Example:
        >>> import corejax.numpy as jnp
        >>> print(jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues)
        [1. 3.]
    """
    choice("eigh", "UPLO", UPLO, (None, "L", "U"))
    (a,) = square("eigh", a)
    v, w = lax_linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@remembered
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """Compute the eigenvalues of Hermitian matrices, real and ascending; the arguments are those of `eigh`.

    Raises:
        ValueError: the matrices are not square, or `UPLO` is invalid.
    """
    symmetrize_input = flag("eigvalsh", "symmetrize_input", symmetrize_input)
    choice("eigvalsh", "UPLO", UPLO, (None, "L", "U"))
    (a,) = square("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@remembered
def qr(a: Any, mode: str = "reduced") -> Any:
    """Compute the QR decomposition: `a = Q @ R`.

    Args:
        a: matrices, `[..., m, n]`.
        mode: `"reduced"` (or `"full"`): Q has min(m, n) columns. `"complete"`: Q is square. `"r"`: return R alone.
            `"raw"`: return LAPACK's reflectors, transposed, and their factors.

    Raises:
        ValueError: `mode` is invalid, or `a` has fewer than two axes.
    """
    choice("qr", "mode", mode, ("reduced", "complete", "r", "raw", "full"))
    (a,) = matrices("qr", a)
    if mode == "raw":
        packed, taus = geqrf(a)
        return QRResult(mat.transpose(packed), taus)
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Compute the singular value decomposition: `a = U @ (S * Vh)`, with descending singular values.

    Args:
        a: matrices, `[..., m, n]`.
        full_matrices: whether U and Vh are square.
        compute_uv: whether U and Vh are computed; otherwise the result is S alone.
        hermitian: whether the matrices are Hermitian, which allows a faster algorithm.
        subset_by_index: `(start, stop)`: return only the singular values with these indices.

    Returns:
        `(U, S, Vh)`, or S without `compute_uv`.

    Raises:
        ValueError: `a` has fewer than two axes, the matrices are not square though `hermitian` is True, the indices are
            out of range, or they are combined with `full_matrices`.
    """
    compute_uv = flag("svd", "compute_uv", compute_uv)
    if flag("svd", "hermitian", hermitian):
        return _hermitian_svd(square("svd", a)[0], compute_uv, subset_by_index)
    (a,) = matrices("svd", a)
    found = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*found) if compute_uv else found


def _hermitian_svd(a: Any, compute_uv: bool, subset_by_index: tuple[int, int] | None) -> Any:
    """Compute the SVD by eigenvalues: singular values are their absolute values, and Vh takes their signs."""
    v, w = lax_linalg.eigh(a, subset_by_index=subset_by_index)
    s = lax.abs(w)
    order = jnp.flip(jnp.argsort(s, axis=-1), -1)
    s = jnp.take_along_axis(s, order, -1)
    if not compute_uv:
        return s
    u = jnp.take_along_axis(v, order[..., None, :], -1)
    negative = jnp.take_along_axis(w, order, -1)[..., None, :] < 0
    return SVDResult(u, s, mat.adjoint(jnp.where(negative, -u, u)))


@remembered
def svdvals(x: Any, /) -> Any:
    """Compute the singular values of matrices, descending.

    Raises:
        ValueError: `x` has fewer than two axes.
    """
    return svd(matrices("svdvals", x)[0], compute_uv=False)
