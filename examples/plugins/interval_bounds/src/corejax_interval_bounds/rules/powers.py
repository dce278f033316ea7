"""Interval rules of powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant, ends, greatest, hull, is_float, least, magnitudes, outward
from corejax_lax_basic import lax


@interval_rules.register(lax.integer_pow_p)
def integer_pow_interval(x: Bounds, *, y: int) -> Bounds:
    """Bound an integer power.

    Odd powers increase, even powers increase with the magnitude, and negative powers are inverses.
    """
    size = abs(y)
    base = magnitudes(x) if size % 2 == 0 else x
    out = outward(Bounds(lax.integer_pow(base.lower, size), lax.integer_pow(base.upper, size)), 2 * max(size - 1, 0))
    if y >= 0:
        return out
    zero = constant(0, out.lower)
    through_zero = lax.bitwise_and(lax.le(out.lower, zero), lax.ge(out.upper, zero))
    lower, upper = (lax.div(constant(1, b), lax.select(through_zero, constant(1, b), b)) for b in out)
    # 1/0 from above is the largest value. Even powers are positive, so that they reach 0 only from above.
    lowest = least(lower) if size % 2 else lax.div(constant(1, out.upper), out.upper)
    lower, upper = (
        lax.select(through_zero, lowest, upper),
        lax.select(through_zero, greatest(upper), lower),
    )
    return outward(Bounds(lower, upper), 1)


@interval_rules.register(lax.pow_p)
def pow_interval(x: Bounds, y: Bounds) -> Bounds:
    """Bound a power by its values at all pairs of bounds.

    For a base that may be negative, the power is defined only for known integral exponents.
    """
    if not is_float(x):
        return _integer_power(x, y)
    zero = constant(0, x.lower)
    base = Bounds(lax.max(x.lower, zero), lax.max(x.upper, zero))
    out = outward(hull(*(lax.pow(a, b) for a in base for b in ends(y))), 8)
    negative = lax.bitwise_not(lax.ge(x.lower, zero))  # or NaN
    signed = _signed_power(x, y) if y.is_point else Bounds(*(constant(np.nan, b) for b in out))
    return Bounds(lax.select(negative, signed.lower, out.lower), lax.select(negative, signed.upper, out.upper))


def _signed_power(x: Bounds, y: Bounds) -> Bounds:
    """Bound powers of any base with a known exponent; NaN where the exponent is not an integer."""
    exponent = y.lower
    if dtypes.is_integer(get_aval(exponent).dtype):
        exponent = lax.convert_element_type(exponent, get_aval(x.lower).dtype)
    size = magnitudes(x)
    powers = outward(hull(*(lax.pow(a, exponent) for a in size)), 8)
    two = constant(2, exponent)
    even = lax.eq(lax.rem(exponent, two), constant(0, exponent))
    integral = lax.eq(lax.floor(exponent), exponent)
    # An odd power is bounded by plus and minus the largest magnitude, which is simple but not tight.
    lower = lax.select(even, powers.lower, lax.neg(powers.upper))
    nan = constant(np.nan, lower)
    return Bounds(lax.select(integral, lower, nan), lax.select(integral, powers.upper, nan))


def _integer_power(x: Bounds, y: Bounds) -> Bounds:
    """Bound powers of integers; if a base or exponent may be negative, by plus and minus the largest magnitude."""
    zero, one = constant(0, y.lower), constant(1, x.lower)
    exponents = [lax.max(b, zero) for b in y]
    largest: Any = lax.max(lax.pow(magnitudes(x).upper, exponents[1]), one)
    plain = lax.bitwise_and(lax.ge(x.lower, constant(0, x.lower)), lax.ge(y.lower, zero))
    corners = hull(*(lax.pow(lax.max(a, constant(0, a)), b) for a in x for b in exponents))
    return Bounds(lax.select(plain, corners.lower, lax.neg(largest)), lax.select(plain, corners.upper, largest))
