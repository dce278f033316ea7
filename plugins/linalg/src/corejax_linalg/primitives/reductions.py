"""`schur`, `hessenberg`, `tridiagonal`: reduce a matrix to a simpler one by a unitary similarity. Not differentiable.

    schur : f[*b, n, n] -> (f[*b, n, n], f[*b, n, n])        A = Q T Q^H, T triangular (block triangular if A is real)
    hessenberg : f[*b, n, n] -> (f[*b, n, n], f[*b, n - 1])        A = Q H Q^H, H zero below its first subdiagonal
    tridiagonal : f[*b, n, n] -> (f[*b, n, n], r[*b, n], r[*b, n - 1], f[*b, n - 1])        A = Q T Q^H, A Hermitian

Blocks of T have one or two rows. `hessenberg` and `tridiagonal` return Q as reflectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import ShapedArray, nondifferentiable
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import check, no_convergence, routine, stacked, workspace
from corejax_linalg._base.types import like, real_of, square_type


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Any:
    """Compute the Schur decomposition: `x = q @ t @ q^H`.

    Args:
        x: matrices, `f[..., n, n]`.
        compute_schur_vectors: whether `q` is computed.
        sort_eig_vals: must be False; sorting is not supported.
        select_callable: must be None; sorting is not supported.

    Returns:
        `(t, q)`, or `(t,)`. Not differentiable. The results are NaN if the iteration does not converge (an error in
        eager mode with `config.linalg_errors`).

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the matrices are not square.
        NotImplementedError: sorting is requested.
    """
    if flag("schur", "sort_eig_vals", sort_eig_vals) or select_callable is not None:
        raise NotImplementedError(
            "schur: sorting eigenvalues is not supported; leave out sort_eig_vals and select_callable"
        )
    return tuple(schur_p.bind(x, compute_schur_vectors=flag("schur", "compute_schur_vectors", compute_schur_vectors)))


def _schur_type(x: ShapedArray, *, compute_schur_vectors: bool) -> list[ShapedArray]:
    square_type("schur", "x", x)
    return [x, x] if compute_schur_vectors else [x]


@stacked("schur", (2,), _schur_type)
def _schur(a: Any, *, compute_schur_vectors: bool) -> Any:
    def unsorted(*eigenvalue: Any) -> None:
        return None

    run = routine("gees", a.dtype)
    room = int(run(unsorted, a, lwork=-1)[-2][0].real)
    triangle, _, *_, vectors, _, info = run(unsorted, a, compute_v=compute_schur_vectors, lwork=room, sort_t=0)
    check(info, no_convergence)
    return [triangle, vectors] if compute_schur_vectors else [triangle]


schur_p = of_stacks(
    "schur",
    multiple_results=True,
    impl=_schur,
    abstract_eval=_schur_type,
    jvp=nondifferentiable("the derivative of the Schur decomposition is not implemented; use eigh or eig"),
    doc="The Schur decomposition of square matrices. Params: compute_schur_vectors.",
)


def hessenberg(a: Any) -> tuple[Any, Any]:
    """Reduce square matrices to Hessenberg form.

    Args:
        a: matrices, `f[..., n, n]`.

    Returns:
        `(h, taus)`: `h` has the Hessenberg matrix in its upper triangle and first subdiagonal, and Householder
        reflectors below. `taus` has the reflectors' factors, `f[..., n - 1]`. Not differentiable.

    Raises:
        TypeError: `a` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the matrices are not square, or have no elements.
    """
    packed, taus = hessenberg_p.bind(a)
    return packed, taus


def _hessenberg_type(a: ShapedArray) -> list[ShapedArray]:
    batch, n = square_type("hessenberg", "a", a)
    if not n:
        raise ValueError(f"hessenberg: a must have rows and columns, got {a.str_short()}")
    return [a, like((*batch, n - 1), a.dtype, a)]


@stacked("hessenberg", (2,), _hessenberg_type)
def _hessenberg(a: Any) -> Any:
    packed, taus, _ = routine("gehrd", a.dtype)(a, lwork=workspace("gehrd", a.dtype, a.shape[-1]))
    return [packed, taus[: a.shape[-1] - 1]]


hessenberg_p = of_stacks(
    "hessenberg",
    multiple_results=True,
    impl=_hessenberg,
    abstract_eval=_hessenberg_type,
    jvp=nondifferentiable("the derivative of the reduction to Hessenberg form is not implemented; use eigh or eig"),
    doc="The reduction of square matrices to Hessenberg form, and its reflectors.",
)


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """Reduce Hermitian matrices to real tridiagonal form.

    Args:
        a: Hermitian matrices, or symmetric real ones, `f[..., n, n]`.
        lower: whether the lower or the upper triangle of `a` is used.

    Returns:
        `(packed, d, e, taus)`: `packed` has Householder reflectors beyond its first sub- or superdiagonal. `d` is the
        diagonal, `r[..., n]`, and `e` the other diagonal, `r[..., n - 1]`. `taus` has the reflectors' factors,
        `f[..., n - 1]`. Not differentiable.

    Raises:
        TypeError: `a` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the matrices are not square, or have no elements.
    """
    packed, d, e, taus = tridiagonal_p.bind(a, lower=flag("tridiagonal", "lower", lower))
    return packed, d, e, taus


def _tridiagonal_type(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    batch, n = square_type("tridiagonal", "a", a)
    if not n:
        raise ValueError(f"tridiagonal: a must have rows and columns, got {a.str_short()}")
    real = real_of(a.dtype)
    return [a, like((*batch, n), real, a), like((*batch, n - 1), real, a), like((*batch, n - 1), a.dtype, a)]


@stacked("tridiagonal", (2,), _tridiagonal_type)
def _tridiagonal(a: Any, *, lower: bool) -> Any:
    room = workspace("sytrd/hetrd", a.dtype, a.shape[-1], lower)
    packed, d, e, taus, _ = routine("sytrd/hetrd", a.dtype)(a, lower=lower, lwork=room)
    return [packed, d, e, taus]


tridiagonal_p = of_stacks(
    "tridiagonal",
    multiple_results=True,
    impl=_tridiagonal,
    abstract_eval=_tridiagonal_type,
    jvp=nondifferentiable("the derivative of the reduction to tridiagonal form is not implemented; use eigh"),
    doc="The reduction of Hermitian matrices to tridiagonal form, and its reflectors. Params: lower.",
)
