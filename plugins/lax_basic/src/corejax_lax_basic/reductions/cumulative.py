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

from corejax.extend import Primitive, get_aval, jvp_rules
from corejax_lax_basic._base.derivatives import Derivative, linear
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic._base.type_rules import ANY, FLOAT, NUMERIC
from corejax_lax_basic.creation.filled import full_like
from corejax_lax_basic.elementwise.arithmetic import add, max, min, mul, neg, sub
from corejax_lax_basic.elementwise.comparison import eq, ge, ne
from corejax_lax_basic.elementwise.logical import bitwise_and
from corejax_lax_basic.elementwise.select import select
from corejax_lax_basic.elementwise.unary import exp, log1p, logistic
from corejax_lax_basic.reductions._family import ADD, MAXIMUM, MINIMUM, MULTIPLY, Fold, cumulative, least
from corejax_lax_basic.reductions.associative_scan import associative_scan

__all__: list[str] = []  # rows bring their own names

# -- derivatives: the tangents combined along with the elements ----------------------------------------------------

Pair = tuple[Any, Any]


def _pairs(combine: Callable[[Pair, Pair], Pair]) -> Derivative:
    """The derivative of prefixes, given how (element, tangent) pairs are combined."""

    def register(primitive: Primitive) -> None:
        def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
            (x,), (t,) = primals, tangents
            if t is None:
                return primitive.bind(x, axis=axis, reverse=reverse), None
            out, moved = associative_scan(combine, (x, t), reverse, axis)
            if get_aval(x).dtype in NARROW_FLOATS:  # which are accumulated in wider ones
                out = primitive.bind(x, axis=axis, reverse=reverse)
            return out, moved

        jvp.__name__ = f"{primitive.name}_jvp"
        jvp_rules.register(primitive, jvp, symbolic_zeros=True)

    return register


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


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of arrays of one shape, without overflow; infinities of one sign are themselves."""
    gap = sub(x, y)
    undefined = ne(gap, gap)  # NaN, or infinities of one sign
    gap = select(undefined, full_like(gap, 0), gap)  # so that no derivative of the branch not taken is NaN
    first = ge(gap, full_like(gap, 0))
    # As the larger one and log1p(exp(-|gap|)), both kinks bent to one side: equal operands are no special case.
    smooth = add(select(first, x, y), log1p(exp(select(first, neg(gap), gap))))
    return select(undefined, add(x, y), smooth)


def _logsumexp_rule(left: Pair, right: Pair) -> Pair:
    (x, s), (y, t) = left, right
    return logaddexp(x, y), add(mul(_share(x, y), s), mul(_share(y, x), t))


def _share(x: Any, y: Any) -> Any:
    """Part of the sum of exponentials of `x` and `y` that `x` is; all of it for each of equal infinities."""
    gap = sub(x, y)
    both_infinite = bitwise_and(eq(x, y), ne(gap, gap))
    return logistic(select(both_infinite, full_like(gap, np.inf), gap))


# -- primitives ----------------------------------------------------------------------------------------------------

cumsum, cumsum_p = cumulative(
    "cumsum", ADD, NUMERIC,
    linear(lambda ct, x, *, axis, reverse: [cumsum(ct, axis, not reverse)]),
    "Sums of the elements so far; integer, floating-point or complex. 16-bit floats are accumulated in float32.",
    linear_in=(0,),
)  # fmt: skip

cumprod, cumprod_p = cumulative(
    "cumprod", MULTIPLY, NUMERIC, _pairs(_product_rule),
    "Products of the elements so far; integer, floating-point or complex. 16-bit floats are accumulated in float32.",
)  # fmt: skip

cummax, cummax_p = cumulative(
    "cummax", MAXIMUM, ANY, _pairs(_extremum_rule(max)),
    "The greatest of the elements so far, NaN from the first one on; any dtype. Ties share the derivative.",
)  # fmt: skip

cummin, cummin_p = cumulative(
    "cummin", MINIMUM, ANY, _pairs(_extremum_rule(min)),
    "The least of the elements so far, NaN from the first one on; any dtype. Ties share the derivative.",
)  # fmt: skip

cumlogsumexp, cumlogsumexp_p = cumulative(
    "cumlogsumexp", Fold(np.logaddexp, None, least, wide=True), FLOAT, _pairs(_logsumexp_rule),
    "Logarithms of the sums of the exponentials so far, without overflow; floating-point.",
)  # fmt: skip
