"""Kummer's function by its differential equation (DLMF 13.2.1), far out by its asymptotic series (DLMF 13.7.1).

What is computed is `M(a, b, z)` for `z >= 0`: for negative `x` it is `exp(-z) M(b - a, b, z)` with `z = -x` (DLMF 13.2.39).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, sin_pi, where
from corejax_scipy.special._rows import in_float64, scipy_special
from corejax_scipy.special._taylor import LARGE, Equation, Step, integrated
from corejax_scipy.special.gamma_functions import gammasgn_formula

LARGEST = 1e4
_LIMIT = 50_000  # terms
_FAR_TERMS = 60


def _term(params: Any, step: Step) -> Any:
    a, b, _ = params
    n, k, h, z = step.n, step.n - 1.0, step.h, step.p
    begins = lax.eq(z, number(0.0))
    below = n * (n + 1.0) * where(begins, 1.0, z)
    onward = ((k + a) * h * h * step.before - n * (k + b - z) * h * step.last) / below
    return where(begins, (n + a) / ((n + 1.0) * (n + b)) * h * step.last, onward)


def _cap(a: Any, b: Any, z: Any) -> Any:
    """A step in which neither an oscillation nor the other solution grows by more than `exp(4)`, all by `exp(200)`.

    By the roots of the characteristic equation there, `z r**2 + (b - z) r = a`.
    """
    gap = z - b
    square = gap * gap + 4.0 * a * z
    root = lax.sqrt(lax.abs(square))
    waves = square < 0.0
    falling = lax.max(-gap, 0.0 * z)
    against = where(waves, root + falling, lax.max(root - gap, 0.0 * z))
    along = lax.max(gap + where(waves, 0.0, root), 0.0 * z)
    return 2.0 * z / (against / 4.0 + along / 200.0)


def _reach(params: Any, z: Any) -> Any:
    a, b, last = params
    rest = last - z
    step = lax.min(0.5 * z, _cap(a, b, z))
    return where(rest <= 1e-15 * z, 0.0, lax.min(rest, step))


def _first(a: Any, b: Any, z: Any) -> Any:
    """The first step, in which the series has few changes of sign, or small terms; for negative `b` beyond those."""
    zero = 0.0 * z
    later = a + lax.max(-b, zero)
    few = lax.max(4.0 * (lax.abs(b) + 1.0) / lax.max(lax.abs(later), zero + 1.0), zero + 0.125)
    many = 1.0 / (0.005 + lax.max(a, zero) / 1e4)
    return lax.min(z, where(later < -3.0, lax.min(few, many), many))


_EQUATION = Equation(
    0.0, lambda params, h: params[0] / params[1] * h, _term, _reach, lambda params: lax.min(-params[1], 1e4 + 0.0 * params[1])
)


def _near(a: Any, b: Any, z: Any, exponent: Any) -> Any:
    """`exp(exponent) M(a, b, z)` for moderate `z`."""

    @corejax.custom_jvp
    def solution(a: Any, b: Any, z: Any) -> Any:
        step, _ = integrated(_EQUATION, (a, b, z), _first(a, b, z), _LIMIT)
        return step.total, step.times

    @solution.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        a, b, z = primals
        step, by = integrated(_EQUATION, primals, _first(a, b, z), _LIMIT, (*tangents[:2], z * 0.0))
        return (step.total, step.times), (by.total, 0.0 * z)

    total, times = solution(a, b, lax.stop_gradient(z))
    return total * lax.exp(exponent + times * math.log(LARGE))


def _reciprocal_gamma(a: Any) -> tuple[Any, Any]:
    """`1 / gamma(a)` as a factor and the logarithm of another one, smooth at its zeros."""
    reflected = a < 0.5
    other = where(reflected, 1.0 - a, a)
    sign = where(reflected, sin_pi(a) / math.pi, 1.0)
    return sign, where(reflected, lax.lgamma(other), -lax.lgamma(other))


def _far(a: Any, b: Any, z: Any, exponent: Any) -> Any:
    """`exp(exponent) M(a, b, z)` for large `z`: what grows, and what is left of it where that is zero."""
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
    (grown, by_a), (rest, by_difference) = _reciprocal_gamma(a), _reciprocal_gamma(b - a)
    size = lax.lgamma(b)
    first = grown * lax.exp(size + by_a + (a - b) * logarithm + (exponent + z)) * sums[0]
    cosine = sin_pi(a + 0.5)
    other = cosine * rest * lax.exp(size + by_difference - a * logarithm + exponent) * sums[1]
    first, other = (where(lax.eq(x, number(0.0)), 0.0, y) for x, y in ((grown, first), (cosine * rest, other)))
    return gammasgn_formula(b) * (first + other)


def _known(a: Any, b: Any, x: Any) -> Any:
    return (abs(a) <= LARGEST) & (abs(b) <= LARGEST) & (x == x)


def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's function of float64."""
    a, b, x = jnp.broadcast_arrays(a, b, x)
    pole = (b <= 0.0) & (lax.floor(b) == b)
    known = _known(a, b, x) & ~pole
    a_sane, b_sane = where(known, a, 1.5), where(known, b, 1.5)
    z = where(known, lax.min(lax.abs(x), 1e300 + 0.0 * x), 0.0)
    negative = x < 0.0
    first = where(negative, b_sane - a_sane, a_sane)
    p, q = lax.abs(b_sane - first), lax.abs(1.0 - first)
    u, v = lax.abs(first), lax.abs(first - b_sane + 1.0)
    far = z > 60.0 + p + q + u + v + 2.0 * (p * q + u * v)
    exponent = where(negative, -z, 0.0)
    near = _near(first, b_sane, where(far, 0.0, z), where(far, 0.0, exponent))
    beyond = _far(where(far, first, 1.0), where(far, b_sane, 1.5), where(far, z, 100.0), where(far, exponent, 0.0))
    out = where(far, beyond, near)
    out = where(known, out, where(pole, math.inf, math.nan))
    return where(lax.eq(x, number(0.0)) | lax.eq(a, number(0.0)), 1.0, out)


def on_host(a: Any, b: Any, x: Any) -> Any:
    """SciPy's, where parameters are not larger than ours."""
    a, b, x = np.broadcast_arrays(*[np.asarray(v, np.float64) for v in (a, b, x)])
    with np.errstate(all="ignore"):
        pole = (b <= 0) & (np.floor(b) == b)
        out = scipy_special("hyp1f1")(a, b, x)
        out = np.where(_known(a, b, x) & ~pole, out, np.where(pole, np.inf, np.nan))
    return np.where((x == 0) | (a == 0), 1.0, out)


def derivative(position: int) -> Any:
    """The derivative by one operand, in forward mode through the loops."""

    def slope(out: Any, *xs: Any) -> Any:
        @in_float64
        def computed(*wide: Any) -> Any:
            wide = jnp.broadcast_arrays(*wide)

            def of_one(p: Any) -> Any:
                return hyp1f1(*wide[:position], p, *wide[position + 1 :])

            return corejax.jvp(of_one, (wide[position],), (jnp.ones_like(wide[position]),))[1]

        return computed(*jnp.broadcast_arrays(*xs))

    return slope
