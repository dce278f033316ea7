"""Primitives that choose among elements: the coefficients are those of the chosen elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, get_aval
from corejax_jet.interpreter import broadcast_terms, for_primitive, order_of, real_series, scaled
from corejax_lax_basic import lax


def _select_n(primitive: Primitive, primals: Any, series: Any) -> tuple[Any, Any]:
    which, *cases = primals
    order = order_of(series)
    full = [real_series(x, c, order) for x, c in zip(cases, series[1:], strict=True)]
    return primitive.bind(*primals), [primitive.bind(which, *each) for each in zip(*full, strict=True)]


def _extremum(primitive: Primitive, compare: Callable[[Any, Any], Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """Propagate series through `max` and `min`; their mean if the operands are equal, as in the JVP rules."""
    out = primitive.bind(*primals)
    (x, *xs), (y, *ys) = broadcast_terms(primals, series, get_aval(out).shape)
    first, tie = compare(x, y), lax.eq(x, y)
    chosen = [lax.select(first, a, b) for a, b in zip(xs, ys, strict=True)]
    means = [scaled(lax.add(a, b), 0.5) for a, b in zip(xs, ys, strict=True)]
    return out, [lax.select(tie, m, c) for m, c in zip(means, chosen, strict=True)]


def _reduced(
    primitive: Primitive, primals: Any, series: Any, *, axes: tuple[int, ...], **params: Any
) -> tuple[Any, Any]:
    """Propagate series through `reduce_max` and `reduce_min`: the mean over the elements that attain the extremum."""
    ((x,), (cs,)) = primals, series
    out = primitive.bind(x, axes=axes, **params)
    aval = get_aval(x)
    kept = [i for i in range(aval.ndim) if i not in axes]
    attained = lax.convert_element_type(lax.eq(x, lax.broadcast_in_dim(out, aval.shape, kept)), aval.dtype)
    count = lax.reduce_sum(attained, axes)
    return out, [lax.div(lax.reduce_sum(lax.mul(attained, c), axes), count) for c in cs]


def _clamp(primitive: Primitive, primals: Any, series: Any) -> tuple[Any, Any]:
    out = primitive.bind(*primals)
    (low, *lows), (x, *xs), (high, *highs) = broadcast_terms(primals, series, get_aval(out).shape)
    below, above = lax.lt(x, low), lax.gt(x, high)
    chosen = zip(lows, highs, xs, strict=True)
    return out, [lax.select(below, a, lax.select(above, b, c)) for a, b, c in chosen]


for_primitive("select_n", _select_n)
for_primitive("max", _extremum, lax.gt)
for_primitive("min", _extremum, lax.lt)
for_primitive("reduce_max", _reduced)
for_primitive("reduce_min", _reduced)
for_primitive("clamp", _clamp)
