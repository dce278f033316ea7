"""Cumulative reductions along an axis: cumsum cumprod cummax cummin cumlogsumexp.

    cumsum : a[*s] -> a[*s]        element i is the sum of the elements up to i

Shape, dtype and weak type are the operand's: integers wrap around, nothing is widened. With `reverse` element i is the
reduction of the elements from i to the end. Each function raises TypeError for dtypes not named, ValueError for an axis
that the operand does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, deflinear, get_aval, jvp_rules, vmap_rules
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axis
from corejax_lax_basic._base.narrow_floats import through_float32
from corejax_lax_basic._base.type_rules import ANY, FLOAT, NUMERIC, Kinds, check_kind
from corejax_lax_basic.creation.filled import full_like
from corejax_lax_basic.elementwise.arithmetic import add, max, min, mul, neg, sub
from corejax_lax_basic.elementwise.comparison import eq, ge, ne
from corejax_lax_basic.elementwise.logical import bitwise_and
from corejax_lax_basic.elementwise.select import select
from corejax_lax_basic.elementwise.unary import exp, log1p, logistic
from corejax_lax_basic.reductions.associative_scan import associative_scan

# -- functions ---------------------------------------------------------------------------------------------------


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Sums of the elements so far; integer, floating-point or complex. 16-bit floats are accumulated in float32."""
    return cumsum_p.bind(operand, axis=_along("cumsum", operand, axis), reverse=bool(reverse))


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Products of the elements so far; integer, floating-point or complex. 16-bit floats are accumulated in float32."""
    return cumprod_p.bind(operand, axis=_along("cumprod", operand, axis), reverse=bool(reverse))


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The greatest of the elements so far, NaN from the first one on; any dtype. Ties share the derivative."""
    return cummax_p.bind(operand, axis=_along("cummax", operand, axis), reverse=bool(reverse))


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The least of the elements so far, NaN from the first one on; any dtype. Ties share the derivative."""
    return cummin_p.bind(operand, axis=_along("cummin", operand, axis), reverse=bool(reverse))


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Logarithms of the sums of the exponentials so far, without overflow; floating-point."""
    return cumlogsumexp_p.bind(operand, axis=_along("cumlogsumexp", operand, axis), reverse=bool(reverse))


def _along(name: str, x: Any, axis: int) -> int:
    return canonical_axis(axis, get_aval(x).ndim, f"{name}: axis")


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of arrays of one shape, without overflow; infinities of one sign are themselves."""
    gap = sub(x, y)
    first = ge(gap, full_like(gap, 0))
    # As the larger one and log1p(exp(-|gap|)), both kinks bent to one side: equal operands are no special case.
    smooth = add(select(first, x, y), log1p(exp(select(first, neg(gap), gap))))
    return select(ne(gap, gap), add(x, y), smooth)


# -- rules -------------------------------------------------------------------------------------------------------


def _accumulated(ufunc: np.ufunc) -> Callable[..., Any]:
    def impl(x: Any, *, axis: int, reverse: bool) -> Any:
        way = (slice(None),) * axis + (slice(None, None, -1 if reverse else None),)
        return ufunc.accumulate(x[way], axis=axis, dtype=x.dtype)[way]

    return impl


def _typed(name: str, accepts: Kinds) -> Callable[..., ShapedArray]:
    @takes(name, 1)
    def abstract_eval(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(name, x, accepts)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{name}: {x.str_short()} has no axis {axis}")
        return x

    return abstract_eval


def _cumulative(
    name: str, ufunc: np.ufunc, accepts: Kinds, function: Callable[..., Any], linear_in: tuple[int, ...] = ()
) -> Primitive:
    """The primitive of a NumPy ufunc's `accumulate`; `function` has the documentation."""
    impl = _accumulated(ufunc)
    primitive = Primitive(
        name,
        impl=impl if name in ("cummax", "cummin") else through_float32(impl),
        abstract_eval=_typed(name, accepts),
        linear_in=linear_in,
        doc=function.__doc__,
    )

    def vmap(axis_size: int, vals: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        return primitive.bind(vals[0], axis=axis + (axis >= dims[0]), reverse=reverse), dims[0]

    vmap.__name__ = f"{name}_vmap"
    vmap_rules.register(primitive, vmap)
    return primitive


# fmt: off
cumsum_p       = _cumulative("cumsum",       np.add,       NUMERIC, cumsum, linear_in=(0,))
cumprod_p      = _cumulative("cumprod",      np.multiply,  NUMERIC, cumprod)
cummax_p       = _cumulative("cummax",       np.maximum,   ANY,     cummax)
cummin_p       = _cumulative("cummin",       np.minimum,   ANY,     cummin)
cumlogsumexp_p = _cumulative("cumlogsumexp", np.logaddexp, FLOAT,   cumlogsumexp)
# fmt: on

# -- derivatives: the tangents combined along with the elements ----------------------------------------------------

Pair = tuple[Any, Any]


def _product_rule(left: Pair, right: Pair) -> Pair:
    (x, s), (y, t) = left, right
    return mul(x, y), add(mul(s, y), mul(x, t))


def _extremum_rule(combine: Callable[[Any, Any], Any]) -> Callable[[Pair, Pair], Pair]:
    def rule(left: Pair, right: Pair) -> Pair:
        (x, s), (y, t) = left, right
        out = combine(x, y)
        half = np.asarray(0.5, get_aval(s).dtype)[()]
        return out, select(eq(x, y), mul(add(s, t), half), select(eq(x, out), s, t))

    return rule


def _logsumexp_rule(left: Pair, right: Pair) -> Pair:
    (x, s), (y, t) = left, right
    return logaddexp(x, y), add(mul(_share(x, y), s), mul(_share(y, x), t))


def _share(x: Any, y: Any) -> Any:
    """Part of the sum of exponentials of `x` and `y` that `x` is; all of it for each of equal infinities."""
    gap = sub(x, y)
    both_infinite = bitwise_and(eq(x, y), ne(gap, gap))
    return logistic(select(both_infinite, full_like(gap, np.inf), gap))


def _defpairs(primitive: Primitive, rule: Callable[[Pair, Pair], Pair]) -> None:
    def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = primitive.bind(x, axis=axis, reverse=reverse)
        return out, None if t is None else associative_scan(rule, (x, t), reverse, axis)[1]

    jvp.__name__ = f"{primitive.name}_jvp"
    jvp_rules.register(primitive, jvp, symbolic_zeros=True)


deflinear(cumsum_p, lambda ct, x, *, axis, reverse: [cumsum(ct, axis, not reverse)])
_defpairs(cumprod_p, _product_rule)
_defpairs(cummax_p, _extremum_rule(max))
_defpairs(cummin_p, _extremum_rule(min))
_defpairs(cumlogsumexp_p, _logsumexp_rule)
