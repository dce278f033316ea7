"""`schur`: a matrix made triangular by a unitary one, or, of real ones, triangular in blocks of one and two rows.

schur : f[*b, n, n] -> (f[*b, n, n], f[*b, n, n])        A = Q T Q^H
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, nondifferentiable
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.batching import batched_in_front
from corejax_linalg._base.eager import check, no_convergence, routine, stacked
from corejax_linalg._base.types import square_type


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Any:
    """The Schur decomposition: `x = q @ t @ q^H`.

    Args:
        x: matrices, `f[..., n, n]`.
        compute_schur_vectors: whether `q` is wanted.
        sort_eig_vals: there is no sorting.
        select_callable: what would sort.

    Returns:
        `(t, q)`, or `t` alone in a list. Not differentiable. NaN where the iteration does not converge (an error in
        eager mode with `config.linalg_errors`).

    Raises:
        TypeError: `x` has fewer than two axes, or is of a dtype that LAPACK does not have.
        ValueError: its matrices are not square.
        NotImplementedError: sorting is asked for.
    """
    if flag("schur", "sort_eig_vals", sort_eig_vals) or select_callable is not None:
        raise NotImplementedError("schur: eigenvalues are not sorted; leave sort_eig_vals and select_callable out")
    return tuple(schur_p.bind(x, compute_schur_vectors=flag("schur", "compute_schur_vectors", compute_schur_vectors)))


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray, *, compute_schur_vectors: bool) -> list[ShapedArray]:
    square_type("schur", "x", x)
    return [x, x] if compute_schur_vectors else [x]


@stacked("schur", (2,), _abstract_eval)
def _impl(a: Any, *, compute_schur_vectors: bool) -> Any:
    def unsorted(*eigenvalue: Any) -> None:
        return None

    run = routine("gees", a.dtype)
    room = int(run(unsorted, a, lwork=-1)[-2][0].real)
    triangle, _, *_, vectors, _, info = run(unsorted, a, compute_v=compute_schur_vectors, lwork=room, sort_t=0)
    check(info, no_convergence)
    return [triangle, vectors] if compute_schur_vectors else [triangle]


schur_p = Primitive(
    "schur",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    doc="The Schur decomposition of square matrices. Params: compute_schur_vectors.",
)
jvp_rules.register(schur_p, nondifferentiable("the Schur decomposition has no derivative here; eigh and eig have one"))
batched_in_front(schur_p)

__all__ = ["schur", "schur_p"]
