"""Cumulative reductions along an axis: cumsum cumprod cummax cummin cumlogsumexp.

    cumsum : a[*s] -> a[*s]        element i is the sum of the elements up to i

Shape, dtype and weak type are the operand's; integers wrap around. With `reverse`, element i is the reduction of the
elements from i to the end. Each function raises TypeError for dtypes that its docstring does not name, and ValueError
for an axis that the operand does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval, jvp_rules
from corejax_lax_basic._base.derivatives import Derivative, Function, linear
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

# Names that derivatives use before their rows define them, declared for type checkers.
cumsum: Function

# -- derivatives: tangents are combined together with the elements -------------------------------------------------

Pair = tuple[Any, Any]


def _pairs(combine: Callable[[Pair, Pair], Pair]) -> Derivative:
    """Return the derivative of prefixes, given the function that combines (element, tangent) pairs."""

    def register(primitive: Primitive) -> None:
        def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
            (x,), (t,) = primals, tangents
            if t is None:
                return primitive.bind(x, axis=axis, reverse=reverse), None
            out, tangent_out = associative_scan(combine, (x, t), reverse, axis)
            if get_aval(x).dtype in NARROW_FLOATS:  # the primitive accumulates these in float32
                out = primitive.bind(x, axis=axis, reverse=reverse)
            return out, tangent_out

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
    """Compute log(exp(x) + exp(y)) of arrays of one shape, without overflow; equal infinities give themselves."""
    gap = sub(x, y)
    undefined = ne(gap, gap)  # NaN, or infinities of one sign
    gap = select(undefined, full_like(gap, 0), gap)  # no NaN reaches the derivative of the branch not taken
    first = ge(gap, full_like(gap, 0))
    # The larger one plus log1p(exp(-|gap|)), with both kinks on one side, so that equal operands are no special case.
    smooth = add(select(first, x, y), log1p(exp(select(first, neg(gap), gap))))
    return select(undefined, add(x, y), smooth)


def _logsumexp_rule(left: Pair, right: Pair) -> Pair:
    (x, s), (y, t) = left, right
    return logaddexp(x, y), add(mul(_share(x, y), s), mul(_share(y, x), t))


def _share(x: Any, y: Any) -> Any:
    """Return the share of `x` in exp(x) + exp(y); it is 1 for each of equal infinities."""
    gap = sub(x, y)
    both_infinite = bitwise_and(eq(x, y), ne(gap, gap))
    return logistic(select(both_infinite, full_like(gap, np.inf), gap))


# -- primitives ----------------------------------------------------------------------------------------------------

cumsum, cumsum_p = cumulative(
    "cumsum", ADD, NUMERIC,
    linear(lambda ct, x, *, axis, reverse: [cumsum(ct, axis, not reverse)]),
    "Sum the elements so far; integer, floating-point or complex. 16-bit floats are accumulated in float32.",
    linear_in=(0,),
)  # fmt: skip

cumprod, cumprod_p = cumulative(
    "cumprod", MULTIPLY, NUMERIC, _pairs(_product_rule),
    "Multiply the elements so far; integer, floating-point or complex. 16-bit floats are accumulated in float32.",
)  # fmt: skip

cummax, cummax_p = cumulative(
    "cummax", MAXIMUM, ANY, _pairs(_extremum_rule(max)),
    "Return the maximum of the elements so far, NaN from the first NaN on; any dtype. Ties share the derivative.",
)  # fmt: skip

cummin, cummin_p = cumulative(
    "cummin", MINIMUM, ANY, _pairs(_extremum_rule(min)),
    "Return the minimum of the elements so far, NaN from the first NaN on; any dtype. Ties share the derivative.",
)  # fmt: skip

cumlogsumexp, cumlogsumexp_p = cumulative(
    "cumlogsumexp", Fold(np.logaddexp, None, least, wide=True), FLOAT, _pairs(_logsumexp_rule),
    "Compute the logarithm of the sum of the exponentials so far, without overflow; floating-point.",
)  # fmt: skip
