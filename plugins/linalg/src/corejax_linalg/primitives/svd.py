"""`svd`: singular values and vectors.

    svd : f[*b, m, n] -> (r[*b, k], f[*b, m, k], f[*b, k, n])        A = U diag(s) V^H, k = min(m, n), s descending

The derivative is that for distinct singular values: M. Giles, "An extended collection of matrix derivative results for
forward and reverse mode" (2008), section 3.2, with terms for vectors outside of the ranges of U and V. For complex
matrices, U takes the phase that LAPACK leaves open.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax.extend.types import min_dim
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import array, enumerated, flag, subset
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import check, no_convergence, require_finite, routine, stacked, workspace
from corejax_linalg._base.types import like, real_of, stack_type


class SvdAlgorithm(enum.Enum):
    """Algorithms for singular values; CPUs support `DIVIDE_AND_CONQUER`, the default, and `QR`."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Compute the singular value decomposition: `x = u @ (s * vh)`.

    Args:
        x: matrices, `f[..., m, n]`. Below, k = min(m, n).
        full_matrices: whether `u` and `vh` are square, rather than of shapes `[..., m, k]` and `[..., k, n]`.
        compute_uv: whether singular vectors are computed.
        subset_by_index: `(start, stop)`: return only the singular values with these indices; requires
            `full_matrices=False`.
        algorithm: the algorithm; by default LAPACK's divide and conquer.

    Returns:
        `(u, s, vh)`, or only `s` without `compute_uv`. The singular values `s` are real and descending, `r[..., k]`.
        Derivatives assume distinct, nonzero singular values. The results are NaN if the iteration does not converge (an
        error in eager mode with `config.linalg_errors`).

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the indices are out of range, or are combined with `full_matrices`.
        NotImplementedError: the platform does not support the algorithm. In derivatives: full matrices that are not
            square, since vectors outside of the range are arbitrary.
    """
    aval = array("svd", x).aval
    stack_type("svd", "x", aval)  # check here, because the jvp rule does not check types
    k = min_dim(*aval.shape[-2:])
    start, stop = (0, k) if subset_by_index is None else subset("svd", subset_by_index, k)
    some = (start, stop) != (0, k)
    if some and full_matrices and compute_uv:
        raise ValueError(f"svd: subset_by_index={subset_by_index} requires full_matrices=False")
    params = {"algorithm": enumerated("svd", "algorithm", algorithm, SvdAlgorithm)}
    outs = svd_p.bind(
        x,
        full_matrices=flag("svd", "full_matrices", full_matrices),
        compute_uv=flag("svd", "compute_uv", compute_uv),
        **params,
    )
    s = lax.slice_in_dim(outs[0], start, stop, axis=outs[0].ndim - 1) if some else outs[0]
    if not compute_uv:
        return s
    _, u, vh = outs
    return (mat.columns_of(u, start, stop), s, mat.rows_of(vh, start, stop)) if some else (u, s, vh)


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray, *, full_matrices: bool, compute_uv: bool, **params: Any) -> list[ShapedArray]:
    batch, (m, n) = stack_type("svd", "x", x)
    k = min_dim(m, n)
    s = like((*batch, k), real_of(x.dtype), x)
    if not compute_uv:
        return [s]
    u, vh = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    return [s, like((*batch, *u), x.dtype, x), like((*batch, *vh), x.dtype, x)]


def _impl(x: Any, *, full_matrices: bool, compute_uv: bool, algorithm: Any = None) -> Any:
    if x.shape[-1] and x.shape[-2]:
        return _decomposed(x, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm)
    types = _abstract_eval(ShapedArray(x.shape, x.dtype), full_matrices=full_matrices, compute_uv=compute_uv)
    outs = [np.zeros(a.shape, a.dtype) for a in types]
    for vectors in outs[1:]:  # the vectors of a matrix without elements are an arbitrary basis
        vectors[...] = np.eye(*vectors.shape[-2:], dtype=x.dtype)
    return outs


@stacked("svd", (2,), _abstract_eval)
def _decomposed(a: Any, *, full_matrices: bool, compute_uv: bool, algorithm: Any = None) -> Any:
    name = driver(algorithm, "cpu")
    require_finite(a)
    room = workspace(name, a.dtype, *a.shape, compute_uv, full_matrices)
    u, s, vh, info = routine(name, a.dtype)(a, compute_uv=compute_uv, full_matrices=full_matrices, lwork=room)
    check(info, no_convergence)
    return [s, u, vh] if compute_uv else [s]


def driver(algorithm: SvdAlgorithm | None, platform: str) -> str:
    """Return the LAPACK routine of an algorithm.

    Raises:
        NotImplementedError: LAPACK does not have the algorithm.
    """
    if algorithm in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.DIVIDE_AND_CONQUER):
        return "gesdd"
    if algorithm == SvdAlgorithm.QR:
        return "gesvd"
    raise NotImplementedError(f"svd: {platform} does not support the algorithm {algorithm}; leave it out")


def _jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, algorithm: Any = None) -> Any:
    (x,), (dx,) = primals, tangents
    m, n = x.shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            f"svd: the vectors outside of the range of {x.aval.str_short()} are arbitrary and have no derivative; "
            "use full_matrices=False"
        )
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, algorithm=algorithm)
    uh, v = mat.adjoint(u), mat.adjoint(vh)
    moved = mat.matmul(mat.matmul(uh, dx), v)
    is_complex = dtypes.is_complex(x.dtype)
    ds = mat.diagonal(lax.real(moved) if is_complex else moved)
    if not compute_uv:
        return [s], [ds]
    du, dv = _vector_tangents(s, moved, is_complex)
    du, dv = mat.matmul(u, du), mat.matmul(v, dv)
    scale = lax.convert_element_type(lax.reciprocal(s), x.dtype)
    if min_dim(m, n) != m:
        beyond = mat.matmul(dx, v)
        du = lax.add(du, mat.times_columns(lax.sub(beyond, mat.matmul(u, mat.matmul(uh, beyond))), scale))
    if min_dim(m, n) != n:
        beyond = mat.matmul(mat.adjoint(dx), u)
        dv = lax.add(dv, mat.times_columns(lax.sub(beyond, mat.matmul(v, mat.matmul(vh, beyond))), scale))
    return [s, u, vh], [ds, du, mat.adjoint(dv)]


def _vector_tangents(s: Any, moved: Any, is_complex: bool) -> tuple[Any, Any]:
    """Return the coefficients of dU in U and of dV in V, given U^H dA V."""
    rows, columns = mat.pairwise(s)
    one = lax.broadcast_to(mat.eye(rows), rows.shape)
    gaps = lax.mul(lax.add(columns, rows), lax.sub(columns, rows))
    inverse = lax.sub(lax.reciprocal(lax.add(gaps, one)), one)
    if is_complex:
        rows, columns, inverse = (lax.convert_element_type(x, moved.dtype) for x in (rows, columns, inverse))
    right, left = lax.mul(columns, moved), lax.mul(rows, moved)
    du = lax.mul(inverse, lax.add(right, mat.adjoint(right)))
    dv = lax.mul(inverse, lax.add(left, mat.adjoint(left)))
    if is_complex:  # the phases: the imaginary part of the diagonal of U^H dA V
        turned = lax.mul(lax.sub(moved, mat.adjoint(moved)), mat.constant(moved, 0.5))
        du = lax.add(du, lax.div(lax.mul(turned, lax.convert_element_type(one, moved.dtype)), rows))
    return du, dv


svd_p = of_stacks(
    "svd",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    jvp=_jvp,
    doc="Singular values, left and right singular vectors. Params: full_matrices, compute_uv, algorithm.",
)
