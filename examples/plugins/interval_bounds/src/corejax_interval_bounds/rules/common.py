"""Helper functions for rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, dtypes, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rounding import constant, outward
from corejax_lax_basic import lax


def increasing(*primitives: Primitive, ulps: float = 0) -> None:
    """Register the rule of primitives that increase in every operand, and so map lower bounds to lower bounds."""
    for primitive in primitives:

        def rule(*operands: Bounds, _primitive: Primitive = primitive, **params: Any) -> Any:
            lower = _primitive.bind(*(x.lower for x in operands), **params)
            upper = _primitive.bind(*(x.upper for x in operands), **params)
            if _primitive.multiple_results:
                return [Bounds(*ends) for ends in zip(lower, upper, strict=True)]
            return Bounds(lower, upper)

        rule.__name__ = f"{primitive.name}_interval"
        interval_rules.register(primitive, rule, ulps=ulps) if ulps else interval_rules.register(primitive, rule)


def ends(bounds: Bounds) -> tuple[Any, ...]:
    """Return both bounds, or the single value of a point."""
    return bounds[:1] if bounds.is_point else bounds


def is_float(bounds: Bounds) -> bool:
    """Return whether the operand has a floating-point dtype."""
    return bool(dtypes.is_float(get_aval(bounds.lower).dtype))


def is_bool(bounds: Bounds) -> bool:
    """Return whether the operand has dtype bool."""
    return bool(dtypes.is_bool(get_aval(bounds.lower).dtype))


def least(x: Any) -> Any:
    """Return the smallest value of an array's dtype, as a scalar."""
    dtype = get_aval(x).dtype
    return constant(-np.inf if dtypes.is_float(dtype) else dtypes.iinfo(dtype).min, x)


def greatest(x: Any) -> Any:
    """Return the largest value of an array's dtype, as a scalar."""
    dtype = get_aval(x).dtype
    return constant(np.inf if dtypes.is_float(dtype) else dtypes.iinfo(dtype).max, x)


def is_nan(x: Any) -> Any:
    """Return a mask of the elements that are NaN, that is, unknown."""
    return lax.ne(x, x)


def unknown_where(outside: Any, bounds: Bounds) -> Bounds:
    """Set both bounds to NaN where a function is not defined on the whole operand."""
    nan = constant(np.nan, bounds.lower)
    return Bounds(lax.select(outside, nan, bounds.lower), lax.select(outside, nan, bounds.upper))


def hull(*corners: Any) -> Bounds:
    """Return the bounds from the smallest to the largest of several arrays."""
    lower = upper = corners[0]
    for corner in corners[1:]:
        lower, upper = lax.min(lower, corner), lax.max(upper, corner)
    return Bounds(lower, upper)


def clipped(bounds: Bounds, low: float, high: float) -> Bounds:
    """Clip bounds to the function's range, which widening may have exceeded."""
    low, high = constant(low, bounds.lower), constant(high, bounds.lower)
    return Bounds(lax.clamp(low, bounds.lower, high), lax.clamp(low, bounds.upper, high))


def join(case: Bounds, other: Bounds, possible: Any) -> Bounds:
    """Return the bounds of `case`, extended to include `other` where `possible`."""
    lower = lax.select(possible, lax.min(case.lower, other.lower), case.lower)
    return Bounds(lower, lax.select(possible, lax.max(case.upper, other.upper), case.upper))


def magnitudes(x: Bounds) -> Bounds:
    """Return the bounds of the absolute value."""
    if dtypes.is_unsigned(get_aval(x.lower).dtype):
        return x
    zero = constant(0, x.lower)
    lower = lax.max(lax.max(x.lower, lax.neg(x.upper)), zero)
    return Bounds(lower, lax.max(lax.neg(x.lower), x.upper))


__all__ = [
    "clipped",
    "constant",
    "ends",
    "greatest",
    "hull",
    "increasing",
    "is_bool",
    "is_float",
    "is_nan",
    "join",
    "least",
    "magnitudes",
    "outward",
    "unknown_where",
]
