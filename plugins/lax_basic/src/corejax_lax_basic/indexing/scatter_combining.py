"""Scatters that combine updates with the array's elements: `scatter_add`, `_sub`, `_mul`, `_min`, `_max`.

    scatter_add : a[*s] i[*places,k] a[places and windows] -> a[*s]

Windows may overlap; updates are combined one after another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval, is_undef_primal, jvp_rules, transpose_rules
from corejax.extend.transforms import zero_cotangent
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._base.type_rules import NUMERIC, ORDERED
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.iota import broadcasted_iota
from corejax_lax_basic.elementwise.arithmetic import add_p, div_p, mul_p, neg_p
from corejax_lax_basic.elementwise.comparison import eq_p, gt_p, lt_p
from corejax_lax_basic.elementwise.logical import not_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.indexing._scatter_family import gathered, scatter_primitive, shape_of
from corejax_lax_basic.shape.rearranging import reshape
from corejax_lax_basic.shape.slicing import pad_p

__all__ = [
    *("scatter_add", "scatter_add_p", "scatter_max", "scatter_max_p", "scatter_min", "scatter_min_p"),
    *("scatter_mul", "scatter_mul_p", "scatter_sub", "scatter_sub_p"),
]

scatter_add, scatter_add_p = scatter_primitive(
    "scatter_add", np.add, NUMERIC, (0, 2), "Add updates to windows of an array, at positions that are data."
)
scatter_sub, scatter_sub_p = scatter_primitive(
    "scatter_sub",
    np.subtract,
    NUMERIC,
    (0, 2),
    "Subtract updates from windows of an array, at positions that are data.",
)
scatter_mul, scatter_mul_p = scatter_primitive(
    "scatter_mul", np.multiply, NUMERIC, (0, 2), "Multiply windows of an array by updates, at positions that are data."
)
scatter_min, scatter_min_p = scatter_primitive(
    "scatter_min", np.minimum, ORDERED, (), "Replace windows by their minima with updates, at positions that are data."
)
scatter_max, scatter_max_p = scatter_primitive(
    "scatter_max", np.maximum, ORDERED, (), "Replace windows by their maxima with updates, at positions that are data."
)

# -- sums --------------------------------------------------------------------------------------------------------


def _sum_rules(primitive: Primitive, negative: bool) -> None:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        x, indices, updates = primals
        x_dot, _, updates_dot = tangents
        out = primitive.bind(x, indices, updates, **params)
        if updates_dot is None:
            return out, x_dot
        x_dot = zero_cotangent(get_aval(x)) if x_dot is None else x_dot
        return out, primitive.bind(x_dot, indices, updates_dot, **params)

    def transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
        ct_updates = None
        if is_undef_primal(updates):
            ct_updates = gathered(ct, indices, shape_of(updates), **params)
            ct_updates = neg_p.bind(ct_updates) if negative else ct_updates
        return [ct if is_undef_primal(x) else None, None, ct_updates]

    jvp_rules.register(primitive, jvp, symbolic_zeros=True)
    transpose_rules.register(primitive, transpose)


_sum_rules(scatter_add_p, negative=False)
_sum_rules(scatter_sub_p, negative=True)

# -- products ----------------------------------------------------------------------------------------------------


def _products_of_others(shape: Ints, indices: Any, updates: Any, **params: Any) -> Any:
    """Return for each update the product of all other updates of the same element.

    Updates are sorted by their element. The other updates of an element are then those before and those after, whose
    products are computed in steps of 1, 2, 4, ...: without a division, so that updates may be 0.
    """
    sizes, count = get_aval(updates).shape, get_aval(updates).size
    dtype, width = get_aval(updates).dtype, np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    elements = reshape(broadcasted_iota(width, (math.prod(shape),), 0), shape)
    places = gathered(add_p.bind(elements, make_scalar(1, width)), indices, sizes, **params)
    numbers = broadcasted_iota(width, (count,), 0)
    places, flat, numbers = by_name.sort(reshape(places, (count,)), reshape(updates, (count,)), numbers)
    one = make_scalar(1, dtype)

    def shifted(x: Any, by: int, fill: Any) -> Any:
        return pad_p.bind(x, fill, padding_config=((by, -by, 0),))

    def exclusive(sign: int) -> Any:
        product, step = flat, 1
        nowhere = make_scalar(-1, width)
        while step < count:
            same = eq_p.bind(places, shifted(places, sign * step, nowhere))
            product = mul_p.bind(product, select_n_p.bind(same, one, shifted(product, sign * step, one)))
            step *= 2
        same = eq_p.bind(places, shifted(places, sign, nowhere))
        return select_n_p.bind(same, one, shifted(product, sign, one))

    products = mul_p.bind(exclusive(1), exclusive(-1))
    return reshape(by_name.sort(numbers, products)[1], sizes)


def _mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    x_dot, _, updates_dot = tangents
    out = scatter_mul_p.bind(x, indices, updates, **params)
    tangent = None if x_dot is None else scatter_mul_p.bind(x_dot, indices, updates, **params)
    if updates_dot is not None:
        if not params["unique_indices"] and get_aval(updates).size != 0:
            others = _products_of_others(get_aval(x).shape, indices, updates, **params)
            updates_dot = mul_p.bind(others, updates_dot)
        spread = scatter_add_p.bind(zero_cotangent(get_aval(x)), indices, updates_dot, **params)
        other = mul_p.bind(x, spread)
        tangent = other if tangent is None else add_p.bind(tangent, other)
    return out, tangent


def _mul_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    if not is_undef_primal(updates):
        return [scatter_mul_p.bind(ct, indices, updates, **params), None, None]
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul is not linear in updates whose windows overlap: promise that none do with unique_indices=True"
        )
    return [None, None, gathered(mul_p.bind(ct, x), indices, shape_of(updates), **params)]


jvp_rules.register(scatter_mul_p, _mul_jvp, symbolic_zeros=True)
transpose_rules.register(scatter_mul_p, _mul_transpose)

# -- extrema -----------------------------------------------------------------------------------------------------


def _extremum_rule(primitive: Primitive, beaten: Primitive) -> None:
    """Register the derivative of a minimum or maximum; operands that tie share it, as in reductions."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        x, indices, updates = primals
        x_dot, _, updates_dot = tangents
        out = primitive.bind(x, indices, updates, **params)
        dtype = get_aval(x).dtype
        # `beaten` is False for NaN, which therefore counts as a winner: it is the result.
        x_won = not_p.bind(beaten.bind(x, out))
        won = not_p.bind(beaten.bind(updates, gathered(out, indices, get_aval(updates).shape, **params)))
        count = scatter_add_p.bind(
            convert_element_type(x_won, dtype), indices, convert_element_type(won, dtype), **params
        )
        x_dot = zero_cotangent(get_aval(x)) if x_dot is None else x_dot
        updates_dot = zero_cotangent(get_aval(updates)) if updates_dot is None else updates_dot
        zero = make_scalar(0, dtype)
        total = scatter_add_p.bind(
            select_n_p.bind(x_won, zero, x_dot), indices, select_n_p.bind(won, zero, updates_dot), **params
        )
        return out, div_p.bind(total, count)

    jvp_rules.register(primitive, jvp, symbolic_zeros=True)


_extremum_rule(scatter_min_p, gt_p)
_extremum_rule(scatter_max_p, lt_p)
