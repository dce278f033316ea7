"""`tridiagonal`: a Hermitian matrix made tridiagonal by a unitary one, given by reflectors.

tridiagonal : f[*b, n, n] -> (f[*b, n, n], r[*b, n], r[*b, n - 1], f[*b, n - 1])        A = Q T Q^H
"""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, nondifferentiable
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.batching import batched_in_front
from corejax_linalg._base.eager import routine, stacked, workspace
from corejax_linalg._base.types import like, real_of, square_type


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """The reduction of Hermitian matrices to real tridiagonal form.

    Args:
        a: Hermitian matrices, or symmetric real ones, `f[..., n, n]`.
        lower: which triangle of them counts.

    Returns:
        `(packed, d, e, taus)`: Householder's reflectors beyond the first sub- or superdiagonal of `packed`; the
        diagonal, `r[..., n]`, and the other diagonal, `r[..., n - 1]`; the reflectors' factors, `f[..., n - 1]`. Not
        differentiable.

    Raises:
        TypeError: `a` has fewer than two axes, or is of a dtype that LAPACK does not have.
        ValueError: its matrices are not square, or have no elements.
    """
    packed, d, e, taus = tridiagonal_p.bind(a, lower=flag("tridiagonal", "lower", lower))
    return packed, d, e, taus


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    batch, n = square_type("tridiagonal", "a", a)
    if not n:
        raise ValueError(f"tridiagonal: a has rows and columns, got {a.str_short()}")
    real = real_of(a.dtype)
    return [a, like((*batch, n), real, a), like((*batch, n - 1), real, a), like((*batch, n - 1), a.dtype, a)]


@stacked("tridiagonal", (2,), _abstract_eval)
def _impl(a: Any, *, lower: bool) -> Any:
    room = workspace("sytrd/hetrd", a.dtype, a.shape[-1], lower)
    packed, d, e, taus, _ = routine("sytrd/hetrd", a.dtype)(a, lower=lower, lwork=room)
    return [packed, d, e, taus]


tridiagonal_p = Primitive(
    "tridiagonal",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    doc="The reduction of Hermitian matrices to tridiagonal form, and its reflectors. Params: lower.",
)
jvp_rules.register(
    tridiagonal_p, nondifferentiable("the reduction to tridiagonal form has no derivative here; eigh has one")
)
batched_in_front(tridiagonal_p)

__all__ = ["tridiagonal", "tridiagonal_p"]
