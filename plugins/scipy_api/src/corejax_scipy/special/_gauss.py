"""Gauss's function by its differential equation (DLMF 15.10.1), from 0 towards 1.

Pfaff's transformation maps negative arguments to that interval (DLMF 15.8.1). If `y`, the distance to 1, is tiny, the
solution is `p + q y**(c-a-b)`, which is extrapolated (DLMF 15.10.11).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, sin_pi, where
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
from corejax_scipy.special.gamma_functions import gamma_formula

LARGEST = 300.0  # larger parameters lose digits
# For `c` below this, rounding errors grow like the solution `z**(1 - c)` (DLMF 15.10.3), and the terms of polynomials
# of degrees above `-LEAST` cancel.
LEAST = -10.0
_NEAREST = 2.0**-52  # the distance to 1 at which the integration ends


def _first_term(params: Any, h: Any, n: Any, before: Any, last: Any) -> Any:
    a, b, c, _ = params
    return (n + a) * (n + b) * -h / ((n + 1.0) * (n + c)) * last


def _prepared(params: Any, y: Any, h: Any) -> Any:
    """Return the coefficients of a step; the equation is written in `y = 1 - z`, the series in `-h`."""
    a, b, c, _ = params
    z = 1.0 - y
    step = -h / (z * y)
    return a, b, step * -h, (y - z) * step, (c - (a + b + 1.0) * z) * step


def _term(given: Any, n: Any, before: Any, last: Any) -> Any:
    a, b, square, slope, rest = given
    k = n - 1.0
    return next_term(n, (k + a) * (k + b) * square, slope * k + rest, before, last)


def _reach(params: Any, y: Any) -> Any:
    """Return half of the way to 1, or less, by the roots of `z y r**2 + (c - (a+b+1) z) r = a b`."""
    a, b, c, last = params
    z = 1.0 - y
    cap = longest_step((a + b + 1.0) * z - c, a * b, z * y)
    there = lax.max(last, y - lax.min(0.5 * lax.min(y, z), cap))
    return where(y - last <= 1e-15 * y, 0.0, there - y)


_EQUATION = Equation(1.0, _first_term, _prepared, _term, _reach, lambda params: -params[2])


def _solution(a: Any, b: Any, c: Any, z: Any, y: Any) -> tuple[Any, Any]:
    """Return `F(a, b; c; z)` for `z = 1 - y` from 0 to 1, and how often it was divided by `LARGE`."""
    zero = 0.0 * z
    later = lax.max(-c, zero)  # from this term on, c + n is positive
    # The largest `-(a + n) (b + n)` from that term on bounds the growth of terms with alternating signs.
    middle = 0.5 * (a - b)
    peaks = a + b + 2.0 * later < 0.0
    alternating = where(peaks, middle * middle, lax.max(-((a + later) * (b + later)), zero))
    cap = (lax.abs(c) + 1.0) / lax.max(alternating, zero + 1.0)
    half = lax.floor(lax.min(zero + 0.5, 2.0 * cap) * 1024.0) / 1024.0
    half = lax.max(half, zero + 2.0**-10)
    first, last = -lax.min(z, half), lax.max(y, zero + _NEAREST)

    total, by_y, times = integrated(_EQUATION, (a, b, c, last), lax.stop_gradient(first))
    beyond = y < _NEAREST
    d, change = c - a - b, lax.log(where(beyond, y, _NEAREST) / _NEAREST)
    flat = lax.abs(d * change) < 1e-8
    rest = where(flat, change * (1.0 + 0.5 * d * change), lax.expm1(d * change) / where(flat, 1.0, d))
    return where(beyond, total + _NEAREST * by_y * rest, total), times


def _below_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return the function for `x < 1`."""
    negative = x < 0.0
    swap = negative & (a > b)
    a, b = where(swap, b, a), where(swap, a, b)
    y = where(negative, 1.0 / (1.0 - x), 1.0 - x)
    z = where(negative, x / (x - 1.0), x)
    other = where(negative, c - b, b)
    # Apply Euler's transformation if it gives terms of one sign, or smaller terms (DLMF 15.8.1).
    p, q = c - a, c - other
    sizes = [where(v < 0.0, 1e7, 0.0) + lax.abs(v) for v in (p * q, a * other)]
    turned = (sizes[0] < sizes[1]) & (y > 1e-15)
    power = where(negative, a, 0.0) + where(turned, c - a - other, 0.0)
    total, times = _solution(where(turned, p, a), where(turned, q, other), c, z, y)
    logarithm = where(negative, -1.0, 1.0) * lax.log1p(-x)
    return total * lax.exp(power * logarithm + lax.stop_gradient(times) * math.log(LARGE))


def _ending(a: Any, b: Any, c: Any, x: Any, by: int | None) -> tuple[Any, Any]:
    """Return where the function is a polynomial, or one times a power of `1 - x`, and its value there."""
    # For negative `c` and small `x`, the recurrence in the degree loses digits; the differential equation does not.
    exact = [(v >= LEAST) | (c > 0.0) | (lax.abs(x) >= 0.5) for v in (a, b)]
    ends = [is_whole(v) & exact[i] & (True if by != i else v != v) for i, v in enumerate((a, b))]
    powers = [
        is_whole_difference(c, v) & ((x < 1.0) | _is_real_power(a, b, c, x)) & ~ends[0] & ~ends[1] for v in (a, b)
    ]
    p, q = c - a, c - b
    top = where(powers[0], p, where(powers[1], q, where(ends[0] & (~ends[1] | (a > b)), a, b)))
    other = where(powers[0], q, where(powers[1], p, where(ends[0] & (~ends[1] | (a > b)), b, a)))
    powered = (powers[0] | powers[1]) & (-top * lax.log1p(lax.abs(x)) < 600.0)
    if by is not None:
        powered = powered & (x != x)
    here = ends[0] | ends[1] | powered
    degree = lax.stop_gradient(where(here, lax.round(-top), 0.0))
    d, base = c - a - b, where(powered, x, 0.0)
    above = base > 1.0
    factor = lax.exp(d * where(above, lax.log(where(above, base - 1.0, 1.0)), lax.log1p(-where(above, 0.0, base))))
    factor = where(powered, where(above & ~_is_even(d), -factor, factor), 1.0)
    return here, factor * polynomial(degree, other, c, x, False)


def _is_even(d: Any) -> Any:
    return lax.eq(lax.floor(0.5 * d), 0.5 * d)


def _is_real_power(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return whether the function is a polynomial times a whole power of `1 - x`, for `x > 1`."""
    d = c - a - b
    return (x > 1.0) & lax.eq(lax.floor(d), d) & (is_whole_difference(c, a) | is_whole_difference(c, b))


def _at_one(a: Any, b: Any, c: Any) -> Any:
    """Return Gauss's sum (DLMF 15.4.20), with all gamma functions in one call and reflected denominators (5.5.3)."""
    d = c - a - b
    converges = d > 0.0
    turned = [x < 0.5 for x in (c - a, c - b)]
    below = [where(t, 1.0 - x, x) for t, x in zip(turned, (c - a, c - b), strict=True)]
    gammas = gamma_formula(jnp.stack([c, where(converges, d, 1.0), *below]))
    out = gammas[0] * gammas[1]
    for t, x, value in zip(turned, (c - a, c - b), (gammas[2], gammas[3]), strict=True):
        out = out * where(t, sin_pi(x) / math.pi * value, 1.0 / value)
    return where(converges, out, math.inf)


def _known(a: Any, b: Any, c: Any, x: Any, degree: Any) -> Any:
    sizes = (abs(a) <= LARGEST) & (abs(b) <= LARGEST) & (abs(c) <= LARGEST)
    return sizes & (x == x) & ((c >= LEAST) | (degree <= -LEAST))


def hyp2f1(a: Any, b: Any, c: Any, x: Any, by: int | None = None) -> Any:
    """Return Gauss's function of float64 values, for differentiation `by` one of the first three operands or none."""
    a, b, c, x = jnp.broadcast_arrays(a, b, c, x)
    degree = lax.min(where(is_whole(a), -a, math.inf), where(is_whole(b), -b, math.inf))
    pole = is_whole(c) & (degree > -c)
    within = _known(a, b, c, x, degree)
    in_reach = within & ~pole
    powered = _is_real_power(a, b, c, x)
    known = in_reach & ((x < 1.0) | (degree < math.inf) | (powered if by is None else x != x))
    a_here, b_here, c_here = (where(known, v, 1.5) for v in (a, b, c))
    inside = where(known, lax.clamp(number(-1e300), x, number(1e300)), 0.25)
    ends, polynomials = _ending(a_here, b_here, c_here, inside, by)
    general = ~ends & (inside < 1.0)
    c_sane = where(is_whole(c_here), 1.5, c_here)
    out = _below_one(a_here, b_here, c_sane, where(general, inside, 0.25))
    out = where(ends, polynomials, where(c_here < LEAST, math.nan, out))
    lost = known & ~ends & ~general & (x > 1.0)
    if by is not None:
        out = where(lost, (a, b, c)[by] * math.nan, out)
    at_one = lax.eq(x, number(1.0)) & in_reach & ~(known & ends)
    beyond = where(within, math.inf, math.nan)
    if by is not None:
        beyond = where(powered, (a, b, c)[by] * math.nan, beyond)
    out = where(at_one, _at_one(a, b, where(pole, 1.5, c)), where(known, out, beyond))
    constants = [lax.eq(v, number(0.0)) & ~pole for i, v in enumerate((a, b)) if i != by]
    constant = functools.reduce(lambda p, q: p | q, constants, lax.eq(x, number(0.0)))
    return where(constant, 1.0, out)


def is_scipys(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return where SciPy is right; for larger parameters it loses digits."""
    inside = (abs(a) <= 6) & (abs(b) <= 6) & (c > 0.01) & (c <= 6) & (abs(x) <= 0.9)
    for v in (a, b, c - a, c - b):
        inside &= v.round() != v
    return inside
