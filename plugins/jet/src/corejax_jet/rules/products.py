"""Jet rules of bilinear primitives, and of quotients and other functions of two operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, get_aval
from corejax_jet import taylor
from corejax_jet.interpreter import broadcast_terms, for_primitive, scaled
from corejax_lax_basic import lax


def _bilinear(primitive: Primitive, primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
    (x, y, *rest), (xs, ys, *_) = primals, series

    def multiply(a: Any, b: Any) -> Any:
        return primitive.bind(a, b, *rest, **params)

    out = multiply(x, y)
    if ys is None:
        return out, [multiply(c, y) for c in xs]
    if xs is None:
        return out, [multiply(x, c) for c in ys]
    return out, taylor.product([x, *xs], [y, *ys], multiply)[1:]


for _name in ("mul", "dot_general", "conv_general_dilated", "ragged_dot_general"):
    for_primitive(_name, _bilinear)


def _binary(
    primitive: Primitive, terms: Callable[..., list[Any]], primals: Any, series: Any, **params: Any
) -> tuple[Any, Any]:
    out = primitive.bind(*primals, **params)
    return out, terms(*broadcast_terms(primals, series, get_aval(out).shape))[1:]


def _rem(a: list[Any], b: list[Any]) -> list[Any]:
    """Return the terms of a - b trunc(a / b); the truncated quotient is constant."""
    whole = lax.div(lax.sub(a[0], lax.rem(a[0], b[0])), b[0])
    return [lax.sub(x, lax.mul(whole, y)) for x, y in zip(a, b, strict=True)]


def _pow(a: list[Any], b: list[Any]) -> list[Any]:
    """Return the terms of exp(b log a), for a positive base."""
    logs = taylor.logarithm(a, lax.log(a[0]), a[0])
    return taylor.exponential(taylor.product(b, logs), lax.pow(a[0], b[0]))


def _atan2(y: list[Any], x: list[Any]) -> list[Any]:
    """Return the terms of atan2: (x y' - y x') / (x^2 + y^2), integrated over t."""
    radius = [lax.add(p, q) for p, q in zip(taylor.product(x, x), taylor.product(y, y), strict=True)]
    dx, dy = ([scaled(c, k) for k, c in enumerate(v[1:], 1)] for v in (x, y))
    n = len(dx)
    top = [lax.sub(p, q) for p, q in zip(taylor.product(x[:n], dy), taylor.product(y[:n], dx), strict=True)]
    slopes = taylor.quotient(top, radius[:n])
    return [y[0], *(scaled(c, 1 / k) for k, c in enumerate(slopes, 1))]


for _name, _terms in {"div": taylor.quotient, "rem": _rem, "atan2": _atan2, "pow": _pow}.items():
    for_primitive(_name, _binary, _terms)
