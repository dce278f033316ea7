"""Interval rules of cumulative reductions."""

from __future__ import annotations

from typing import Any

from corejax.extend import get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rounding import outward_sum, widens
from corejax_interval_bounds.rules.arithmetic import times
from corejax_interval_bounds.rules.common import constant, increasing, magnitudes, outward
from corejax_lax_basic import lax

increasing(lax.cummax_p, lax.cummin_p)


@interval_rules.register(lax.cumsum_p)
def cumsum_interval(x: Bounds, **params: Any) -> Bounds:
    """Sum the bounds, and widen them by the rounding errors of the longest sum."""
    out = Bounds(*(lax.cumsum_p.bind(b, **params) for b in x))
    terms = get_aval(x.lower).shape[params["axis"]]
    if not widens(out) or terms <= 1:
        return out
    magnitude = lax.cumsum_p.bind(magnitudes(x).upper, **params)
    zero = constant(0, x.lower)
    positive = lax.ge(lax.cummin_p.bind(x.lower, **params), zero)
    negative = lax.le(lax.cummax_p.bind(x.upper, **params), zero)
    return outward_sum(out, magnitude, terms, positive, negative)


@interval_rules.register(lax.cumprod_p)
def cumprod_interval(x: Bounds, *, axis: int, reverse: bool) -> Bounds:
    """Multiply intervals by a parallel scan, and widen by the rounding errors of the products."""
    terms = get_aval(x.lower).shape[axis]
    if not terms:
        return x

    def combined(a: Any, b: Any) -> tuple[Any, Any]:
        return tuple(times(Bounds(*a), Bounds(*b)))

    out = Bounds(*lax.associative_scan(combined, tuple(x), reverse=reverse, axis=axis))
    return outward(out, 2 * terms) if terms > 1 else out


@interval_rules.register(lax.cumlogsumexp_p)
def cumlogsumexp_interval(x: Bounds, **params: Any) -> Bounds:
    """Apply the primitive to both bounds, because it is increasing; each step rounds an exponential and a logarithm."""
    out = Bounds(*(lax.cumlogsumexp_p.bind(b, **params) for b in x))
    terms = get_aval(x.lower).shape[params["axis"]]
    return outward(out, 8 * terms, 8 * terms) if terms > 1 else out
