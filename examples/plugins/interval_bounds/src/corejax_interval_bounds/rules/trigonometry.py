"""Sine, cosine and tangent: monotone but for their extrema and poles."""

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
    """Whether `first + k * period` is between the bounds for some integer k, or may be for all that rounding hides."""
    dtype = get_aval(x.lower).dtype
    doubt = 4 * float(dtypes.finfo(dtype).eps)
    lower, upper = (
        lax.sub(lax.mul(b, constant(1 / period, b)), constant(first / period, b)) for b in (x.lower, x.upper)
    )
    one, factor = constant(1, lower), constant(doubt, lower)
    lower = lax.sub(lower, lax.mul(lax.add(lax.abs(lower), one), factor))
    upper = lax.add(upper, lax.mul(lax.add(lax.abs(upper), one), factor))
    # Written so that bounds that are infinite, for which ceil - floor says nothing, count as meeting.
    return lax.bitwise_not(lax.gt(lax.ceil(lower), lax.floor(upper)))


def _wave(x: Bounds, function: Any, peak: float) -> Bounds:
    """Bounds of a function of period 2 pi between -1 and 1, largest at `peak`."""
    ends = outward(hull(function(x.lower), function(x.upper)), 8, absolute=8)
    one = constant(1, ends.lower)
    lower = lax.select(_meets(x, peak + math.pi, 2 * math.pi), lax.neg(one), ends.lower)
    upper = lax.select(_meets(x, peak, 2 * math.pi), one, ends.upper)
    return clipped(_known(x, Bounds(lower, upper)), -1, 1)


def _known(x: Bounds, out: Bounds) -> Bounds:
    """NaN where the operand is."""
    return unknown_where(lax.bitwise_or(is_nan(x.lower), is_nan(x.upper)), out)


@interval_rules.register(lax.sin_p)
def sin_interval(x: Bounds) -> Bounds:
    """The ends, and the extrema between them."""
    return _wave(x, lax.sin, math.pi / 2)


@interval_rules.register(lax.cos_p)
def cos_interval(x: Bounds) -> Bounds:
    """The ends, and the extrema between them."""
    return _wave(x, lax.cos, 0.0)


@interval_rules.register(lax.tan_p)
def tan_interval(x: Bounds) -> Bounds:
    """Increasing between its poles; no bounds across one."""
    pole = _meets(x, math.pi / 2, math.pi)
    safe = Bounds(*(lax.select(pole, constant(0, b), b) for b in x))
    ends = outward(Bounds(lax.tan(safe.lower), lax.tan(safe.upper)), 8, absolute=8)
    lower = lax.select(pole, least(ends.lower), ends.lower)
    return _known(x, Bounds(lower, lax.select(pole, greatest(ends.upper), ends.upper)))
