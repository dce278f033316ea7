"""Formulas about the gamma function that others build on, written for NumPy arrays and StableHLO values.

`ops` is `_eager.ARRAYS` or its counterpart in `translations.special`; values are of float64, and `ops.epsilon` is the
required relative accuracy. Constants are computed on first use, from exact rational numbers if possible.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

DOUBLE = 2.0**-52
SINGLE = 2.0**-32  # accurate enough for results that are rounded to float32
# The positive zero of digamma, 1.46163214496836234126265954232572132846819620400644 (OEIS A030169), in two parts.
_ROOT_HIGH, _ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Compute `sum(c[i] * x**i)`, by Horner's rule."""
    out = x * 0.0 + coefficients[-1]
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


def hurwitz_tail(s: int, q: float) -> float:
    """Compute `sum((q + n)**-s)` over n >= 0: 60 terms, the rest by Euler and Maclaurin's formula (DLMF 25.11.5)."""
    w = q + 60
    rest = w ** (1 - s) / (s - 1) + w**-s / 2 + s * w ** (-s - 1) / 12
    rest += math.perm(s + 4, 5) * w ** (-s - 5) / 30240 - math.perm(s + 2, 3) * w ** (-s - 3) / 720
    return math.fsum([*((q + n) ** -s for n in range(60)), rest])


@functools.cache
def _near_two() -> tuple[float, ...]:
    """Return coefficients of `lgamma(2 + t) / t`, from DLMF 5.7.3."""
    return (1 - 0.5772156649015329, *((-1) ** k * hurwitz_tail(k, 2.0) / k for k in range(2, 30)))


@functools.cache
def _near_root() -> tuple[float, ...]:
    """Return coefficients of `digamma(root + h) / h`: its derivatives are zeta functions (DLMF 25.11.12)."""
    return tuple((-1) ** (k + 1) * hurwitz_tail(k + 1, _ROOT_HIGH) for k in range(1, 26))


def log_gamma(ops: Any, x: Any, elsewhere: Any) -> Any:
    """Compute `log|gamma(x)|`, accurate also if it is small, about 1 and 2; `elsewhere` is its value further away."""
    near_one, near_two = ops.abs(x - 1.0) <= 0.5, ops.abs(x - 2.0) <= 0.5
    t = ops.where(near_one, x - 1.0, ops.where(near_two, x - 2.0, 0.0))
    at_two = t * polynomial(t, _near_two())
    return ops.where(near_one, at_two - ops.log1p(t), ops.where(near_two, at_two, elsewhere))


def log_gamma_1p(ops: Any, t: Any) -> Any:
    """Compute `log(gamma(1 + t))` for positive `t`, accurate also near 0."""
    near = t <= 0.5
    small = ops.where(near, t, 0.0)
    count = 29 if ops.epsilon == DOUBLE else 16
    return ops.where(
        near, small * polynomial(small, _near_two()[:count]) - ops.log1p(small), ops.lgamma_positive(t + 1.0)
    )


def digamma(ops: Any, x: Any, elsewhere: Any) -> Any:
    """Compute the derivative of `log_gamma`, accurate also about its zero; `elsewhere` is its value further away."""
    h = (x - _ROOT_HIGH) - _ROOT_LOW
    near = ops.abs(h) < 0.25
    h = ops.where(near, h, 0.0)
    return ops.where(near, h * polynomial(h, _near_root()), elsewhere)


def stirling_rest(x: Any) -> Any:
    """Compute `lgamma(x)` less `(x - 1/2) log(x) - x + log(2 pi) / 2`, for `x >= 10` (DLMF 5.11.1)."""
    coefficients = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
    inverse = 1.0 / x
    return inverse * polynomial(inverse * inverse, coefficients)


def log1p_less(ops: Any, t: Any, total: Any) -> Any:
    """Compute `log(total) - t` for `total = 1 + t`, accurate also near 0: `log1p(t) = 2 atanh(r)`, `r = t / (2 + t)`.

    The caller passes the sum, because near `t = -1` it has more digits than `1 + t`.
    """
    near = ops.abs(t) < 0.35
    small = ops.where(near, t, 0.0)
    r = small / (small + 2.0)
    y = r * r
    series = r * (2.0 * y * polynomial(y, [1 / (2 * k + 3) for k in range(13 if ops.epsilon == DOUBLE else 7)]) - small)
    return ops.where(near, series, ops.log(ops.where(near, 1.0, total)) - t)


def expm1_less(ops: Any, t: Any) -> Any:
    """Compute `exp(t) - 1 - t`, accurate also near 0."""
    near = ops.abs(t) < 0.35
    small = ops.where(near, t, 0.0)
    terms = [1 / math.factorial(k) for k in range(2, 14 if ops.epsilon == DOUBLE else 10)]
    return ops.where(near, small * small * polynomial(small, terms), ops.expm1(t) - t)


_BERNOULLI = [
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
]  # fmt: skip


def _all(unit: Any) -> tuple[Any, ...]:
    return () if unit is None else (unit,)


def _zeta_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Add the last term to the sum, and compute the next one."""
    (q, exponent, *unit), (total, last) = inputs, state
    return total + last, ops.power((q + n) * unit[0] if unit else q + n, exponent)


def _positive_zeta(ops: Any, s: Any, q: Any, unit: Any, often: bool) -> Any:
    """Compute the Hurwitz zeta function for `s > 1`, `q > 0`: terms, and Euler and Maclaurin's formula (DLMF 25.11.5).

    If it is needed `often`, the loop over terms is unrolled, so that compilers can split it over threads; a loop in the
    program is shorter.
    """
    far = q > 1e16
    terms, corrections = (12, 10) if ops.epsilon == DOUBLE else (4, 6)
    exponent, zero = ops.where(far, 1.0 - s, 0.0 - s), ops.where(far, 0.0, 0.0)
    total, power = zero, zero
    inputs = (q, exponent, *_all(unit))
    if often:
        for n in range(terms + 1):
            total, power = _zeta_step(ops, float(n), inputs, (total, power))
    else:
        total, power = ops.repeated(_zeta_step, inputs, (total, power), terms + 1)
    w = q + float(terms)
    rest, factor, inverse = w / (s - 1.0) + 0.5, s / w, 1.0 / (w * w)
    for k, bernoulli in enumerate(_BERNOULLI[:corrections], 1):
        rest = rest + factor * (bernoulli / math.factorial(2 * k))
        factor = factor * (s + float(2 * k - 1)) * (s + float(2 * k)) * inverse
    done = (power == 0.0) | (total == math.inf)  # ignores `rest`, which may be negative here
    out = total + ops.where(done, 0.0, power * rest)
    beyond = power / (s - 1.0)  # for huge `q` the integral is the whole sum
    return ops.where(far, beyond if unit is None else beyond / unit, out)


def _zeta_below(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Add one of the two values of `_with_terms_below`, n = 0 and 1; if `q` ends in 1/2, they cancel or double."""
    (s, q, *unit), (total,) = inputs, state
    first, even, below = n == 0.0, ops.floor(s * 0.5) * 2.0 == s, ops.floor(q)
    half = q - below == 0.5
    at = ops.where(first, (below + 1.0) - q, 1.0 - q)
    value = _positive_zeta(ops, s, at, unit[0] if unit else None, False)
    less, more = ops.where(first & half, 0.0, total - value), total + value
    return (ops.where(even, ops.where(first, more, less), ops.where(first, less, more)),)


def _with_terms_below(ops: Any, out: Any, s: Any, q: Any, *unit: Any) -> Any:
    """Add to `out`, the value at the fractional part of a negative `q`, the terms below."""
    (total,) = ops.repeated(_zeta_below, (s, q, *unit), (out,), 2)
    return ops.where(q < 0.0, total, out)


def zeta(ops: Any, s: Any, q: Any, unit: Any = None) -> Any:
    """Compute the Hurwitz zeta function `sum((q + n)**-s)`; with a `unit`, `sum((unit * (q + n))**-s)`.

    It is NaN for `s < 1`, and if terms have no real value or both signs: for negative `q` with fractional `s`, and at
    poles with odd `s`.
    """
    negative = q < 0.0
    sane = ops.where(negative & (q > -1e15), q, 0.0)
    out = _positive_zeta(ops, s, ops.where(negative, sane - ops.floor(sane), q), unit, True)
    out = ops.if_any(sane < 0.0, _with_terms_below, out, s, sane, *_all(unit))
    whole, even = ops.floor(s) == s, ops.floor(s * 0.5) * 2.0 == s
    at_pole = ops.where(even, math.inf, math.nan)
    not_positive = ops.where(ops.floor(q) == q, at_pole, ops.where(whole, out, math.nan))
    out = ops.where(q <= 0.0, not_positive, out)
    out = ops.where(s == 1.0, math.inf, ops.where(s > 1.0, out, math.nan))
    return ops.where(q == q, out, math.nan)


_FACTORIALS = 8


def polygamma(ops: Any, m: Any, x: Any) -> Any:
    """Compute the `m`-th derivative of `digamma`: `(-1)**(m+1) m! zeta(m+1, x)` (DLMF 25.11.12); NaN for invalid `m`.

    From 8 on the factorial, which overflows, becomes a factor of the base of each power.
    """
    many = m >= float(_FACTORIALS)
    order = ops.where(many, m, float(_FACTORIALS)) + 1.0
    unit = ops.where(many, ops.exp((0.0 - ops.lgamma(order)) / order), 1.0)
    factorial = ops.where(many, 1.0, 1.0)
    for small in range(2, _FACTORIALS):
        factorial = ops.where(m == float(small), float(math.factorial(small)), factorial)
    even = ops.floor(m * 0.5) * 2.0 == m
    size = factorial * ops.zeta(m + 1.0, x, unit)
    out = ops.where(m == 0.0, ops.digamma(x), ops.where(even, 0.0 - size, size))
    return ops.where((m >= 0.0) & (ops.floor(m) == m), out, math.nan)
