"""`corejax.experimental.sparse.linalg`: linear systems with sparse matrices, and a few eigenvalues."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax_sparse._base import JAXSparse
from corejax_sparse.matrices import CSR

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """Solve a linear system with a sparse matrix in compressed rows, by SciPy's sparse LU factors.

    The solution is differentiable with respect to the elements and the right-hand side, any number of times. Compiled
    programs call SciPy on the host.

    Args:
        data: the stored elements of a square matrix.
        indices: their columns.
        indptr: the position of the first element of each row, and after the last one.
        b: the right-hand side, a vector.
        tol: ignored; JAX's tolerance for CUDA.
        reorder: ignored; JAX's order of elimination for CUDA.

    Returns:
        The solution, infinite or NaN if the matrix is singular.

    Raises:
        TypeError: the elements and the right-hand side are not floating-point or complex numbers of one dtype.
        ValueError: the right-hand side is not a vector with an element for each row.
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    rows = indptr.shape[0] - 1
    if b.shape != (rows,):
        raise ValueError(f"spsolve: b must be a vector with {rows} elements, one for each row, got shape {b.shape}")
    if data.dtype != b.dtype or not jnp.issubdtype(b.dtype, jnp.inexact):
        raise TypeError(
            f"spsolve: the matrix and b must be floating-point or complex numbers of one dtype, got {data.dtype.name} "
            f"and {b.dtype.name}"
        )

    def times(x: Any) -> Any:
        return CSR((data, indices, indptr), shape=(rows, rows)) @ x

    def solve(transpose: bool) -> Callable[[Any, Any], Any]:
        def on_host(*arrays: Any) -> Any:
            return _scipy_solve([np.asarray(x) for x in arrays], transpose)

        result = corejax.ShapeDtypeStruct(b.shape, b.dtype)

        def solved(matvec: Any, b: Any) -> Any:
            parts = map(lax.stop_gradient, (data, indices, indptr))
            return corejax.pure_callback(on_host, result, *parts, b, vmap_method="sequential")

        return solved

    return lax.custom_linear_solve(times, b, solve(False), solve(True))


def _scipy_solve(arrays: Sequence[Any], transpose: bool) -> Any:
    # SciPy's submodules are slow to import, and most programs do not solve.
    sparse, linalg = map(importlib.import_module, ("scipy.sparse", "scipy.sparse.linalg"))
    data, indices, indptr, b = arrays
    # SuperLU has no 16-bit floats, and rejects arrays that are not writable.
    wide = np.result_type(data.dtype, np.float32)
    mat = sparse.csr_matrix((data.astype(wide), indices.copy(), indptr.copy()), shape=(b.size, b.size))
    solution = linalg.spsolve(mat.T.tocsc() if transpose else mat.tocsc(), b.astype(wide))
    return np.asarray(solution).astype(b.dtype)


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:
    """Compute the largest eigenvalues of a symmetric or Hermitian matrix and their eigenvectors, by LOBPCG.

    The method (Knyazev, SIAM J. Sci. Comput. 23, 2001) searches in the space of the current vectors, their residuals
    and the last directions. It has no derivatives.

    Args:
        A: a matrix of shape `(n, n)`, dense or sparse, or a function that multiplies a block of vectors by it.
        X: the first vectors, an array of shape `(n, k)` of linearly independent columns, with `0 < 5 * k < n`.
        m: the largest number of iterations.
        tol: an eigenvalue `w` with the vector `v` is accurate enough if the norm of `A v - w v` is below
            `10 * n * tol * (w + norm(A v))`. By default the dtype's `eps`.

    Returns:
        The eigenvalues, largest first, the eigenvectors as columns, and the number of iterations.

    Raises:
        ValueError: `k` is 0 or too large, or the shape or dtype of `A` does not fit.
    """
    X = jnp.asarray(X)
    if X.ndim != 2 or not 0 < 5 * X.shape[1] < X.shape[0]:
        raise ValueError(f"lobpcg_standard: X must have a shape (n, k) with 0 < 5 * k < n, got {X.shape}")
    n, k = X.shape
    if callable(A):
        apply = A
    else:
        matrix = A if isinstance(A, JAXSparse) else jnp.asarray(A)

        def apply(x: Any) -> Any:
            return matrix @ x

    image = corejax.eval_shape(apply, corejax.ShapeDtypeStruct((n, 1), X.dtype))
    if (image.shape, image.dtype) != ((n, 1), X.dtype):
        raise ValueError(
            f"lobpcg_standard: A maps vectors of shape {(n, 1)} and dtype {X.dtype.name} to shape {image.shape} and "
            f"dtype {image.dtype.name}: it must be a square matrix of the dtype of X"
        )
    eps = float(jnp.finfo(X.dtype).eps)
    limit = 10 * n * (eps if tol is None else tol)

    def residuals(w: Any, x: Any, image: Any) -> tuple[Any, Any]:
        """Return the residuals, and whether each eigenvalue is accurate enough."""
        r = image - w * x
        return r, jnp.linalg.norm(r, axis=0) < limit * (w + jnp.linalg.norm(image, axis=0))

    def step(state: Any) -> Any:
        i, w, x, image, last, _ = state
        r, _ = residuals(w, x, image)
        # The QR factors of dependent columns are orthonormal as well; they extend the space by other directions.
        basis, _ = jnp.linalg.qr(jnp.concatenate([x, r, last], 1))
        images = apply(basis)
        small = basis.conj().T @ images
        values, vectors = jnp.linalg.eigh((small + small.conj().T) / 2)
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
        x, image = basis @ vectors, images @ vectors
        # The first columns of the basis span the earlier vectors; the rest of the combination is the direction.
        direction = basis[:, k:] @ vectors[k:]
        return i + 1, values, x, image, direction, residuals(values, x, image)[1].all()

    x, _ = jnp.linalg.qr(X)
    image = apply(x)
    small = x.conj().T @ image
    w, vectors = jnp.linalg.eigh((small + small.conj().T) / 2)
    w, vectors = w[::-1], vectors[:, ::-1]
    x, image = x @ vectors, image @ vectors
    start = (0, w, x, image, jnp.zeros_like(x), residuals(w, x, image)[1].all())
    i, w, x, *_ = lax.while_loop(lambda state: ~state[-1] & (state[0] < m), step, start)
    return w, x, i
