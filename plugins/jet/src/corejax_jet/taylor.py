"""Arithmetic of truncated power series, lists `[x, c_1, ..., c_K]`, and functions of them.

The recurrences are those of Griewank and Walther, Evaluating Derivatives (2008), section 13.2: if a function solves a
linear differential equation, each coefficient is a sum of products of earlier coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from corejax_jet.interpreter import scaled
from corejax_lax_basic import lax

Terms = Sequence[Any]


def total(terms: Sequence[Any]) -> Any:
    """Sum terms; there must be at least one."""
    return reduce(lax.add, terms)


def product(a: Terms, b: Terms, multiply: Callable[[Any, Any], Any] = lax.mul) -> list[Any]:
    """Return the terms of a product, or of any bilinear operation."""
    return [total([multiply(a[j], b[k - j]) for j in range(k + 1)]) for k in range(len(a))]


def quotient(a: Terms, b: Terms) -> list[Any]:
    """Return the terms of a / b."""
    out = [lax.div(a[0], b[0])]
    for k in range(1, len(a)):
        known = total([lax.mul(b[j], out[k - j]) for j in range(1, k + 1)])
        out.append(lax.div(lax.sub(a[k], known), b[0]))
    return out


def integrated(first: Any, slopes: Sequence[Any], a: Terms) -> list[Any]:
    """Return the terms of f(a), given the first term, and all terms of f'(a) but the last."""
    out = [first]
    for k in range(1, len(a)):
        out.append(_step(k, a, slopes))
    return out


def _step(k: int, a: Terms, slopes: Sequence[Any]) -> Any:
    """Return coefficient k of f(a), given coefficients d of f'(a): the sum of j a_j d_{k-j} divided by k."""
    return total([scaled(lax.mul(a[j], slopes[k - j]), j / k) for j in range(1, k + 1)])


def exponential(a: Terms, first: Any) -> list[Any]:
    """Return the terms of exp(a), which is its own derivative."""
    out = [first]
    for k in range(1, len(a)):
        out.append(_step(k, a, out))
    return out


def logarithm(a: Terms, first: Any, base: Any) -> list[Any]:
    """Return the terms of log(a), with `base` the first term of `a`; for log1p, `base` is 1 more."""
    out = [first]
    for k in range(1, len(a)):
        rest = [scaled(lax.mul(out[j], a[k - j]), j / k) for j in range(1, k)]
        out.append(lax.div(lax.sub(a[k], total(rest)) if rest else a[k], base))
    return out


def sine_cosine(a: Terms, sine: Any, cosine: Any, sign: int) -> tuple[list[Any], list[Any]]:
    """Return the terms of sin and cos (sign -1), or of sinh and cosh (sign 1), which are each other's derivative."""
    s, c = [sine], [cosine]
    for k in range(1, len(a)):
        slope = _step(k, a, s)
        s.append(_step(k, a, c))
        c.append(lax.neg(slope) if sign < 0 else slope)
    return s, c


def riccati(a: Terms, first: Any, slope: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Return the terms of y(a), where y' is a polynomial of y: tanh, tan, logistic.

    Args:
        a: the terms of the argument.
        first: the first term of the result.
        slope: a function from the known terms of y to as many terms of y'.
    """
    out = [first]
    for k in range(1, len(a)):
        out.append(_step(k, a, slope(out)))
    return out


def power(a: Terms, first: Any, exponent: float) -> list[Any]:
    """Return the terms of a constant power of `a`, the first term of which is not zero: b' a = p b a'."""
    out = [first]
    for k in range(1, len(a)):
        known = [scaled(lax.mul(a[j], out[k - j]), (j * (exponent + 1) - k) / k) for j in range(1, k + 1)]
        out.append(lax.div(total(known), a[0]))
    return out


def integer_power(a: Terms, exponent: int) -> list[Any]:
    """Return the terms of a positive integer power by repeated squaring; correct also if `a` is zero."""
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
