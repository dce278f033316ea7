"""Interval rules of functions of one operand, and of operations that only move or compare elements."""

from __future__ import annotations

from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import (
    clipped,
    constant,
    increasing,
    magnitudes,
    outward,
    unknown_where,
)
from corejax_lax_basic import lax

# These operations are exact, so that nothing is widened.
increasing(lax.sign_p, lax.floor_p, lax.ceil_p, lax.round_p, lax.max_p, lax.min_p, lax.clamp_p, lax.stop_gradient_p)
increasing(
    lax.broadcast_in_dim_p,
    lax.concatenate_p,
    lax.pad_p,
    lax.reshape_p,
    lax.rev_p,
    lax.slice_p,
    lax.split_p,
    lax.squeeze_p,
    lax.stack_p,
    lax.tile_p,
    lax.transpose_p,
    lax.unstack_p,
)
increasing(lax.asinh_p, lax.atan_p, lax.cbrt_p, lax.exp_p, lax.sinh_p, ulps=8)


@interval_rules.register(lax.neg_p)
def neg_interval(x: Bounds) -> Bounds:
    """Negate and swap the bounds."""
    return Bounds(lax.neg(x.upper), lax.neg(x.lower))


@interval_rules.register(lax.abs_p)
def abs_interval(x: Bounds) -> Bounds:
    """Return the bounds of the absolute value; the lower bound is 0 where the operand may be 0."""
    return magnitudes(x)


@interval_rules.register(lax.expm1_p)
def expm1_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, above -1."""
    out = outward(Bounds(lax.expm1(x.lower), lax.expm1(x.upper)), 8)
    return Bounds(lax.max(out.lower, constant(-1, out.lower)), out.upper)


@interval_rules.register(lax.tanh_p)
def tanh_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, between -1 and 1."""
    return clipped(outward(Bounds(lax.tanh(x.lower), lax.tanh(x.upper)), 8), -1, 1)


@interval_rules.register(lax.erf_p)
def erf_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, between -1 and 1."""
    return clipped(outward(Bounds(lax.erf(x.lower), lax.erf(x.upper)), 8), -1, 1)


@interval_rules.register(lax.logistic_p)
def logistic_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, between 0 and 1."""
    return clipped(outward(Bounds(lax.logistic(x.lower), lax.logistic(x.upper)), 8), 0, 1)


@interval_rules.register(lax.log_p, ulps=8)
def log_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, defined for x >= 0."""
    return unknown_where(lax.lt(x.lower, constant(0, x.lower)), Bounds(lax.log(x.lower), lax.log(x.upper)))


@interval_rules.register(lax.log1p_p, ulps=8)
def log1p_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, defined for x >= -1."""
    return unknown_where(lax.lt(x.lower, constant(-1, x.lower)), Bounds(lax.log1p(x.lower), lax.log1p(x.upper)))


@interval_rules.register(lax.sqrt_p, ulps=1)
def sqrt_interval(x: Bounds) -> Bounds:
    """Apply the function to both bounds: increasing, defined for x >= 0."""
    return unknown_where(lax.lt(x.lower, constant(0, x.lower)), Bounds(lax.sqrt(x.lower), lax.sqrt(x.upper)))


@interval_rules.register(lax.rsqrt_p, ulps=4)
def rsqrt_interval(x: Bounds) -> Bounds:
    """Apply the function to the swapped bounds: decreasing, defined for x >= 0, infinite at 0."""
    return unknown_where(lax.lt(x.lower, constant(0, x.lower)), Bounds(lax.rsqrt(x.upper), lax.rsqrt(x.lower)))


@interval_rules.register(lax.is_finite_p)
def is_finite_interval(x: Bounds) -> Bounds:
    """Return True where both bounds are finite, False where both are the same infinity, else undecided."""
    surely_not = lax.bitwise_and(lax.eq(x.lower, x.upper), lax.bitwise_not(lax.is_finite(x.lower)))
    return Bounds(lax.bitwise_and(lax.is_finite(x.lower), lax.is_finite(x.upper)), lax.bitwise_not(surely_not))
