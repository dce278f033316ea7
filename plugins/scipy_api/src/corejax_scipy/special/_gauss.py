"""Gauss's function by its differential equation (DLMF 15.10.1), from 0 on towards 1.

Negative arguments are taken there by Pfaff's transformation (DLMF 15.8.1). Where `y`, the distance to 1, is tiny, the
solution is `p + q y**(c-a-b)`, and that is continued (DLMF 15.10.11).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, where
from corejax_scipy.special._rows import in_float64, scipy_special
from corejax_scipy.special._taylor import LARGE, Equation, Step, integrated
from corejax_scipy.special.gamma_functions import gamma_formula

LARGEST = 1e3
_LIMIT = 50_000  # terms
_NEAREST = 2.0**-52  # to 1
_FEW = 2.0  # the largest degree of polynomials that are summed as such


def _first_term(params: Any, h: Any) -> Any:
    a, b, c, _ = params
    return a * b / c * -h


def _term(params: Any, step: Step) -> Any:
    """By `t = -h`, for the equation is written in `y = 1 - z`."""
    a, b, c, _ = params
    n, k, y, t = step.n, step.n - 1.0, step.p, -step.h
    z = 1.0 - y
    begins = lax.eq(y, number(1.0))
    below = n * (n + 1.0) * where(begins, 1.0, z * y)
    middle = (y - z) * k + (c - (a + b + 1.0) * z)
    onward = ((k + a) * (k + b) * t * t * step.before - n * middle * t * step.last) / below
    return where(begins, (n + a) * (n + b) / ((n + 1.0) * (n + c)) * t * step.last, onward)


def _reach(params: Any, y: Any) -> Any:
    """Half of the way to 1, or less, see `_kummer.cap`: by the roots of `z y r**2 + (c - (a+b+1) z) r = a b`."""
    a, b, c, last = params
    z = 1.0 - y
    gap, size = (a + b + 1.0) * z - c, z * y
    square = gap * gap + 4.0 * a * b * size
    root, waves = lax.sqrt(lax.abs(square)), square < 0.0
    falling = lax.max(-gap, 0.0 * y)
    against = where(waves, root + falling, lax.max(root - gap, 0.0 * y))
    along = lax.max(gap + where(waves, 0.0, root), 0.0 * y)
    cap = 2.0 * size / (against / 4.0 + along / 200.0 + 1e-30)
    there = lax.max(last, y - lax.min(0.5 * lax.min(y, z), cap))
    return where(y - last <= 1e-15 * y, 0.0, there - y)


_EQUATION = Equation(1.0, _first_term, _term, _reach, lambda params: lax.min(-params[2], 0.0 * params[2] + 1e4))


def _solution(a: Any, b: Any, c: Any, z: Any, y: Any, all_at_once: Any) -> tuple[Any, Any]:
    """`F(a, b; c; z)` as a value and how often it was divided by `LARGE`; `y = 1 - z`; a polynomial may be `all_at_once`."""
    zero = 0.0 * z
    later = lax.max(-c, zero)  # where the signs of a series with negative c are those of its terms
    alternating = lax.max(-((a + later) * (b + later)), zero)
    cap = (lax.abs(c) + 1.0) / lax.max(alternating, zero + 1.0)
    half = lax.floor(lax.min(zero + 0.5, 2.0 * cap) * 1024.0) / 1024.0
    half = lax.max(half, zero + 2.0**-10)
    first = -where(all_at_once | (z <= half), z, half)
    last = where(all_at_once, 1.0 - z, lax.max(y, zero + _NEAREST))

    @corejax.custom_jvp
    def solution(a: Any, b: Any, c: Any) -> Any:
        step, _ = integrated(_EQUATION, (a, b, c, last), first, _LIMIT)
        return step.total, step.slope / step.h, step.times

    @solution.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        step, by = integrated(_EQUATION, (*primals, last), first, _LIMIT, (*tangents, zero))
        return (step.total, step.slope / step.h, step.times), (by.total, by.slope / step.h, zero)

    total, by_y, times = solution(a, b, c)
    beyond = (y < _NEAREST) & ~all_at_once
    d, change = c - a - b, lax.log(where(beyond, y, _NEAREST) / _NEAREST)
    flat = lax.abs(d * change) < 1e-8
    rest = where(flat, change * (1.0 + 0.5 * d * change), lax.expm1(d * change) / where(flat, 1.0, d))
    return where(beyond, total + _NEAREST * by_y * rest, total), times



def _below_one(a: Any, b: Any, c: Any, x: Any, degree: Any, direct: Any) -> Any:
    """For `x < 1`, and polynomials, `direct`, at any `x`."""
    negative = (x < 0.0) & ~direct
    swap = negative & (a > b)
    a, b = where(swap, b, a), where(swap, a, b)
    inside = where(direct, 0.5, x)
    y = where(negative, 1.0 / (1.0 - inside), 1.0 - inside)
    z = where(direct, x, where(negative, inside / (inside - 1.0), inside))
    a_here, b_here = a, where(negative, c - b, b)
    # Euler's transformation, where that leaves terms of one sign (DLMF 15.8.1).
    p, q = c - a_here, c - b_here
    before, after = a_here * b_here, p * q
    sizes = [where(v < 0.0, 1e7, 0.0) + lax.abs(v) for v in (before, after)]
    turned = ~direct & (sizes[1] < sizes[0]) & (y > 1e-15)
    power = where(negative, a, 0.0) + where(turned, c - a_here - b_here, 0.0)
    a_here, b_here = where(turned, p, a_here), where(turned, q, b_here)
    total, times = _solution(a_here, b_here, c, z, y, direct)
    logarithm = where(direct, 0.0, where(negative, -lax.log1p(-where(negative, inside, 0.0)), lax.log1p(-where(negative, 0.0, inside))))
    return total * lax.exp(power * logarithm + times * math.log(LARGE))


def _at_one(a: Any, b: Any, c: Any) -> Any:
    """Gauss's sum (DLMF 15.4.20)."""
    d = c - a - b
    converges = d > 0.0
    out = gamma_formula(c) * gamma_formula(where(converges, d, 1.0))
    for x in (c - a, c - b):
        pole = (x <= 0.0) & (lax.floor(x) == x)
        out = where(pole, 0.0, out / gamma_formula(where(pole, 1.0, x)))
    return where(converges, out, math.inf)


def _known(a: Any, b: Any, c: Any, x: Any) -> Any:
    return (abs(a) <= LARGEST) & (abs(b) <= LARGEST) & (abs(c) <= LARGEST) & (x == x)


def hyp2f1(a: Any, b: Any, c: Any, x: Any, smooth: bool = False) -> Any:
    """Gauss's function of float64; `smooth` to be differentiated by parameters, where polynomials are no others."""
    a, b, c, x = jnp.broadcast_arrays(a, b, c, x)
    ends_a, ends_b = (a <= 0.0) & (lax.floor(a) == a), (b <= 0.0) & (lax.floor(b) == b)
    degree = lax.min(where(ends_a, -a, 1e9), where(ends_b, -b, 1e9))
    whole = (c <= 0.0) & (lax.floor(c) == c)
    pole = whole & (degree > -c)
    terminates = degree < 1e9
    known = _known(a, b, c, x) & ~pole & (terminates | (x < 1.0))
    sane = [where(known, v, 1.5) for v in (a, b, c)]
    inside = where(known, lax.clamp(number(-1e300), x, number(1e300)), 0.25)
    direct = known & terminates & ((x >= 1.0) | whole | (degree <= _FEW))
    if smooth:
        direct = direct & ((x >= 1.0) | whole)
    out = _below_one(*sane, inside, degree, direct)
    out = where(lax.eq(x, number(1.0)) & ~terminates & _known(a, b, c, x), _at_one(a, b, where(pole, 1.5, c)), out)
    beyond = where(_known(a, b, c, x), math.inf, math.nan)
    out = where(known | (lax.eq(x, number(1.0)) & ~pole), out, beyond)
    if smooth:
        out = where(direct, math.nan, out)
    return where(lax.eq(x, number(0.0)) | lax.eq(a, number(0.0)) | lax.eq(b, number(0.0)), 1.0, out)


def on_host(a: Any, b: Any, c: Any, x: Any) -> Any:
    """SciPy's, where parameters are not larger than ours."""
    a, b, c, x = np.broadcast_arrays(*[np.asarray(v, np.float64) for v in (a, b, c, x)])
    with np.errstate(all="ignore"):
        out = np.where(_known(a, b, c, x), scipy_special("hyp2f1")(a, b, c, x), np.nan)
    return np.where((x == 0) | (a == 0) | (b == 0), 1.0, out)


def derivative(position: int) -> Any:
    """The derivative by one operand, in forward mode through the loop."""

    def slope(out: Any, *xs: Any) -> Any:
        @in_float64
        def computed(*wide: Any) -> Any:
            wide = jnp.broadcast_arrays(*wide)

            def of_one(p: Any) -> Any:
                return hyp2f1(*wide[:position], p, *wide[position + 1 :], smooth=True)

            return corejax.jvp(of_one, (wide[position],), (jnp.ones_like(wide[position]),))[1]

        return computed(*jnp.broadcast_arrays(*xs))

    return slope
