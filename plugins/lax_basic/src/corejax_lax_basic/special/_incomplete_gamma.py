"""Incomplete gamma functions by series, continued fraction and uniform expansion, and their derivative by `a`.

The formulas are written once for NumPy arrays and StableHLO values of float64, see `_series`. With

    E = x**a exp(-x) / gamma(a+1),    P = E sum(x**n / ((a+1) ... (a+n)))                    (DLMF 8.11.4)
                                      Q = a E / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / ...))    (DLMF 8.9.2)

and, if `a`, `x` and so `Q` are small, `Q = 1 - x**a/gamma(a+1) - a x**a/gamma(a+1) sum((-x)**n/(n!(a+n)))`.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic.special import _short_gamma, _uniform
from corejax_lax_basic.special._series import SINGLE, log1p_less, log_gamma_1p, stirling_rest

_LIMIT = 2000  # limit of the terms of a series or a continued fraction; some hundred suffice
_BIG = 2.0**52


def _log_power(ops: Any, a: Any, x: Any) -> Any:
    """Compute `log(x**a / gamma(a+1))`, used for `a < 10`."""
    small = ops.where(a < 10.0, a, 1.0)
    return small * ops.log(x) - log_gamma_1p(ops, small)


def _factor(ops: Any, a: Any, x: Any, log_power: Any) -> Any:
    """Compute `E`, without the cancellation of large logarithms."""
    large = ops.where(a < 10.0, 10.0, a)
    mu = (x - large) / large
    by_stirling = large * log1p_less(ops, mu, x / large) - stirling_rest(large) - 0.5 * ops.log(2.0 * math.pi * large)
    return ops.exp(ops.where(a < 10.0, log_power - x, by_stirling))


# -- P over E ------------------------------------------------------------------------------------------------------


def _series_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Add a term of the series."""
    (a, x), (term, total) = inputs, state
    term = term * (x / (a + n))
    total = total + term
    return term > ops.epsilon * total, (term, total)


def _series(ops: Any, a: Any, x: Any, where: Any) -> Any:
    """Compute `P / E`."""
    a, x = ops.where(where, a, 1.0), ops.where(where, x, 0.5)
    one = x * 0.0 + 1.0
    return ops.iterate(_series_step, (a, x), (one, one), _LIMIT, where)[1]


def _series_by_a_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Add a term of the series, and its derivative by `a`, which is negative."""
    (a, x), (term, by_a, total, total_by_a) = inputs, state
    ratio = x / (a + n)
    term, by_a = term * ratio, (by_a - term / (a + n)) * ratio
    total, total_by_a = total + term, total_by_a + by_a
    return (term > ops.epsilon * total) | (by_a < ops.epsilon * total_by_a), (term, by_a, total, total_by_a)


def _series_by_a(ops: Any, a: Any, x: Any, where: Any) -> tuple[Any, Any]:
    """Compute `P / E` and its derivative by `a`."""
    a, x = ops.where(where, a, 1.0), ops.where(where, x, 0.5)
    zero = x * 0.0
    state = (zero + 1.0, zero, zero + 1.0, zero)
    return tuple(ops.iterate(_series_by_a_step, (a, x), state, _LIMIT, where)[2:])


# -- Q over a E ----------------------------------------------------------------------------------------------------


def _fraction_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Compute a convergent of the continued fraction, by the recurrences of numerator and denominator."""
    (a, x), (p, q, p_last, q_last, value) = inputs, state
    z, y = x - a + (2.0 * n + 1.0), (n - a) * n
    p, p_last = p * z - p_last * y, p
    q, q_last = q * z - q_last * y, q
    new = p / q
    scale = ops.where(ops.abs(p) + ops.abs(q) > _BIG, 1.0 / _BIG, 1.0)
    parts = tuple(v * scale for v in (p, q, p_last, q_last))
    return ops.abs(new - value) > ops.epsilon * new, (*parts, new)


def _fraction(ops: Any, a: Any, x: Any, where: Any) -> Any:
    """Compute `Q / (a E)`."""
    a, x = ops.where(where, a, 1.0), ops.where(where, x, 5.0)
    first = 1.0 / (x + 1.0 - a)
    state = (first, first * 0.0 + 1.0, first * 0.0, first, first)
    return ops.iterate(_fraction_step, (a, x), state, _LIMIT, where)[-1]


def _fraction_by_a_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Compute a convergent of the continued fraction, with derivatives by `a` throughout."""
    (a, x, slope), (p, q, p_last, q_last, dp, dq, dp_last, dq_last, value, by_a) = inputs, state
    z, y = x - a + (2.0 * n + 1.0), (n - a) * n
    p, p_last, dp, dp_last = p * z - p_last * y, p, dp * z - p - dp_last * y + p_last * n, dp
    q, q_last, dq, dq_last = q * z - q_last * y, q, dq * z - q - dq_last * y + q_last * n, dq
    new = p / q
    new_by_a = (dp - new * dq) / q
    change = ops.abs((new - value) * slope) + ops.abs(new_by_a - by_a)
    scale = ops.where(ops.abs(p) + ops.abs(q) > _BIG, 1.0 / _BIG, 1.0)
    parts = tuple(v * scale for v in (p, q, p_last, q_last, dp, dq, dp_last, dq_last))
    return change > 2.0 * ops.epsilon * ops.abs(new * slope + new_by_a), (*parts, new, new_by_a)


def _fraction_by_a(ops: Any, a: Any, x: Any, slope: Any, where: Any) -> tuple[Any, Any]:
    """Compute `Q / (a E)` and its derivative by `a`, until `slope` times the former plus the latter is accurate."""
    a, x = ops.where(where, a, 1.0), ops.where(where, x, 5.0)
    first = 1.0 / (x + 1.0 - a)
    zero = first * 0.0
    state = (first, zero + 1.0, zero, first, zero, zero - first, zero, zero, first, first * first)
    *_, value, by_a = ops.iterate(_fraction_by_a_step, (a, x, slope), state, _LIMIT, where)
    return value, by_a


# -- Q for small operands ------------------------------------------------------------------------------------------


def _small_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    (a, x), (term, total) = inputs, state
    term = term * (0.0 - x) / n
    added = term / (a + n)
    return ops.abs(added) > ops.epsilon * ops.abs(total + added), (term, total + added)


def _small_upper(ops: Any, a: Any, x: Any, log_power: Any, where: Any) -> Any:
    """Compute `Q` for `x` up to about 1, accurately also for small `a`."""
    b, y = ops.where(where, a, 0.5), ops.where(where, x, 0.5)
    zero = x * 0.0
    _, total = ops.iterate(_small_step, (b, y), (zero + 1.0, zero), _LIMIT, where)
    return 0.0 - ops.expm1(log_power) - a * ops.exp(log_power) * total


# -- the functions -------------------------------------------------------------------------------------------------


class _Regions:
    """The regions of operands in which each formula is accurate; operands outside of the domain are replaced."""

    def __init__(self, ops: Any, a: Any, x: Any) -> None:
        self.inside = (a > 0.0) & (a < math.inf) & (x >= ops.least) & (x < math.inf)
        self.a, self.x = a, x = ops.where(self.inside, a, 1.0), ops.where(self.inside, x, 0.5)
        self.uniform = (a >= _uniform.LEAST) & (ops.abs(x - a) < _uniform.WIDTH * a)
        self.fraction = (x > 1.1) & (x >= a) & ~self.uniform
        self.series = ~(self.uniform | self.fraction)
        # The operands of the uniform expansion.
        self.large = ops.where(self.uniform, a, 50.0), ops.where(self.uniform, x, 50.0)


def _with_ends(ops: Any, a: Any, x: Any, inside: Any, value: Any, none: Any, all_: Any) -> Any:
    """Return `value` inside of the domain, `none` at its lower ends, `all_` at its upper ends, and NaN outside."""
    low, high = (x == 0.0) | (a == math.inf), (x == math.inf) | (a == 0.0)
    out = ops.where(inside, value, ops.where(low, none, all_))
    # `a == a` is needed: XLA takes `abs(y) >= 0` for true, even for NaN.
    known = (a >= 0.0) & (x >= 0.0) & (a == a) & (x == x) & ~(low & high)
    return ops.where(known, out, math.nan)


def _or_uniform_lower(ops: Any, out: Any, uniform: Any, a: Any, x: Any) -> Any:
    return ops.where(uniform, _uniform.tails(ops, a, x)[0], out)


def _or_uniform_upper(ops: Any, out: Any, uniform: Any, a: Any, x: Any) -> Any:
    return ops.where(uniform, _uniform.tails(ops, a, x)[1], out)


def _or_uniform_slope(ops: Any, out: Any, uniform: Any, a: Any, x: Any) -> Any:
    size, factor = _uniform.derivative(ops, a, x)
    return ops.where(uniform, size * factor, out)


def _or_uniform_over_density(ops: Any, out: Any, uniform: Any, a: Any, x: Any) -> Any:
    return ops.where(uniform, 0.0 - _uniform.over_density(ops, a, x), out)


def _is_small(ops: Any, at: _Regions) -> Any:
    """Return where `_small_upper` is accurate."""
    a, x = at.a, at.x
    return at.series & (x <= 1.1) & ops.where(x <= 0.5, a * ops.log(x) >= -0.4, x * 1.1 >= a)


def lower(ops: Any, a: Any, x: Any) -> Any:
    """Compute the regularised lower incomplete gamma function `P(a, x)`; NaN outside, at (0, 0) and at infinities."""
    at = _Regions(ops, a, x)
    value = _short_gamma.lower(ops, at) if ops.epsilon == SINGLE else _tails(ops, at)[0]
    return _with_ends(ops, a, x, at.inside, value, 0.0, 1.0)


def upper(ops: Any, a: Any, x: Any) -> Any:
    """Compute the regularised upper incomplete gamma function `Q(a, x)`; see `lower`."""
    at = _Regions(ops, a, x)
    value = _short_gamma.upper(ops, at, _is_small(ops, at)) if ops.epsilon == SINGLE else _tails(ops, at)[1]
    return _with_ends(ops, a, x, at.inside, value, 1.0, 0.0)


def _tails(ops: Any, at: _Regions) -> tuple[Any, Any]:
    """Compute `P` and `Q` inside of their domain; compilers drop the one that is not used."""
    a, x = at.a, at.x
    small, log_power = _is_small(ops, at), _log_power(ops, a, x)
    factor = _factor(ops, a, x, log_power)
    by_series = factor * _series(ops, a, x, at.series)
    by_fraction = a * factor * _fraction(ops, a, x, at.fraction)
    lower = ops.where(at.fraction, 1.0 - by_fraction, by_series)
    complement = ops.where(small, _small_upper(ops, a, x, log_power, small), 1.0 - by_series)
    upper = ops.where(at.fraction, by_fraction, complement)
    lower = ops.if_any(at.uniform, _or_uniform_lower, lower, at.uniform, *at.large)
    upper = ops.if_any(at.uniform, _or_uniform_upper, upper, at.uniform, *at.large)
    return lower, upper


def _by_a_parts(ops: Any, at: _Regions) -> Any:
    """Compute the derivative of `P` by `a` over `a E`, from the series or the continued fraction."""
    a, x = at.a, at.x
    slope = ops.log(x) - ops.digamma(a)
    total, total_by_a = _series_by_a(ops, a, x, at.series)
    value, value_by_a = _fraction_by_a(ops, a, x, slope, at.fraction)
    by_series = (total * (ops.log(x) - ops.digamma(a + 1.0)) + total_by_a) / a
    return ops.where(at.fraction, 0.0 - (value * slope + value_by_a), by_series)


def derivative_by_a(ops: Any, a: Any, x: Any) -> Any:
    """Compute the derivative of `P(a, x)` by `a`; NaN if `a` is not positive or `x` is negative."""
    at = _Regions(ops, a, x)
    value = _by_a_parts(ops, at) * at.a * _factor(ops, at.a, at.x, _log_power(ops, at.a, at.x))
    value = ops.if_any(at.uniform, _or_uniform_slope, value, at.uniform, *at.large)
    value = ops.where(value == 0.0, 0.0, value)  # the sign after an underflow is meaningless
    return _derivative_ends(ops, a, x, at, value, 0.0)


def sample_derivative(ops: Any, a: Any, x: Any) -> Any:
    """Compute the derivative by `a` of the quantile `x` of `Gamma(a, 1)`: minus that of `P(a, x)`, over the density."""
    at = _Regions(ops, a, x)
    value = 0.0 - _by_a_parts(ops, at) * at.x
    value = ops.if_any(at.uniform, _or_uniform_over_density, value, at.uniform, *at.large)
    return _derivative_ends(ops, a, x, at, value, math.inf)


def _derivative_ends(ops: Any, a: Any, x: Any, at: _Regions, value: Any, far: float) -> Any:
    out = ops.where(at.inside, value, ops.where(x < ops.least, 0.0, far))
    return ops.where((a > 0.0) & (a < math.inf) & (x >= 0.0) & (x == x), out, math.nan)
