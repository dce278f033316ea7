"""Kummer's function by its differential equation (DLMF 13.2.1), and by its asymptotic series for large arguments.

The asymptotic series is DLMF 13.7.1. Both compute `M(a, b, z)` for `z >= 0`; for negative `x` the function is
`exp(-z) M(b - a, b, z)` with `z = -x` (DLMF 13.2.39).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, sin_pi, where, widened
from corejax_scipy.special._taylor import (
    LARGE,
    Equation,
    integrated,
    is_whole,
    is_whole_difference,
    longest_step,
    next_term,
    polynomial,
)
from corejax_scipy.special.gamma_functions import gammasgn_formula

LARGEST = 1e4
_FAR_TERMS = 60


def _first_term(params: Any, h: Any, n: Any, before: Any, last: Any) -> Any:
    a, b, _ = params
    return (n + a) * h / ((n + 1.0) * (n + b)) * last


def _prepared(params: Any, z: Any, h: Any) -> Any:
    a, b, _ = params
    step = h / z
    return a, b - z, step * h, step


def _term(given: Any, n: Any, before: Any, last: Any) -> Any:
    a, rest, square, step = given
    k = n - 1.0
    return next_term(n, (k + a) * square, (k + rest) * step, before, last)


def _reach(params: Any, z: Any) -> Any:
    a, b, last = params
    rest = last - z
    step = lax.min(0.5 * z, longest_step(z - b, a, z))
    return where(rest <= 1e-15 * z, 0.0, lax.min(rest, step))


def _first(a: Any, b: Any, z: Any) -> Any:
    """Return the first step, in which the series has few changes of sign, or small terms."""
    zero = 0.0 * z
    later = a + lax.max(-b, zero)
    few = lax.max(4.0 * (lax.abs(b) + 1.0) / lax.max(lax.abs(later), zero + 1.0), zero + 0.125)
    many = 1.0 / (0.005 + lax.max(a, zero) / 1e4)
    return lax.min(z, where(later < -3.0, lax.min(few, many), many))


def _least(params: Any) -> Any:
    """Return the least number of terms: terms grow again when `n + b` changes sign, and for tiny `a` until `z - b`."""
    a, b, z = params
    return lax.max(-b, where(lax.abs(a) < 1e-3, lax.min(z, 200.0 + 0.0 * z) - b, -b))


_EQUATION = Equation(0.0, _first_term, _prepared, _term, _reach, _least)


def _near(a: Any, b: Any, z: Any, exponent: Any) -> Any:
    """Return `exp(exponent) M(a, b, z)` for moderate `z`."""
    total, _, times = integrated(_EQUATION, (a, b, z), lax.stop_gradient(_first(a, b, z)))
    return total * lax.exp(exponent + lax.stop_gradient(times) * math.log(LARGE))


def _gammas(a: Any, b: Any) -> Any:
    """Return factors and logarithms of `1 / gamma(a)` and `1 / gamma(b - a)`, and the logarithm of `gamma(b)`.

    Each factor is smooth at its zeros. The operands are stacked, so that the program has each function once.
    """
    x = jnp.stack([a, b - a])
    reflected = x < 0.5
    other = where(reflected, 1.0 - x, x)
    sizes = lax.lgamma(jnp.stack([other[0], other[1], b]))
    return where(reflected, sin_pi(x) / math.pi, 1.0), where(reflected, sizes[:2], -sizes[:2]), sizes[2]


def _far(a: Any, b: Any, z: Any, exponent: Any) -> Any:
    """Return `exp(exponent) M(a, b, z)` for large `z`: the growing solution plus the decaying one."""
    p, q, t = jnp.stack([b - a, a]), jnp.stack([1.0 - a, a - b + 1.0]), jnp.stack([1.0 / z, -1.0 / z])

    def going(state: Any) -> Any:
        return state[0] < float(_FAR_TERMS)

    def more(state: Any) -> Any:
        n, term, total = state
        ratio = (p + n) * (q + n) / (n + 1.0) * t
        term = where(lax.abs(ratio) < 1.0, ratio * term, 0.0)
        return n + 1.0, term, total + term

    one = 0.0 * t + 1.0
    _, _, sums = lax.while_loop(going, more, (number(0.0), one, one))
    logarithm = lax.log(z)
    (grown, rest), (by_a, by_difference), size = _gammas(a, b)
    cosine = sin_pi(a + 0.5)
    parts = [
        (grown, size + by_a + (a - b) * logarithm + (exponent + z)),
        (cosine * rest, size + by_difference - a * logarithm + exponent),
    ]
    # A zero factor times an infinite exponential counts as 0, so bound the exponent.
    first, other = (x * lax.exp(where(lax.eq(x, number(0.0)), lax.min(y, 700.0 + 0.0 * y), y)) for x, y in parts)
    first, other = first * sums[0], other * sums[1]
    return gammasgn_formula(b) * (first + other)


def _known(a: Any, b: Any, x: Any) -> Any:
    return (abs(a) <= LARGEST) & (abs(b) <= LARGEST) & (x == x)


def _is_far(a: Any, b: Any, z: Any) -> Any:
    p, q, u, v = lax.abs(b - a), lax.abs(1.0 - a), lax.abs(a), lax.abs(a - b + 1.0)
    return z > 60.0 + p + q + u + v + 2.0 * (p * q + u * v)


def _ending(a: Any, b: Any, x: Any, far: Any, by: int | None) -> tuple[Any, Any]:
    """Return where the function is a polynomial, or one times `exp(x)`, and its value, without derivatives by `a`."""
    ends, power_ends = is_whole(a), is_whole_difference(b, a) & ~is_whole(a) & ~far
    # For very negative `b`, neither sum nor recurrence is accurate for degrees above `-b`.
    ends, power_ends = ends & ((b > -10.0) | (-a <= -b)), power_ends & ((b > -10.0) | (a - b <= -b))
    if by is not None:
        ends, power_ends = ends & (x == x if by else x != x), power_ends & (x != x)
    here = ends | power_ends
    degree = lax.stop_gradient(where(here, where(ends, -a, lax.round(a - b)), 0.0))
    value = polynomial(degree, None, b, where(here, where(ends, x, -x), 0.0), True)
    return here, where(power_ends, lax.exp(where(power_ends, x, 0.0)), 1.0) * value


def hyp1f1(a: Any, b: Any, x: Any, by: int | None = None) -> Any:
    """Return Kummer's function of float64 values, for differentiation `by` one of the first two operands or none."""
    a, b, x = jnp.broadcast_arrays(a, b, x)
    pole = is_whole(b)
    known = _known(a, b, x) & ~pole
    a_sane, b_sane = where(known, a, 1.5), where(known, b, 1.5)
    at = where(known, lax.clamp(number(-1e300), x, number(1e300)), 0.0)
    z, negative = lax.abs(at), x < 0.0
    first, exponent = where(negative, b_sane - a_sane, a_sane), where(negative, -z, 0.0)
    far = _is_far(first, b_sane, z)
    ends, polynomials = _ending(a_sane, b_sane, at, far, by)
    far, others = far & ~ends, far | ends
    near = _near(first, b_sane, where(others, 0.0, z), where(others, 0.0, exponent))
    operands = where(far, first, 1.0), where(far, b_sane, 1.5), where(far, z, 100.0), where(far, exponent, 0.0)
    beyond = lax.cond(jnp.any(far), _far, lambda a, b, z, exponent: z * 0.0, *operands)
    out = where(far, beyond, where(ends, polynomials, near))
    vanishes = negative & ((a > 0.0) | is_whole_difference(b, a))
    infinite = where(vanishes, 0.0, lax.sign(out) * math.inf)
    out = where(lax.eq(lax.abs(x), math.inf + 0.0 * at), infinite, out)
    constant = lax.eq(x, number(0.0))
    if by != 0:
        constant = constant | lax.eq(a, number(0.0))
    out = where(known, out, math.nan)
    return where(pole, math.inf, where(constant, 1.0, out))


# -- for results that become float32 -------------------------------------------------------------------------------

_WRITTEN, _FEW, _MANY = 20, 40, 120  # the number of unrolled terms, and the numbers of terms that are tried
_LEFT_OUT, _CANCELLED = 2.0**-33, 2.0**-21


def _more_terms(first: Any, a: Any, b: Any, z: Any, sums: Any) -> Any:
    """Sum `_WRITTEN` terms of the power series backwards, over one denominator, which is divided by at the end.

    Args:
        first: the number of earlier terms.
        a: the operand a.
        b: the operand b.
        z: the operand z.
        sums: the sum of the later terms, the sum of their absolute values, and the last term, all relative to the term
            before them.
    """
    above, sizes, term = sums
    a, b = a + first, b + first
    below = 0.0 * z + 1.0
    for n in range(_WRITTEN - 1, -1, -1):
        top = (a + float(n)) * z  # 0 where the series ends
        below = below * ((b + float(n)) * (first + float(n + 1)))
        above, sizes, term = below + top * above, lax.abs(below) + lax.abs(top) * sizes, top * term
    return above / below, sizes / lax.abs(below), term / below


def _summed(a: Any, b: Any, z: Any, count: Any) -> tuple[Any, Any]:
    """Sum `count` terms of the power series, and return whether they are enough.

    They are enough if the remaining terms are small relative to the sum, and the sum is not small relative to the sum
    of the terms' absolute values.
    """
    ratio = (a + count) * z / ((b + count) * (count + 1.0))
    rest = lax.abs(ratio) < 0.9
    tail = ratio / (1.0 - where(rest, ratio, 0.0))

    def body(state: Any) -> Any:
        n, *sums = state
        n = n - float(_WRITTEN)
        return n, *_more_terms(n, a, b, z, sums)

    _, out, sizes, term = lax.while_loop(
        lambda state: state[0] > 0.0, body, (count, 1.0 + tail, 1.0 + lax.abs(tail), tail)
    )
    size = lax.abs(out)
    enough = rest & (lax.abs(term) <= _LEFT_OUT * size) & (size >= _CANCELLED * sizes)
    return out, enough & (sizes < 1e300) & ~is_whole(b)


def of_float32(a: Any, b: Any, x: Any) -> Any:
    """Return Kummer's function of float32 values, by its power series if that is short, else as for float64."""
    a, b, x = (widened(v) for v in jnp.broadcast_arrays(a, b, x))
    z, negative = lax.abs(x), x < 0.0
    top, scale, known = where(negative, b - a, a), lax.exp(where(negative, x, 0.0)), _known(a, b, x)

    def longer(state: Any) -> Any:
        count, found, enough = state
        value, now = _summed(where(enough, 1.0, top), where(enough, 1.5, b), where(enough, 0.0, z), count)
        return count + float(_MANY - _FEW), where(enough, found, value * scale), enough | (now & known)

    def unfinished(state: Any) -> Any:
        return (state[0] <= float(_MANY)) & ~jnp.all(state[2])

    _, found, enough = lax.while_loop(unfinished, longer, (number(float(_FEW)), 0.0 * z, z < 0.0))

    def others() -> Any:
        sane = where(enough, 1.0, a), where(enough, 1.5, b), where(enough, 0.0, x)
        return where(enough, found, hyp1f1(*sane))

    out = lax.cond(jnp.all(enough), lambda: found, others)
    return where((a == a) & (b == b) & (x == x), out, math.nan)


def is_scipys(a: Any, b: Any, x: Any) -> Any:
    """Return where SciPy is right; elsewhere it is wrong or may take minutes."""
    pole = (b < 1) & (abs(b - np.round(b)) < 1e-6)
    pole |= (x != 0) & (abs(x) < 1e-200)  # SciPy's series is infinite there
    return ~pole & (abs(a) <= 100) & (abs(b) <= 100) & (abs(x) <= 500) & (np.floor(a) != a) & (np.floor(b - a) != b - a)
