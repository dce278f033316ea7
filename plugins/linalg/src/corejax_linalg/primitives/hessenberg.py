"""`hessenberg`: a matrix made zero below its first subdiagonal by a unitary one, given by reflectors.

hessenberg : f[*b, n, n] -> (f[*b, n, n], f[*b, n - 1])        A = Q H Q^H
"""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, nondifferentiable
from corejax_linalg._base.batching import batched_in_front
from corejax_linalg._base.eager import routine, stacked, workspace
from corejax_linalg._base.types import like, square_type


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The reduction of square matrices to Hessenberg form.

    Args:
        a: matrices, `f[..., n, n]`.

    Returns:
        `(h, taus)`: the Hessenberg matrix in the upper triangle of `h` and its first subdiagonal, with Householder's
        reflectors below that; their factors, `f[..., n - 1]`. Not differentiable.

    Raises:
        TypeError: `a` has fewer than two axes, or is of a dtype that LAPACK does not have.
        ValueError: its matrices are not square, or have no elements.
    """
    packed, taus = hessenberg_p.bind(a)
    return packed, taus


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(a: ShapedArray) -> list[ShapedArray]:
    batch, n = square_type("hessenberg", "a", a)
    if not n:
        raise ValueError(f"hessenberg: a has rows and columns, got {a.str_short()}")
    return [a, like((*batch, n - 1), a.dtype, a)]


@stacked("hessenberg", (2,), _abstract_eval)
def _impl(a: Any) -> Any:
    packed, taus, _ = routine("gehrd", a.dtype)(a, lwork=workspace("gehrd", a.dtype, a.shape[-1]))
    return [packed, taus[: a.shape[-1] - 1]]


hessenberg_p = Primitive(
    "hessenberg",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    doc="The reduction of square matrices to Hessenberg form, and its reflectors.",
)
jvp_rules.register(
    hessenberg_p, nondifferentiable("the reduction to Hessenberg form has no derivative here; eigh and eig have one")
)
batched_in_front(hessenberg_p)

__all__ = ["hessenberg", "hessenberg_p"]
