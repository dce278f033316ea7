"""Jet rules of functions of one number, by the recurrences of `taylor`, or by their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval
from corejax_jet import taylor
from corejax_jet.interpreter import for_primitive, jet_flat, scaled
from corejax_lax_basic import lax

Terms = list[Any]


def _by_terms(
    primitive: Primitive, terms: Callable[..., Terms], primals: Any, series: Any, **params: Any
) -> tuple[Any, Any]:
    """Apply the rule of a unary primitive: `terms(a, first, **params)` returns the terms of its result."""
    first = primitive.bind(*primals, **params)
    return first, terms([*primals, *series[0]], first, **params)[1:]


def _one_plus_square(y: Terms, sign: int) -> Terms:
    """Return the terms of 1 + sign y^2."""
    squares = taylor.product(y, y)
    first = lax.add(scaled(squares[0], sign), lax.full_like(y[0], 1))
    return [first, *(scaled(c, sign) for c in squares[1:])]


def _integer_pow(a: Terms, first: Any, *, y: int, **params: Any) -> Terms:
    if y == 0:
        return [first, *(scaled(c, 0) for c in a[1:])]
    if y > 0:
        return taylor.integer_power(a, y)
    one = lax.full_like(a[0], 1)
    return taylor.quotient([one, *(scaled(c, 0) for c in a[1:])], taylor.integer_power(a, -y))


_RECURRENCES: dict[str, Callable[..., Terms]] = {
    "exp": lambda a, first, **_: taylor.exponential(a, first),
    "exp2": lambda a, first, **_: taylor.exponential([a[0], *(scaled(c, math.log(2)) for c in a[1:])], first),
    "expm1": lambda a, first, **_: taylor.exponential(a, lax.exp(a[0])),
    "log": lambda a, first, **_: taylor.logarithm(a, first, a[0]),
    "log1p": lambda a, first, **_: taylor.logarithm(a, first, lax.add(a[0], lax.full_like(a[0], 1))),
    "sin": lambda a, first, **_: taylor.sine_cosine(a, first, lax.cos(a[0]), -1)[0],
    "cos": lambda a, first, **_: taylor.sine_cosine(a, lax.sin(a[0]), first, -1)[1],
    "sinh": lambda a, first, **_: taylor.sine_cosine(a, first, lax.cosh(a[0]), 1)[0],
    "cosh": lambda a, first, **_: taylor.sine_cosine(a, lax.sinh(a[0]), first, 1)[1],
    "tanh": lambda a, first, **_: taylor.riccati(a, first, lambda y: _one_plus_square(y, -1)),
    "tan": lambda a, first, **_: taylor.riccati(a, first, lambda y: _one_plus_square(y, 1)),
    "logistic": lambda a, first, **_: taylor.riccati(
        a, first, lambda y: [lax.sub(c, s) for c, s in zip(y, taylor.product(y, y), strict=True)]
    ),
    "sqrt": lambda a, first, **_: taylor.power(a, first, 0.5),
    "rsqrt": lambda a, first, **_: taylor.power(a, first, -0.5),
    "cbrt": lambda a, first, **_: taylor.power(a, first, 1 / 3),
    "square": lambda a, first: taylor.product(a, a),
    "integer_pow": _integer_pow,
}

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _one(x: Any) -> Any:
    return lax.full_like(x, 1)


# Derivatives f' in terms of other primitives; the rule propagates series of one order less through them.
_DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "atan": lambda x: lax.div(_one(x), lax.add(_one(x), lax.square(x))),
    "atanh": lambda x: lax.div(_one(x), lax.sub(_one(x), lax.square(x))),
    "asin": lambda x: lax.rsqrt(lax.sub(_one(x), lax.square(x))),
    "acos": lambda x: lax.neg(lax.rsqrt(lax.sub(_one(x), lax.square(x)))),
    "asinh": lambda x: lax.rsqrt(lax.add(lax.square(x), _one(x))),
    "erf": lambda x: scaled(lax.exp(lax.neg(lax.square(x))), _TWO_OVER_ROOT_PI),
    "erfc": lambda x: scaled(lax.exp(lax.neg(lax.square(x))), -_TWO_OVER_ROOT_PI),
    "lgamma": lax.digamma,
    "digamma": lambda x: lax.polygamma(_one(x), x),
}


def _by_derivative(derivative: Callable[[Any], Any]) -> Callable[..., Terms]:
    def terms(a: Terms, first: Any, **params: Any) -> Terms:
        order = len(a) - 1
        if order == 1:
            slopes = [derivative(a[0])]
        else:
            (slope,), (series,) = jet_flat(lambda x: [derivative(x)], a[:1], [a[1:order]], order - 1)
            slopes = [slope, *(series or [scaled(slope, 0)] * (order - 1))]
        return taylor.integrated(first, slopes, a)

    return terms


def _erf_inv(a: Terms, first: Any) -> Terms:
    """Return the terms of erf_inv by y' = sqrt(pi)/2 exp(y^2), which needs y at one order less."""
    constant = math.sqrt(math.pi) / 2

    def slope(y: Terms) -> Terms:
        squares = taylor.product(y, y)
        return [scaled(c, constant) for c in taylor.exponential(squares, lax.exp(squares[0]))]

    return taylor.riccati(a, first, slope)


def _abs(a: Terms, first: Any) -> Terms:
    if np.iscomplexobj(np.empty(0, get_aval(a[0]).dtype)):
        squares = [
            lax.add(x, y)
            for x, y in zip(
                taylor.product([lax.real(c) for c in a], [lax.real(c) for c in a]),
                taylor.product([lax.imag(c) for c in a], [lax.imag(c) for c in a]),
                strict=True,
            )
        ]
        return taylor.power(squares, first, 0.5)
    sign = lax.sign(a[0])
    return [first, *(lax.mul(sign, c) for c in a[1:])]


_RECURRENCES |= {"erf_inv": _erf_inv, "abs": _abs}
_RECURRENCES |= {name: _by_derivative(derivative) for name, derivative in _DERIVATIVES.items()}
for _name, _terms in _RECURRENCES.items():
    for_primitive(_name, _by_terms, _terms)
