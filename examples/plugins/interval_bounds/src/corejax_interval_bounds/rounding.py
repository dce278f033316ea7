"""Outward rounding: bounds that hold in spite of rounding errors.

With `rounding="outward"` every rule widens its bounds by the possible rounding errors of the bound and of the program.
The bounds then contain the exact result of the operation on any numbers within the operands' bounds, and the result of
any implementation whose error is at most

    1 ulp      + - * / sqrt, conversions; 2 ulp for each factor of a power or a product of many
    8 ulp      exp, log, tanh, ... (for sin, cos and tan also 8 times the spacing of numbers next to 1)
    n/2 ulp    of the sum of absolute values, for sums of n terms in any order

Values that do not depend on an interval are computed by the program as usual. Exact operations (max, abs, comparisons,
data movement) are not widened. Underflow is ignored: numbers below the smallest normal number count as zero, so that
signs and exact zeros are kept. Integers are assumed not to overflow.

With `rounding="nearest"` bounds are rounded to nearest. This is cheaper, and for monotone functions the bounds are the
function's values at the ends, but they are correct only to within rounding errors.

NaN in both bounds means that nothing is known: a function is not defined on all of its operand, or an infinite bound
was multiplied by zero.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from corejax.extend import Array, ShapedArray, dtypes, get_aval
from corejax_interval_bounds.interval import Bounds
from corejax_lax_basic import lax

Rounding = Literal["outward", "nearest"]
ROUNDINGS: tuple[Rounding, ...] = ("outward", "nearest")


class _State(threading.local):
    rounding: Rounding = "outward"


_state = _State()


def current() -> Rounding:
    """Return the rounding mode of the rules that run now."""
    return _state.rounding


@contextmanager
def rounded(rounding: Rounding) -> Iterator[None]:
    """Set the rounding mode in a `with` block."""
    earlier = _state.rounding
    _state.rounding = rounding
    try:
        yield
    finally:
        _state.rounding = earlier


def constant(value: Any, like: Any) -> Any:
    """Return a number as a scalar of an array's dtype, weakly typed so that it does not change the array's type."""
    dtype = get_aval(like).dtype
    return Array(np.asarray(value, dtype), ShapedArray((), dtype, weak_type=True))


def widens(bounds: Bounds) -> bool:
    """Return whether bounds of this type are widened."""
    return _state.rounding == "outward" and dtypes.is_float(get_aval(bounds.lower).dtype)


def outward(bounds: Bounds, ulps: float, absolute: float = 0.0) -> Bounds:
    """Widen bounds by `ulps` units in the last place, and by `absolute` times the spacing of numbers next to 1.

    Exact zeros, signs and NaN are kept. A lower bound that overflowed becomes the largest finite number.
    """
    if not widens(bounds):
        return bounds
    info = dtypes.finfo(get_aval(bounds.lower).dtype)
    lower = lax.min(bounds.lower, constant(info.max, bounds.lower))
    upper = lax.max(bounds.upper, constant(-info.max, bounds.upper))
    factor = constant(float(info.eps) * ulps, lower)
    lower = lax.sub(lower, lax.mul(lax.abs(lower), factor))
    upper = lax.add(upper, lax.mul(lax.abs(upper), factor))
    if absolute:
        slack = constant(float(info.eps) * absolute, lower)
        lower, upper = lax.sub(lower, slack), lax.add(upper, slack)
    return Bounds(lower, upper)


def outward_sum(bounds: Bounds, magnitude: Any, terms: int, positive: Any = None, negative: Any = None) -> Bounds:
    """Widen bounds of sums by the possible rounding errors of the summation.

    Args:
        bounds: bounds of the sums.
        magnitude: largest sums of absolute values of the terms.
        terms: number of terms of each sum.
        positive: mask of the sums without negative terms, whose lower bound stays non-negative.
        negative: mask of the sums without positive terms, whose upper bound stays non-positive.

    Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2: an error of at most
    (n-1)u/(1-(n-1)u) times the sum of absolute values, whatever the order.
    """
    if not widens(bounds) or terms == 0:
        return bounds
    eps = float(dtypes.finfo(get_aval(bounds.lower).dtype).eps)
    slack = lax.mul(magnitude, constant((terms + 4) * eps, magnitude))
    lower, upper = lax.sub(bounds.lower, slack), lax.add(bounds.upper, slack)
    zero = constant(0, magnitude)
    if positive is not None:
        lower = lax.select(positive, lax.max(lower, zero), lower)
    if negative is not None:
        upper = lax.select(negative, lax.min(upper, zero), upper)
    return outward(Bounds(lower, upper), 2)
