"""Confluent and Gauss's hypergeometric functions of real numbers: hyp1f1 hyp2f1.

Elementwise; TypeError for what is no array, ValueError for complex numbers. Definitions: DLMF 13 and 15. Compiled, they
are sums of series after a transformation of the argument; derivatives by parameters are those of the sums.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import number, where
from corejax_scipy.special._rows import in_float64, row, scipy_special
from corejax_scipy.special.gamma_functions import gamma_formula, gammasgn_formula

_EPSILON = 2.0**-54


def _sum(ratio: Any, first: Any, limit: int) -> Any:
    """`first * (1 + r(0) + r(0) r(1) + ...)`, until no term of any element counts.

    Args:
        ratio: of the term after the `n`-th to that, given `n`.
        first: the first term.
        limit: the largest number of terms.
    """

    def going(state: Any) -> Any:
        n, _, _, more = state
        return (n < limit) & jnp.any(more)

    def step(state: Any) -> Any:
        n, term, total, more = state
        term = where(more, term * ratio(n), 0.0)
        total = total + term
        # Early terms may be small or zero by chance, so two hundredths of the terms are needed at least.
        counts = (lax.abs(term) > _EPSILON * lax.abs(total)) | ((n < 8.0) & (term != 0.0))
        return n + 1.0, term, total, more & counts & lax.is_finite(total)

    start = (number(0.0), first, first, lax.eq(first, first))
    return lax.while_loop(going, step, start)[2]


# -- 1F1 ---------------------------------------------------------------------------------------------------------


def _scaled_1f1(a: Any, b: Any, x: Any) -> Any:
    """`exp(-x) 1F1(a, b, x)` for `x >= 0`: the power series, or the asymptotic one (DLMF 13.7.2)."""
    far = x > 60.0 + 2.0 * lax.abs(a) * lax.abs(a) + 2.0 * lax.abs(b)
    near = where(far, 1.0, x)
    series = _sum(lambda n: (a + n) / (b + n) * (near / (n + 1.0)), lax.exp(-near), 4000)
    large = where(far, x, 1e4)
    tail = _sum(lambda n: where(n < 30.0, (b - a + n) * (1.0 - a + n) / ((n + 1.0) * large), 0.0), x * 0.0 + 1.0, 30)
    sign = gammasgn_formula(b) * gammasgn_formula(a)
    pole = (a <= 0.0) & (lax.floor(a) == a)
    scale = where(pole, 0.0, sign * lax.exp(lax.lgamma(b) - lax.lgamma(where(pole, 1.0, a)) + (a - b) * lax.log(large)))
    return where(far, scale * tail, series)


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """By Kummer's transformation for negative `x` (DLMF 13.2.39)."""
    a, b, x = jnp.broadcast_arrays(a, b, x)
    pole = (b <= 0.0) & (lax.floor(b) == b)
    b_sane = where(pole, 1.5, b)
    negative = x < 0.0
    out = _scaled_1f1(where(negative, b_sane - a, a), b_sane, lax.abs(x))
    out = where(negative, out, out * lax.exp(0.5 * lax.abs(x)) * lax.exp(0.5 * lax.abs(x)))
    terminates = (a <= 0.0) & (lax.floor(a) == a)
    polynomial = _sum(lambda n: where(n < -a, (a + n) / (b_sane + n) * (x / (n + 1.0)), 0.0), x * 0.0 + 1.0, 400)
    out = where(terminates & (a > -400.0), polynomial, out)
    return where(pole, math.inf, where((a == 0.0) | (x == 0.0), 1.0, out))


def _by_parameter(formula: Any, position: int, ends: tuple[int, ...]) -> Any:
    """The derivative of a formula by one operand, in forward mode through its loops.

    Where one of the operands `ends` is 0, -1, -2, ... the formula is a polynomial, which says nothing of its
    neighbours: there the derivative is the mean of those at distances 1, 2 and 3, extrapolated to 0.
    """

    def slope(out: Any, *xs: Any) -> Any:
        @in_float64
        def computed(*wide: Any) -> Any:
            polynomial = functools.reduce(
                lambda p, q: p | q, [(wide[i] <= 0.0) & (lax.floor(wide[i]) == wide[i]) for i in ends]
            )

            def at(*xs: Any) -> Any:
                def of_one(p: Any) -> Any:
                    return formula(*xs[:position], p, *xs[position + 1 :])

                return corejax.jvp(of_one, (xs[position],), (jnp.ones_like(xs[position]),))[1]

            def beside(*xs: Any) -> Any:
                steps = [jnp.where(polynomial, 0.02 * k * sign, 0.0) for k in (1, 2, 3) for sign in (1.0, -1.0)]
                given = [jnp.stack([x + h if i in ends else x for h in steps]) for i, x in enumerate(xs)]
                found = at(*given)
                return sum(0.5 * w * (found[2 * k] + found[2 * k + 1]) for k, w in enumerate((1.5, -0.6, 0.1)))

            return lax.cond(jnp.any(polynomial), beside, at, *wide)

        return computed(*jnp.broadcast_arrays(*xs))

    return slope


hyp1f1, hyp1f1_p = row(
    "hyp1f1",
    _hyp1f1,
    [
        _by_parameter(_hyp1f1, 0, (0,)),
        _by_parameter(_hyp1f1, 1, (0,)),
        lambda out, a, b, x: a / b * hyp1f1(a + 1.0, b + 1.0, x),
    ],
    "Kummer's confluent hypergeometric function `1F1(a, b, x)`, infinite where `b` is 0, -1, -2, ...",
    arguments="a b x",
)

# -- 2F1 ---------------------------------------------------------------------------------------------------------


def _gauss_series(a: Any, b: Any, c: Any, x: Any, limit: int = 2000) -> Any:
    return _sum(lambda n: (a + n) * (b + n) / ((c + n) * (n + 1.0)) * x, x * 0.0 + 1.0, limit)


def _quotient(top: Any, below: Any) -> Any:
    """`gamma(top[0]) gamma(top[1]) / gamma(below[0]) / gamma(below[1])`, 0 at poles of the denominator."""
    out = gamma_formula(top[0]) * gamma_formula(top[1])
    for x in below:
        pole = (x <= 0.0) & (lax.floor(x) == x)
        out = where(pole, 0.0, out / gamma_formula(where(pole, 1.0, x)))
    return out


def _near_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """For `0.8 < x < 1`: in `1 - x` (DLMF 15.8.4); for whole `c - a - b` the mean of two neighbours' (15.8.10)."""
    gap = c - a - b
    nearest = lax.round(gap, lax.RoundingMethod.TO_NEAREST_EVEN)
    whole = lax.abs(gap - nearest) < 0.018

    def reflected(c: Any) -> Any:
        d, y = c - (a + b), 1.0 - x + 0.0 * c
        first = _quotient((c, d), (c - a, c - b)) * _gauss_series(a, b, 1.0 - d, y)
        other = _quotient((c, -d), (a, b)) * lax.pow(y, d) * _gauss_series(c - a, c - b, 1.0 + d, y)
        return first + other

    # A function of c that is smooth: means at distances 1, 2, ... are extrapolated to 0. All in one sum.
    h, base = 0.04, where(whole, c, c + 0.25)
    cs = [base + sign * k * h for k in range(1, 6) for sign in (1.0, -1.0)]
    found = reflected(jnp.stack([where(whole, c + 0.25, c), *cs]))
    weights = (5 / 3, -20 / 21, 5 / 14, -5 / 63, 1 / 126)
    means = [0.5 * w * (found[2 * k + 1] + found[2 * k + 2]) for k, w in enumerate(weights)]
    return where(whole, functools.reduce(lambda p, q: p + q, means), found[0])


def _inside(a: Any, b: Any, c: Any, x: Any) -> Any:
    """For `0 <= x < 1`."""
    near = x > 0.8
    series = _gauss_series(a, b, c, where(near, 0.0, x))
    return where(near, _near_one(a, b, c, where(near, x, 0.9)), series)


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Negative `x` by Pfaff's transformation (DLMF 15.8.1); polynomials at every `x`."""
    a, b, c, x = jnp.broadcast_arrays(a, b, c, x)
    pole = (c <= 0.0) & (lax.floor(c) == c)
    ends_a, ends_b = (a <= 0.0) & (lax.floor(a) == a), (b <= 0.0) & (lax.floor(b) == b)
    terminates = ends_a | ends_b
    degree = lax.min(where(ends_a, -a, 1e9), where(ends_b, -b, 1e9))
    sane_c = where(pole & ~(terminates & (degree < 1.0 - c)), 1.5, c)

    def ratio(n: Any) -> Any:
        return where(n < degree, (a + n) * (b + n) / ((sane_c + n) * (n + 1.0)) * x, 0.0)

    polynomial = _sum(lambda n: where(terminates, ratio(n), 0.0), x * 0.0 + 1.0, 2000)
    negative = x < 0.0
    inside = where((x < 1.0) & ~terminates, x, 0.5)
    z = where(negative, inside / (inside - 1.0), inside)
    other = where(negative, sane_c - b, b)
    scale = where(negative, lax.pow(1.0 - where(negative, inside, 0.0), -a), 1.0)
    out = scale * _inside(a, other, sane_c, z)
    at_one = where(
        c - a - b > 0.0, _quotient((sane_c, where(c - a - b > 0.0, c - a - b, 1.0)), (c - a, c - b)), math.inf
    )
    out = where(x == 1.0, at_one, where(x > 1.0, math.inf, out))
    out = where(terminates, polynomial, out)
    out = where(pole & ~(terminates & (degree < 1.0 - c)), math.inf, out)
    return where((x == 0.0) | (a == 0.0) | (b == 0.0), 1.0, out)


def _on_host(a: Any, b: Any, c: Any, x: Any) -> Any:
    return np.asarray(scipy_special("hyp2f1")(*(v.astype(np.float64) for v in (a, b, c, x)))).astype(x.dtype)


hyp2f1, hyp2f1_p = row(
    "hyp2f1",
    _hyp2f1,
    [
        _by_parameter(_hyp2f1, 0, (0, 1)),
        _by_parameter(_hyp2f1, 1, (0, 1)),
        _by_parameter(_hyp2f1, 2, (0, 1)),
        lambda out, a, b, c, x: a * b / c * hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
    ],
    "Gauss's hypergeometric function `2F1(a, b; c; x)` for `x < 1`; infinite beyond, unless it is a polynomial.",
    impl=_on_host,
    arguments="a b c x",
)
