"""`householder_product` and `ormqr`: the product of Householder reflectors, and products with it.

    householder_product : f[*b, m, n] -> f[*b, k] -> f[*b, m, n]        m >= n >= k
    ormqr : f[*b, m, k] -> f[*b, k] -> f[*b, m, n] -> f[*b, m, n]        Q C, Q^H C, C Q, C Q^H

Reflector `i` is H_i = 1 - tau_i v v^H, where v is 0 above row `i`, 1 in row `i`, and column `i` of the matrix below.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import ShapedArray, nondifferentiable
from corejax.extend.types import min_dim
from corejax_linalg._base.arguments import flag
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.eager import routine, stacked
from corejax_linalg._base.types import check_alike, like, stack_type


def householder_product(a: Any, taus: Any) -> Any:
    """Return the first columns of the product of Householder reflectors, `H_0 @ H_1 @ ...`.

    Args:
        a: reflectors in the columns, below the diagonal, `f[..., m, n]` with m >= n.
        taus: the reflectors' factors, `f[..., k]` with k <= n.

    Returns:
        The first n columns of the product, of the type of `a`.

    Raises:
        TypeError: the dtypes or batch axes differ, or LAPACK does not support the dtype.
        ValueError: there are more columns than rows, or more factors than columns.
    """
    return householder_product_p.bind(a, taus)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """Multiply by the product Q of Householder reflectors, without forming Q.

    Args:
        a: reflectors in the columns, below the diagonal, `f[..., m, k]`.
        taus: the reflectors' factors, `f[..., k]`.
        c: matrices, `f[..., m, n]`, or `f[..., n, m]` if not `left`.
        left: whether the product is `Q @ c` rather than `c @ Q`.
        transpose: whether to multiply by Q^H in place of Q.

    Returns:
        The product, of the type of `c`.

    Raises:
        TypeError: the dtypes or batch axes differ, or LAPACK does not support the dtype.
        ValueError: the sizes do not match.
    """
    return ormqr_p.bind(a, taus, c, left=flag("ormqr", "left", left), transpose=flag("ormqr", "transpose", transpose))


# -- rules -------------------------------------------------------------------------------------------------------

_REASON = "derivatives by reflectors are not implemented: differentiate corejax.lax.linalg.qr and multiply by its q"


def _product_type(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    name = "householder_product"
    _, (m, n) = stack_type(name, "a", a)
    _, (k,) = stack_type(name, "taus", taus, 1)
    check_alike(name, [("a", a, 2), ("taus", taus, 1)])
    if min_dim(k, n) != k or min_dim(n, m) != n:
        raise ValueError(
            f"{name}: a must have shape [..., m, n] with m >= n, and taus [..., k] with k <= n; "
            f"got a {a.str_short()} and taus {taus.str_short()}"
        )
    return like(a.shape, a.dtype, a, taus)


def _product_impl(a: Any, taus: Any) -> Any:
    if not taus.shape[-1]:  # without reflectors LAPACK would still read one
        out = a * 0
        diagonal = range(a.shape[-1])
        out[..., diagonal, diagonal] = 1
        return out
    return _product(a, taus)


def multiplied(a: Any, taus: Any) -> Any:
    """Return the first columns of the product of the reflectors of one matrix."""
    run = routine("orgqr/ungqr", a.dtype)
    room = int(run(a, taus, lwork=-1)[1][0].real)
    return run(a, taus, lwork=room)[0]


_product = stacked("householder_product", (2, 1), _product_type)(multiplied)


householder_product_p = of_stacks(
    "householder_product",
    impl=_product_impl,
    abstract_eval=_product_type,
    jvp=nondifferentiable(_REASON),
    doc="The first columns of the product of Householder reflectors.",
)


def _ormqr_type(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool) -> ShapedArray:
    name = "ormqr"
    _, (m, k) = stack_type(name, "a", a)
    _, (count,) = stack_type(name, "taus", taus, 1)
    _, sizes = stack_type(name, "c", c)
    check_alike(name, [("a", a, 2), ("taus", taus, 1), ("c", c, 2)])
    if count != k or not k <= m or sizes[0 if left else 1] != m:
        raise ValueError(
            f"{name}: a must have shape [..., m, k] with k <= m, taus [..., k], and with left={left} c must have m "
            f"{'rows' if left else 'columns'}; got a {a.str_short()}, taus {taus.str_short()} and c {c.str_short()}"
        )
    return like(c.shape, c.dtype, a, taus, c)


def _ormqr(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    return _multiplied(a, taus, c, left=left, transpose=transpose) if taus.shape[-1] else c


@stacked("ormqr", (2, 1, 2), _ormqr_type)
def _multiplied(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    adjoint = "C" if a.dtype.kind == "c" else "T"
    run = routine("ormqr/unmqr", a.dtype)
    sides = ("L" if left else "R", adjoint if transpose else "N")
    room = int(run(*sides, a, taus, c, -1)[1][0].real)
    return run(*sides, a, taus, c, room)[0]


ormqr_p = of_stacks(
    "ormqr",
    impl=_ormqr,
    abstract_eval=_ormqr_type,
    jvp=nondifferentiable(_REASON),
    doc="The product of a matrix with Householder reflectors. Params: left, transpose.",
)
