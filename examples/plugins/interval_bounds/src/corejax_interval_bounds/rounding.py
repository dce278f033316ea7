"""Outward rounding: bounds that hold although floating-point operations round.

Policy. With `rounding="outward"` every rule moves its bounds apart by what the operation may have been rounded by,
in the bound and in the program: then the bounds contain the exact result of the operation on any numbers within the
operands' bounds, and what any implementation computes for them whose error is not above

    1 ulp      + - * / sqrt, conversions; 2 ulp for each factor of a power or a product of many
    8 ulp      exp, log, tanh, ... (for sin, cos and tan also 8 times the spacing of numbers next to 1)
    n/2 ulp    of the sum of absolute values, for sums of n terms in any order

Values that depend on no interval are what the program computes. Operations that do not round (max, abs, comparisons,
moving elements about) are not widened. Underflow is not counted: what is below the smallest normal number is taken
for zero, so that signs and exact zeros stay. Integers are taken not to overflow.

With `rounding="nearest"` bounds are what rounding to nearest makes of them: cheaper, and for monotone functions
exactly the function's values at the ends, but only right to within rounding errors.

NaN in both bounds says that nothing is known: a function is not defined on all of its operand, or an infinite bound
met a zero factor.
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
    """How the rules that run now round."""
    return _state.rounding


@contextmanager
def rounded(rounding: Rounding) -> Iterator[None]:
    """Run rules with this rounding in a `with` block."""
    earlier = _state.rounding
    _state.rounding = rounding
    try:
        yield
    finally:
        _state.rounding = earlier


def constant(value: Any, like: Any) -> Any:
    """A number as a scalar of an array's dtype; weakly typed, so that it leaves the array's type as it is."""
    dtype = get_aval(like).dtype
    return Array(np.asarray(value, dtype), ShapedArray((), dtype, weak_type=True))


def widens(bounds: Bounds) -> bool:
    """Whether results of this type are to be moved apart."""
    return _state.rounding == "outward" and dtypes.is_float(get_aval(bounds.lower).dtype)


def outward(bounds: Bounds, ulps: float, absolute: float = 0.0) -> Bounds:
    """Bounds moved apart by so many units in the last place, and by `absolute` times the spacing next to 1.

    Exact zeros, signs and NaN stay. A lower bound that overflowed becomes the largest finite number.
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
    """Bounds of sums moved apart by what adding up may have lost.

    Args:
        bounds: of the sums.
        magnitude: largest sums of absolute values of the terms.
        terms: how many there are in each sum.
        positive, negative: sums that have no negative, no positive terms; these keep their sign.

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
