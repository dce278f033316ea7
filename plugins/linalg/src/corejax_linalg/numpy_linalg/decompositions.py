"""Decompositions, with NumPy's names, orders of results and named tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

import corejax.numpy as jnp
from corejax.extend import remembered
from corejax_lax_basic import lax
from corejax_linalg import lax_linalg
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import choice, flag, matrices, square
from corejax_linalg.primitives.qr import geqrf


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """What `eig` gives."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Any
    S: Any
    Vh: Any


@remembered
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The Cholesky factor of positive definite matrices: `a = L @ L^H`, or `U^H @ U`.

    Args:
        a: Hermitian matrices, `[..., n, n]`.
        upper: whether the factor is upper triangular.
        symmetrize_input: whether `(a + a^H) / 2` is factored; otherwise the lower triangle is what counts.

    Returns:
        The factor, `[..., n, n]`; NaN of matrices that are not positive definite.

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
    """Eigenvalues, in no order, and eigenvectors, in columns, of square matrices; both complex.

    Raises:
        ValueError: the matrices are not square.
        NotImplementedError: they are differentiated (`lax.linalg.eig` says how).
    """
    (a,) = square("eig", a)
    w, v = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: Any) -> Any:
    """Eigenvalues of square matrices, complex, in no order.

    Raises:
        ValueError: the matrices are not square.
    """
    (a,) = square("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@remembered
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, ascending and real, and eigenvectors, in columns, of Hermitian matrices.

    Args:
        a: Hermitian matrices, `[..., n, n]`.
        UPLO: the triangle that counts where they are not symmetrized, `"L"` (the default) or `"U"`.
        symmetrize_input: whether `(a + a^H) / 2` is decomposed.

    Raises:
        ValueError: the matrices are not square, or `UPLO` is another word.

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
    """Eigenvalues of Hermitian matrices, ascending and real; arguments as of `eigh`.

    Raises:
        ValueError: the matrices are not square, or `UPLO` is another word.
    """
    symmetrize_input = flag("eigvalsh", "symmetrize_input", symmetrize_input)
    choice("eigvalsh", "UPLO", UPLO, (None, "L", "U"))
    (a,) = square("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@remembered
def qr(a: Any, mode: str = "reduced") -> Any:
    """The QR decomposition: `a = Q @ R`.

    Args:
        a: matrices, `[..., m, n]`.
        mode: `"reduced"` (or `"full"`): Q has min(m, n) columns. `"complete"`: Q is square. `"r"`: R alone. `"raw"`:
            LAPACK's reflectors, transposed, and their factors.

    Raises:
        ValueError: `mode` is another word, or `a` has fewer than two axes.
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
    """The singular value decomposition: `a = U @ (S * Vh)`, singular values descending.

    Args:
        a: matrices, `[..., m, n]`.
        full_matrices: whether U and Vh are square.
        compute_uv: whether they are wanted; otherwise the result is S alone.
        hermitian: whether the matrices are Hermitian, which is faster.
        subset_by_index: `(start, stop)`: only the singular values with these indices.

    Raises:
        ValueError: `a` has fewer than two axes; the matrices are not square and said to be Hermitian; there are no such
            indices, or full matrices are asked for with some of them.
    """
    compute_uv = flag("svd", "compute_uv", compute_uv)
    if flag("svd", "hermitian", hermitian):
        return _hermitian_svd(square("svd", a)[0], compute_uv, subset_by_index)
    (a,) = matrices("svd", a)
    found = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*found) if compute_uv else found


def _hermitian_svd(a: Any, compute_uv: bool, subset_by_index: tuple[int, int] | None) -> Any:
    """By eigenvalues: singular values are their sizes, and signs go to Vh, zero being positive."""
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
    """Singular values of matrices, descending.

    Raises:
        ValueError: `x` has fewer than two axes.
    """
    return svd(matrices("svdvals", x)[0], compute_uv=False)
