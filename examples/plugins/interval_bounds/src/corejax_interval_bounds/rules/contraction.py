"""Interval rule of `dot_general`."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rounding import outward_sum, widens
from corejax_interval_bounds.rules.arithmetic import times
from corejax_interval_bounds.rules.common import constant, is_float, is_nan, magnitudes, outward, unknown_where
from corejax_interval_bounds.rules.conversion import convert_interval
from corejax_interval_bounds.rules.reductions import reduce_sum_interval
from corejax_lax_basic import lax


@interval_rules.register(lax.dot_general_p)
def dot_general_interval(x: Bounds, y: Bounds, **params: Any) -> Bounds:
    """Bound sums of products, tightly except for rounding.

    With a known operand, the bounds are chosen by its signs. With two intervals, an array of all products is created
    (batch, free and contracted axes), unless a compiler fuses it.
    """
    if x.is_point or y.is_point:
        return _with_known(x, y, params)
    return _product_by_product(x, y, params)


def _with_known(x: Bounds, y: Bounds, params: Any) -> Bounds:
    """Multiply by known weights: lower bounds come from lower bounds times positive, upper times negative weights."""

    def dot(weights: Any, values: Any) -> Any:
        return lax.dot_general_p.bind(*((weights, values) if x.is_point else (values, weights)), **params)

    weights, values = (x.lower, y) if x.is_point else (y.lower, x)
    zero = constant(0, weights)
    plus, minus = lax.max(weights, zero), lax.min(weights, zero)
    lower = lax.add(dot(plus, values.lower), dot(minus, values.upper))
    out = Bounds(lower, lax.add(dot(plus, values.upper), dot(minus, values.lower)))
    if widens(out):
        magnitude = dot(lax.abs(weights), magnitudes(values).upper)
        axes = params["dimension_numbers"][0][0]
        out = outward_sum(out, magnitude, 2 * math.prod(get_aval(x.lower).shape[a] for a in axes) + 1)
    if not is_float(out):
        return out
    # An infinite bound times a zero weight is NaN; both bounds are unknown there.
    return unknown_where(lax.bitwise_or(is_nan(out.lower), is_nan(out.upper)), out)


def _product_by_product(x: Bounds, y: Bounds, params: Any) -> Bounds:
    """Broadcast the operands to batch, free and contracted axes, multiply and sum."""
    (x_contract, y_contract), (x_batch, y_batch) = params["dimension_numbers"]
    element = params["preferred_element_type"]
    x_shape, y_shape = get_aval(x.lower).shape, get_aval(y.lower).shape
    x_free = [i for i in range(len(x_shape)) if i not in (*x_contract, *x_batch)]
    y_free = [i for i in range(len(y_shape)) if i not in (*y_contract, *y_batch)]
    batch, left, right = len(x_batch), len(x_free), len(y_free)
    shape = (
        *(x_shape[i] for i in (*x_batch, *x_free)),
        *(y_shape[i] for i in y_free),
        *(x_shape[i] for i in x_contract),
    )
    summed = tuple(range(batch + left + right, len(shape)))

    def spread(bounds: Bounds, order: list[int], places: list[int]) -> Bounds:
        bounds = convert_interval(bounds, new_dtype=element, weak_type=False)
        return Bounds(*(lax.broadcast_in_dim(lax.transpose(b, order), shape, places) for b in bounds))

    x_places = [*range(batch + left), *summed]
    y_places = [*range(batch), *range(batch + left, batch + left + right), *summed]
    products = times(
        spread(x, [*x_batch, *x_free, *x_contract], x_places),
        spread(y, [*y_batch, *y_free, *y_contract], y_places),
    )
    return reduce_sum_interval(outward(products, 1), axes=summed)
