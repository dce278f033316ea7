"""`eigh`: eigenvalues and eigenvectors of Hermitian matrices.

    eigh : f[*b, n, n] -> (f[*b, n, n], r[*b, n])        A V = V diag(w), w ascending

The derivative is first-order perturbation theory for distinct eigenvalues: M. Giles, "An extended collection of matrix
derivative results for forward and reverse mode" (2008), section 3.1: dw = diag(V^H dA V), dV = V (F o V^H dA V) with
F_ij = 1 / (w_j - w_i). The eigenvectors' phase is the one for which V^H dV has a zero diagonal.
"""

from __future__ import annotations

import enum
from typing import Any

from corejax.extend import ShapedArray, dtypes, get_aval
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import enumerated, flag, subset
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import check, no_convergence, routine, stacked
from corejax_linalg._base.types import like, real_of, square_type


class EighImplementation(enum.Enum):
    """Algorithms for the eigenvalues of Hermitian matrices; CPUs support `QR`, the default."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Compute eigenvalues and eigenvectors of Hermitian matrices: `x @ v = v * w`.

    Args:
        x: Hermitian matrices, or symmetric real ones, `f[..., n, n]`.
        lower: whether the lower or the upper triangle is used if `symmetrize_input` is False.
        symmetrize_input: whether `(x + x^H) / 2` is decomposed.
        sort_eigenvalues: whether eigenvalues must ascend; they always do.
        subset_by_index: `(start, stop)`: return only the eigenvalues with these indices.
        implementation: the algorithm.

    Returns:
        `(v, w)`: eigenvectors in the columns of `v`, `f[..., n, d]`, and real, ascending eigenvalues, `r[..., d]`.
        Derivatives assume distinct eigenvalues, and are infinite or NaN otherwise. The results are NaN if the iteration
        does not converge (an error in eager mode with `config.linalg_errors`).

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the matrices are not square, or the indices are out of range.
        NotImplementedError: the platform does not support the implementation.
    """
    v, w = eigh_p.bind(
        x,
        lower=flag("eigh", "lower", lower),
        symmetrize_input=flag("eigh", "symmetrize_input", symmetrize_input),
        algorithm=enumerated("eigh", "implementation", implementation, EighImplementation),
    )
    if subset_by_index is None:
        return v, w
    start, stop = subset("eigh", subset_by_index, get_aval(w).shape[-1])
    return mat.columns_of(v, start, stop), lax.slice_in_dim(w, start, stop, axis=w.ndim - 1)


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray, **params: Any) -> list[ShapedArray]:
    batch, n = square_type("eigh", "x", x)
    return [x, like((*batch, n), real_of(x.dtype), x)]


@stacked("eigh", (2,), _abstract_eval)
def _impl(a: Any, *, lower: bool, symmetrize_input: bool = False, algorithm: Any = None) -> Any:
    check_implementation(algorithm, "cpu")
    if symmetrize_input:
        a = (a + a.conj().T) * a.real.dtype.type(0.5)
    w, v, info = routine("syevd/heevd", a.dtype)(a, compute_v=1, lower=lower)
    check(info, no_convergence)
    return v, w


def check_implementation(algorithm: EighImplementation | None, platform: str) -> None:
    """Raise NotImplementedError if a platform does not support an algorithm.

    Raises:
        NotImplementedError: the platform does not support the algorithm.
    """
    if algorithm == EighImplementation.QDWH or (algorithm == EighImplementation.JACOBI and platform == "cpu"):
        raise NotImplementedError(f"eigh: {platform} does not support the implementation {algorithm}; leave it out")


def _jvp(primals: Any, tangents: Any, *, lower: bool, symmetrize_input: bool = False, algorithm: Any = None) -> Any:
    (x,), (dx,) = primals, tangents
    v, w = eigh_p.bind(x, lower=lower, symmetrize_input=symmetrize_input, algorithm=algorithm)
    dx = mat.symmetrize(dx) if symmetrize_input else mat.from_triangle(dx, lower)
    moved = mat.matmul(mat.matmul(mat.adjoint(v), dx), v)
    differences = mat.reciprocal_differences(w)
    is_complex = dtypes.is_complex(v.dtype)
    if is_complex:
        differences = lax.convert_element_type(differences, v.dtype)
    dw = mat.diagonal(lax.real(moved) if is_complex else moved)
    return [v, w], [mat.matmul(v, lax.mul(differences, moved)), dw]


eigh_p = of_stacks(
    "eigh",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    jvp=_jvp,
    doc="Eigenvectors and eigenvalues of Hermitian matrices. Params: lower, symmetrize_input, algorithm.",
)
