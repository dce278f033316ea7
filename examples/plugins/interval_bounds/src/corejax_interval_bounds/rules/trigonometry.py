"""Interval rules of sine, cosine and tangent, which are monotone between their extrema or poles."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import dtypes, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import (
    clipped,
    constant,
    greatest,
    hull,
    is_nan,
    least,
    outward,
    unknown_where,
)
from corejax_lax_basic import lax


def _meets(x: Bounds, first: float, period: float) -> Any:
    """Return whether `first + k * period` may lie between the bounds for some integer k, up to rounding errors."""
    dtype = get_aval(x.lower).dtype
    doubt = 4 * float(dtypes.finfo(dtype).eps)
    lower, upper = (
        lax.sub(lax.mul(b, constant(1 / period, b)), constant(first / period, b)) for b in (x.lower, x.upper)
    )
    one, factor = constant(1, lower), constant(doubt, lower)
    lower = lax.sub(lower, lax.mul(lax.add(lax.abs(lower), one), factor))
    upper = lax.add(upper, lax.mul(lax.add(lax.abs(upper), one), factor))
    # The negated comparison is True for infinite bounds, for which ceil and floor give no information.
    return lax.bitwise_not(lax.gt(lax.ceil(lower), lax.floor(upper)))


def _wave(x: Bounds, function: Any, peak: float) -> Bounds:
    """Return bounds of a function with period 2 pi and range [-1, 1] that is largest at `peak`."""
    ends = outward(hull(function(x.lower), function(x.upper)), 8, absolute=8)
    one = constant(1, ends.lower)
    lower = lax.select(_meets(x, peak + math.pi, 2 * math.pi), lax.neg(one), ends.lower)
    upper = lax.select(_meets(x, peak, 2 * math.pi), one, ends.upper)
    return clipped(_known(x, Bounds(lower, upper)), -1, 1)


def _known(x: Bounds, out: Bounds) -> Bounds:
    """Set the result to NaN where the operand is NaN."""
    return unknown_where(lax.bitwise_or(is_nan(x.lower), is_nan(x.upper)), out)


@interval_rules.register(lax.sin_p)
def sin_interval(x: Bounds) -> Bounds:
    """Bound the sine by its values at the bounds and at the extrema between them."""
    return _wave(x, lax.sin, math.pi / 2)


@interval_rules.register(lax.cos_p)
def cos_interval(x: Bounds) -> Bounds:
    """Bound the cosine by its values at the bounds and at the extrema between them."""
    return _wave(x, lax.cos, 0.0)


@interval_rules.register(lax.tan_p)
def tan_interval(x: Bounds) -> Bounds:
    """Apply the tangent to both bounds, between which it is increasing; unbounded across a pole."""
    pole = _meets(x, math.pi / 2, math.pi)
    safe = Bounds(*(lax.select(pole, constant(0, b), b) for b in x))
    ends = outward(Bounds(lax.tan(safe.lower), lax.tan(safe.upper)), 8, absolute=8)
    lower = lax.select(pole, least(ends.lower), ends.lower)
    return _known(x, Bounds(lower, lax.select(pole, greatest(ends.upper), ends.upper)))
