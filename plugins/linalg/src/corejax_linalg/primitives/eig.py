"""`eig`: eigenvalues and eigenvectors of general square matrices.

    eig : f[*b, n, n] -> (c[*b, n], c[*b, n, n], c[*b, n, n])        A V = V diag(w), U^H A = diag(w) U^H

The derivative is that of distinct eigenvalues: M. Giles, "An extended collection of matrix derivative results for
forward and reverse mode" (2008), section 3.1: dw = diag(P) and dV = V (F o P + diag(c)), P = V^-1 dA V. LAPACK's
eigenvectors have the norm 1 and a real component of largest magnitude, which is what determines c.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.messages import warn_user
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import enumerated, flag
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import check, no_convergence, require_finite, routine, stacked, workspace
from corejax_linalg._base.types import complex_of, like, square_type
from corejax_linalg.primitives.solving import solve_by_lu


class EigImplementation(enum.Enum):
    """Libraries for the eigenvalues of general matrices; CPUs support `LAPACK`, the default."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Compute eigenvalues and eigenvectors of square matrices.

    The results satisfy `x @ vr = vr * w` and `vl^H @ x = w[:, None] * vl^H`.

    Args:
        x: matrices, `f[..., n, n]`.
        compute_left_eigenvectors: whether `vl` is computed.
        compute_right_eigenvectors: whether `vr` is computed.
        enable_eigvec_derivs: whether eigenvectors may be differentiated. Eigenvectors have norm 1 and a real component
            of largest magnitude. If two components are equally large, or eigenvalues coincide, derivatives are wrong.
        implementation: the library.
        use_magma: deprecated; selects `EigImplementation.MAGMA`.

    Returns:
        `[w, vl, vr]`, without the vectors that are not computed: eigenvalues in no particular order, `c[..., n]`, and
        vectors in the columns, `c[..., n, n]`. The results are NaN if the iteration does not converge (an error in
        eager mode with `config.linalg_errors`).

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the matrices are not square.
        NotImplementedError: the platform does not support the library, or eigenvectors are differentiated without
            `enable_eigvec_derivs`.
    """
    if use_magma is not None:
        warn_user("eig: use_magma is deprecated; pass implementation=EigImplementation.MAGMA", DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return list(
        eig_p.bind(
            x,
            compute_left_eigenvectors=flag("eig", "compute_left_eigenvectors", compute_left_eigenvectors),
            compute_right_eigenvectors=flag("eig", "compute_right_eigenvectors", compute_right_eigenvectors),
            enable_eigvec_derivs=flag("eig", "enable_eigvec_derivs", enable_eigvec_derivs),
            implementation=enumerated("eig", "implementation", implementation, EigImplementation),
        )
    )


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(
    x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **params: Any
) -> list[ShapedArray]:
    batch, n = square_type("eig", "x", x)
    dtype = complex_of(x.dtype)
    vectors = like(x.shape, dtype, x)
    return [like((*batch, n), dtype, x), *[vectors] * (compute_left_eigenvectors + compute_right_eigenvectors)]


@stacked("eig", (2,), _abstract_eval)
def _impl(
    a: Any,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    implementation: Any = None,
    **params: Any,
) -> Any:
    check_implementation(implementation, "cpu")
    require_finite(a)
    wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
    room = workspace("geev", a.dtype, a.shape[-1], *wanted)
    *values, left, right, info = routine("geev", a.dtype)(a, *wanted, lwork=room)
    check(info, no_convergence)
    if a.dtype.kind == "c":
        return [values[0], *([left] if wanted[0] else []), *([right] if wanted[1] else [])]
    w = np.empty(values[0].shape, complex_of(a.dtype))
    w.real, w.imag = values
    return [w, *(_unpacked(w, v) for v, is_wanted in zip((left, right), wanted, strict=True) if is_wanted)]


def check_implementation(implementation: EigImplementation | None, platform: str) -> None:
    """Raise NotImplementedError if a platform does not support a library.

    Raises:
        NotImplementedError: the platform does not support the library.
    """
    if implementation not in (None, EigImplementation.LAPACK):
        raise NotImplementedError(f"eig: {platform} does not support the implementation {implementation}; leave it out")


def _unpacked(w: Any, v: Any) -> Any:
    """Return complex eigenvectors; for a conjugate pair, LAPACK stores the real and the imaginary part as columns."""
    out = v.astype(w.dtype)
    first = np.flatnonzero(w.imag > 0)
    if first.size:
        out[:, first] = v[:, first] + 1j * v[:, first + 1]
        out[:, first + 1] = out[:, first].conj()
    return out


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x,), (dx,) = primals, tangents
    left, right = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]
    if (left or right) and not params["enable_eigvec_derivs"]:
        raise NotImplementedError(
            "eig: derivatives of eigenvectors are right only if eigenvalues are distinct and no eigenvector has two "
            "components of largest magnitude, which is not checked. If that holds, pass enable_eigvec_derivs=True "
            "to corejax.lax.linalg.eig; if only eigenvalues are needed, use corejax.numpy.linalg.eigvals"
        )
    # The eigenvalues' tangents do not depend on the norm and phase of the vectors, so higher derivatives are allowed.
    allowed = params["enable_eigvec_derivs"] or not (left or right)
    w, *vectors = eig_p.bind(x, **{**params, "compute_right_eigenvectors": True, "enable_eigvec_derivs": allowed})
    if not x.size:
        return [w, *vectors[: left + right]], [None] * (1 + left + right)
    dx = lax.convert_element_type(dx, w.dtype)
    moved = solve_by_lu(vectors[-1], mat.matmul(dx, vectors[-1]))
    dw = mat.diagonal(moved)
    tangents_out = []
    if left:
        adjoint = solve_by_lu(vectors[0], mat.matmul(mat.adjoint(dx), vectors[0]))
        tangents_out.append(_vector_tangent(lax.conj(w), vectors[0], adjoint))
    if right:
        tangents_out.append(_vector_tangent(w, vectors[-1], moved))
    return [w, *(vectors if right else vectors[:-1])], [dw, *tangents_out]


def _vector_tangent(w: Any, v: Any, moved: Any) -> Any:
    """Return `dv_j = u_j + c_j v_j`, where u_j comes from perturbation theory and c_j preserves norm and phase."""
    change = mat.matmul(v, lax.mul(mat.reciprocal_differences(w), moved))
    axis = v.ndim - 2
    largest = lax.expand_dims(lax.argmax(lax.abs(v), axis, np.int32), (axis,))
    is_largest = lax.eq(lax.broadcasted_iota(np.int32, v.shape, axis), lax.broadcast_to(largest, v.shape))
    there = lax.convert_element_type(is_largest, v.dtype)
    along = lax.real(lax.reduce_sum(lax.mul(lax.conj(v), change), (axis,)))
    turned = lax.imag(lax.reduce_sum(lax.mul(there, change), (axis,)))
    size = lax.real(lax.reduce_sum(lax.mul(there, v), (axis,)))
    kept = lax.complex(lax.neg(along), lax.neg(lax.div(turned, size)))
    return lax.add(change, mat.times_columns(v, kept))


eig_p = of_stacks(
    "eig",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    jvp=_jvp,
    doc="Eigenvalues, left and right eigenvectors of square matrices. "
    "Params: compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs, implementation.",
)
