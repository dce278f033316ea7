"""`tridiagonal_solve`: solve equations with a tridiagonal matrix.

    tridiagonal_solve : f[*b, n] -> f[*b, n] -> f[*b, n] -> f[*b, n, k] -o f[*b, n, k]        A X = B

With A X = B: A dX = dB - dA X.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    add_tangents,
    impl_rules,
    instantiate,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
)
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.eager import check, routine, stacked
from corejax_linalg._base.types import check_alike, like, stack_type


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """Solve linear equations with tridiagonal matrices.

    Args:
        dl: the diagonal below the main diagonal, `f[..., n]`; element `i` is in row `i`, and the first is ignored.
        d: the main diagonal, `f[..., n]`.
        du: the diagonal above the main diagonal, `f[..., n]`; the last element is ignored.
        b: right-hand sides, `f[..., n, k]`.
        perturb_singular: whether pivots that are nearly zero are replaced by small numbers, so that the solution is
            finite, as inverse iteration needs it.

    Returns:
        The solutions x, of the type of `b`; NaN for singular matrices (an error in eager mode with
        `config.linalg_errors`).

    Raises:
        TypeError: dtypes or shapes differ, or LAPACK does not support the dtype.
    """
    return tridiagonal_solve_p.bind(
        dl, d, du, b, perturb_singular=flag("tridiagonal_solve", "perturb_singular", perturb_singular)
    )


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> ShapedArray:
    name = "tridiagonal_solve"
    stack_type(name, "d", d, 1)
    stack_type(name, "b", b)
    check_alike(name, [("d", d, 1), ("dl", dl, 1), ("du", du, 1), ("b", b, 2)])
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise TypeError(
            f"{name}: the diagonals must have one shape [..., n], and b [..., n, k]; got dl {dl.str_short()}, "
            f"d {d.str_short()}, du {du.str_short()} and b {b.str_short()}"
        )
    return like(b.shape, b.dtype, dl, d, du, b)


def _impl(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    if perturb_singular:  # only the kernel of compiled programs supports it
        return impl_rules.derived(tridiagonal_solve_p)(dl, d, du, b, perturb_singular=True)
    return _solved(dl, d, du, b, perturb_singular=False)


@stacked("tridiagonal_solve", (1, 1, 1, 2), _abstract_eval)
def _solved(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    if d.shape[0] == 1:
        check(int(d[0] == 0), _singular)
        return b / d[0]
    *_, out, info = routine("gtsv", b.dtype)(dl[1:], d, du[:-1], b)
    check(info, _singular)
    return out


def _singular(info: int) -> str:
    return f"singular (pivot {info - 1} of its elimination is 0)"


def _jvp(primals: Any, tangents: Any, *, perturb_singular: bool) -> Any:
    diagonals = primals[:-1]
    *changes, rhs = tangents
    x = tridiagonal_solve_p.bind(*primals, perturb_singular=perturb_singular)
    if any(t is not None for t in changes):
        dl, d, du = (instantiate(t, p) for t, p in zip(changes, diagonals, strict=True))
        rhs = add_tangents(rhs, lax.neg(_product(dl, d, du, x)))
    return x, tridiagonal_solve_p.bind(*diagonals, rhs, perturb_singular=perturb_singular)


def _product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """Multiply a tridiagonal matrix by `x`."""

    def times(diagonal: Any, x: Any) -> Any:
        return lax.mul(lax.broadcast_to(mat.as_columns(diagonal), x.shape), x)

    return lax.add(times(d, x), lax.add(times(dl, _shifted(x, 1)), times(du, _shifted(x, -1))))


def _shifted(x: Any, by: int) -> Any:
    """Shift rows down (up if negative), and fill with zeros."""
    widths = [(0, 0, 0)] * x.ndim
    widths[-2] = (by, -by, 0)
    return lax.pad(x, mat.constant(x, 0), widths)


def _transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> list[Any]:
    below = mat.as_columns(du), 1
    above = mat.as_columns(dl), -1
    dl, du = (lax.squeeze(_shifted(*each), (ct.ndim - 1,)) for each in (below, above))
    return [None, None, None, tridiagonal_solve_p.bind(dl, d, du, ct, perturb_singular=perturb_singular)]


def _vmap(axis_size: int, vals: Any, dims: Any, *, perturb_singular: bool) -> Any:
    *diagonals, b = vals
    if any(d is not None for d in dims[:-1]):
        moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
        return tridiagonal_solve_p.bind(*moved, perturb_singular=perturb_singular), 0
    # The batch shares one matrix: make the right-hand sides columns of one array.
    place = b.ndim - 2
    b = move_batch_axis(axis_size, dims[-1], place, b)
    flat = lax.reshape(b, (*b.shape[:place], b.shape[place] * b.shape[place + 1]))
    out = tridiagonal_solve_p.bind(*diagonals, flat, perturb_singular=perturb_singular)
    return lax.reshape(out, b.shape), place


tridiagonal_solve_p = Primitive(
    "tridiagonal_solve",
    linear_in=(3,),
    impl=_impl,
    abstract_eval=_abstract_eval,
    doc="The solutions of linear equations with tridiagonal matrices. Params: perturb_singular.",
)
jvp_rules.register(tridiagonal_solve_p, _jvp, symbolic_zeros=True)
transpose_rules.register(tridiagonal_solve_p, _transpose)
vmap_rules.register(tridiagonal_solve_p, _vmap)
