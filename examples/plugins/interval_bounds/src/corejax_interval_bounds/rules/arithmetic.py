"""Interval rules of arithmetic."""

from __future__ import annotations

from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import (
    constant,
    ends,
    greatest,
    hull,
    increasing,
    is_float,
    is_nan,
    least,
    magnitudes,
)
from corejax_lax_basic import lax

increasing(lax.add_p, ulps=1)


@interval_rules.register(lax.sub_p, ulps=1)
def sub_interval(x: Bounds, y: Bounds) -> Bounds:
    """Subtract opposite bounds: increasing in the first operand, decreasing in the second."""
    return Bounds(lax.sub(x.lower, y.upper), lax.sub(x.upper, y.lower))


def times(x: Bounds, y: Bounds) -> Bounds:
    """Return the smallest and the largest product of bounds; NaN where one is 0 times inf."""
    return hull(*(lax.mul(a, b) for a in ends(x) for b in ends(y)))


@interval_rules.register(lax.mul_p, ulps=1)
def mul_interval(x: Bounds, y: Bounds) -> Bounds:
    """Multiply all pairs of bounds; the product of a value with itself is a square."""
    if x is y:
        size = magnitudes(x)
        return Bounds(lax.mul(size.lower, size.lower), lax.mul(size.upper, size.upper))
    return times(x, y)


@interval_rules.register(lax.div_p, ulps=1)
def div_interval(x: Bounds, y: Bounds) -> Bounds:
    """Divide all pairs of bounds; unbounded where the divisor may be 0 (for integers, the bounds of the dtype)."""
    zero = constant(0, y.lower)
    through_zero = lax.bitwise_and(lax.le(y.lower, zero), lax.ge(y.upper, zero))
    divisors = [lax.select(through_zero, constant(1, b), b) for b in ends(y)]
    corners = hull(*(lax.div(a, b) for a in ends(x) for b in divisors))
    lower = lax.select(through_zero, least(corners.lower), corners.lower)
    return Bounds(lower, lax.select(through_zero, greatest(corners.upper), corners.upper))


@interval_rules.register(lax.rem_p)
def rem_interval(x: Bounds, y: Bounds) -> Bounds:
    """Bound the remainder by the magnitudes of both operands, with the sign of the dividend.

    If the divisor may be 0, the remainder is NaN for floats, and the dividend for integers.
    """
    size = lax.min(magnitudes(x).upper, magnitudes(y).upper)
    zero = constant(0, size)
    if is_float(y):
        infinite = lax.bitwise_or(lax.eq(x.lower, least(x.lower)), lax.eq(x.upper, greatest(x.upper)))
        may_be_zero = lax.bitwise_and(lax.le(y.lower, zero), lax.ge(y.upper, zero))
        size = lax.select(lax.bitwise_or(infinite, may_be_zero), constant(float("nan"), size), size)
    else:  # the remainder by 0 is the dividend
        may_be_zero = lax.bitwise_and(lax.le(y.lower, zero), lax.ge(y.upper, zero))
        size = lax.select(may_be_zero, magnitudes(x).upper, size)
    known = lax.bitwise_not(is_nan(size)) if is_float(y) else lax.eq(size, size)
    lower = lax.select(lax.bitwise_and(known, lax.ge(x.lower, zero)), zero, lax.neg(size))
    return Bounds(lower, lax.select(lax.bitwise_and(known, lax.le(x.upper, zero)), zero, size))
