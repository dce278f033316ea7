"""Interval rules of reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rounding import outward_sum, widens
from corejax_interval_bounds.rules.arithmetic import times
from corejax_interval_bounds.rules.common import constant, increasing, is_float, is_nan, magnitudes, outward
from corejax_lax_basic import lax

increasing(lax.reduce_max_p, lax.reduce_min_p)


@interval_rules.register(lax.reduce_sum_p)
def reduce_sum_interval(x: Bounds, *, axes: tuple[int, ...]) -> Bounds:
    """Sum the bounds, and widen them by the rounding errors of the summation."""
    out = Bounds(*(lax.reduce_sum_p.bind(b, axes=axes) for b in x))
    terms = math.prod(get_aval(x.lower).shape[a] for a in axes)
    if not widens(out) or terms <= 1:
        return out
    magnitude = lax.reduce_sum_p.bind(magnitudes(x).upper, axes=axes)
    zero = constant(0, x.lower)
    positive = lax.reduce_and_p.bind(lax.ge(x.lower, zero), axes=axes)
    negative = lax.reduce_and_p.bind(lax.le(x.upper, zero), axes=axes)
    return outward_sum(out, magnitude, terms, positive, negative)


@interval_rules.register(lax.reduce_prod_p)
def reduce_prod_interval(x: Bounds, *, axes: tuple[int, ...]) -> Bounds:
    """Multiply the two halves until one element is left, and widen by the rounding errors of the products."""
    terms = math.prod(get_aval(x.lower).shape[a] for a in axes)
    for axis in axes:
        while (size := get_aval(x.lower).shape[axis]) > 1:
            half = size // 2
            first, second, rest = (
                Bounds(*(lax.slice_in_dim(b, start, stop, axis=axis) for b in x))
                for start, stop in ((0, half), (half, 2 * half), (2 * half, size))
            )
            pairs = zip(times(first, second), rest, strict=True)
            x = Bounds(*(lax.concatenate([p, r], dimension=axis) for p, r in pairs))
    out = Bounds(*(lax.reduce_prod_p.bind(b, axes=axes) for b in x))
    return outward(out, 2 * terms) if terms > 1 else out


def _extreme_index(primitive: Primitive, sign: Any) -> None:
    """Register the rule of `argmax` or `argmin`: bounds from the first to the last possible index."""

    def rule(x: Bounds, *, axes: tuple[int, ...], index_dtype: Any) -> Bounds:
        x = sign(x)
        (axis,) = axes
        shape = get_aval(x.lower).shape
        others = tuple(i for i in range(len(shape)) if i != axis)
        best = lax.reduce_max_p.bind(x.lower, axes=axes)
        possible = lax.ge(x.upper, lax.broadcast_in_dim(best, shape, others))
        if is_float(x):  # an unknown element may be the extreme or NaN, and a NaN is always chosen
            unknown = lax.bitwise_or(is_nan(x.lower), is_nan(x.upper))
            some = lax.reduce_or_p.bind(unknown, axes=axes)
            possible = lax.bitwise_or(possible, lax.broadcast_in_dim(some, shape, others))
        position = lax.broadcasted_iota(index_dtype, shape, axis)
        end = constant(np.asarray(shape[axis]), position)
        first = lax.reduce_min_p.bind(lax.select(possible, position, end), axes=axes)
        last = lax.reduce_max_p.bind(lax.select(possible, position, constant(0, position)), axes=axes)
        return Bounds(first, last)

    rule.__name__ = f"{primitive.name}_interval"
    interval_rules.register(primitive, rule)


_extreme_index(lax.argmax_p, lambda x: x)
_extreme_index(lax.argmin_p, lambda x: Bounds(*(_mirrored(b) for b in reversed(x))))


def _mirrored(x: Any) -> Any:
    """Reverse the order of the elements, by negation or, for integers, by complement, which does not overflow."""
    return lax.neg(x) if is_float(Bounds(x, x)) else lax.bitwise_not(x)
