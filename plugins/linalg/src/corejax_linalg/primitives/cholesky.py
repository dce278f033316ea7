"""`cholesky`: the lower triangular factor of a positive definite matrix.

    cholesky : f[*b, n, n] -> f[*b, n, n]        A = L L^H

The derivative is that of I. Murray, "Differentiation of the Cholesky decomposition" (2016), arXiv:1602.07527, equation
8: dL = L phi(L^-1 dA L^-H), where phi takes the lower triangle with half the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import FailureError, routine, stacked
from corejax_linalg._base.types import square_type
from corejax_linalg.primitives.triangular_solve import triangular_solve


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """Compute the Cholesky factor of positive definite matrices: `x = L @ L^H`.

    Args:
        x: Hermitian matrices, or symmetric real ones, `f[..., n, n]`.
        symmetrize_input: whether `(x + x^H) / 2` is factored; otherwise only the lower triangle is used.

    Returns:
        The lower triangular L, of the type of `x`; NaN if the matrix is not positive definite (an error in eager mode
        with `config.linalg_errors`).

    Raises:
        TypeError: `x` has fewer than two axes, or LAPACK does not support its dtype.
        ValueError: the matrices are not square.
    """
    return cholesky_p.bind(x, symmetrize_input=flag("cholesky", "symmetrize_input", symmetrize_input))


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray, *, symmetrize_input: bool = False) -> ShapedArray:
    square_type("cholesky", "x", x)
    return x


@stacked("cholesky", (2,), _abstract_eval)
def _impl(a: Any, *, symmetrize_input: bool = False) -> Any:
    if symmetrize_input:
        a = (a + a.conj().T) * a.real.dtype.type(0.5)
    # Rows in C's order are columns in Fortran's: the upper factor of the transpose is the transpose of the lower
    # factor.
    factor, info = routine("potrf", a.dtype)(a.T, lower=0, clean=1, overwrite_a=symmetrize_input)
    if info:
        reason = f"not positive definite (its leading minor of order {info} is not positive)"
        raise FailureError(reason, np.tril(np.full(a.shape, np.nan, a.dtype)))
    return factor.T


def _jvp(primals: Any, tangents: Any, *, symmetrize_input: bool = False) -> Any:
    (x,), (dx,) = primals, tangents
    factor = cholesky_p.bind(x, symmetrize_input=symmetrize_input)
    dx = mat.symmetrize(dx) if symmetrize_input else mat.from_triangle(dx, True)
    scaled = triangular_solve(factor, dx, lower=True, transpose_a=True, conjugate_a=True)
    scaled = triangular_solve(factor, scaled, left_side=True, lower=True)
    return factor, mat.matmul(factor, _half_below(scaled))


def _half_below(x: Any) -> Any:
    """Return the lower triangle with half the diagonal."""
    rows, columns = (lax.broadcasted_iota(x.dtype, x.shape[-2:], axis) for axis in (0, 1))
    weights = lax.mul(lax.add(lax.sign(lax.sub(rows, columns)), mat.constant(x, 1)), mat.constant(x, 0.5))
    return lax.mul(x, lax.broadcast_to(weights, x.shape))


cholesky_p = of_stacks(
    "cholesky",
    impl=_impl,
    abstract_eval=_abstract_eval,
    jvp=_jvp,
    doc="The lower Cholesky factor of positive definite matrices; NaN for others. Params: symmetrize_input.",
)
