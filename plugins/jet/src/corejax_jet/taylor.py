"""Arithmetic of truncated power series: lists `[x, c_1, ..., c_K]`, and what functions make of them.

The recurrences are those of Griewank and Walther, Evaluating Derivatives (2008), section 13.2: a function that solves
a linear differential equation gives, coefficient by coefficient, sums of products of those before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from corejax_jet.interpreter import scaled
from corejax_lax_basic import lax

Terms = Sequence[Any]


def total(terms: Sequence[Any]) -> Any:
    """The sum; at least one term."""
    return reduce(lax.add, terms)


def product(a: Terms, b: Terms, multiply: Callable[[Any, Any], Any] = lax.mul) -> list[Any]:
    """Terms of a product, or of whatever is linear in each of two operands."""
    return [total([multiply(a[j], b[k - j]) for j in range(k + 1)]) for k in range(len(a))]


def quotient(a: Terms, b: Terms) -> list[Any]:
    """Terms of a / b."""
    out = [lax.div(a[0], b[0])]
    for k in range(1, len(a)):
        known = total([lax.mul(b[j], out[k - j]) for j in range(1, k + 1)])
        out.append(lax.div(lax.sub(a[k], known), b[0]))
    return out


def integrated(first: Any, slopes: Sequence[Any], a: Terms) -> list[Any]:
    """Terms of f(a): the first one, from those of f'(a), of which as many are asked for as `a` has but one."""
    out = [first]
    for k in range(1, len(a)):
        out.append(_step(k, a, slopes))
    return out


def _step(k: int, a: Terms, slopes: Sequence[Any]) -> Any:
    """Coefficient k of f(a) where f'(a) has these: the sum of j a_j d_{k-j} over k."""
    return total([scaled(lax.mul(a[j], slopes[k - j]), j / k) for j in range(1, k + 1)])


def exponential(a: Terms, first: Any) -> list[Any]:
    """Terms of exp(a), whose derivative is itself."""
    out = [first]
    for k in range(1, len(a)):
        out.append(_step(k, a, out))
    return out


def logarithm(a: Terms, first: Any, base: Any) -> list[Any]:
    """Terms of log(a) where `base` is the first term of a; of log1p, 1 more."""
    out = [first]
    for k in range(1, len(a)):
        rest = [scaled(lax.mul(out[j], a[k - j]), j / k) for j in range(1, k)]
        out.append(lax.div(lax.sub(a[k], total(rest)) if rest else a[k], base))
    return out


def sine_cosine(a: Terms, sine: Any, cosine: Any, sign: int) -> tuple[list[Any], list[Any]]:
    """Terms of sin and cos (sign -1), or of sinh and cosh (sign 1): each the other's derivative, up to the sign."""
    s, c = [sine], [cosine]
    for k in range(1, len(a)):
        slope = _step(k, a, s)
        s.append(_step(k, a, c))
        c.append(lax.neg(slope) if sign < 0 else slope)
    return s, c


def riccati(a: Terms, first: Any, slope: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Terms of y(a) where y' is a polynomial of y: tanh, tan, logistic.

    Args:
        a: the argument's terms.
        first: y of the first one.
        slope: from the terms of y known so far to as many of y'.
    """
    out = [first]
    for k in range(1, len(a)):
        out.append(_step(k, a, slope(out)))
    return out


def power(a: Terms, first: Any, exponent: float) -> list[Any]:
    """Terms of a to a constant power, of a whose first term is not zero: b' a = p b a'."""
    out = [first]
    for k in range(1, len(a)):
        known = [scaled(lax.mul(a[j], out[k - j]), (j * (exponent + 1) - k) / k) for j in range(1, k + 1)]
        out.append(lax.div(total(known), a[0]))
    return out


def integer_power(a: Terms, exponent: int) -> list[Any]:
    """Terms of a to a positive integer power, by repeated squares: right where a is zero, too."""
    out: list[Any] | None = None
    square = list(a)
    while True:
        if exponent & 1:
            out = square if out is None else product(out, square)
        exponent >>= 1
        if not exponent:
            assert out is not None
            return out
        square = product(square, square)
