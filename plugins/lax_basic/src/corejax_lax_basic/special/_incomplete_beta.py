"""The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), with Lentz's method.

The fraction needs some `sqrt(max(a, b))` terms, so that for large parameters `_integral` computes an integral instead.
The formulas are written once for NumPy arrays and StableHLO values of float64, see `_series`.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic.special._series import DOUBLE, expm1_less, log1p_less, log_gamma_1p, stirling_rest

_LIMIT = 1000
_LARGE, _FEW = 1e4, 100.0  # the fraction is long if `max(a, b)` and `a` are larger than these
_TINY = 1e-300


def _away_from_zero(ops: Any, x: Any) -> Any:
    return ops.where(ops.abs(x) < _TINY, _TINY, x)


def _step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Apply two terms of the continued fraction."""
    (a, b, x), (c, d, value) = inputs, state
    twice = a + 2.0 * n
    for term in (
        n * (b - n) * x / ((twice - 1.0) * twice),
        (0.0 - (a + n)) * (a + b + n) * x / (twice * (twice + 1.0)),
    ):
        c, d = _away_from_zero(ops, 1.0 + term / c), 1.0 / _away_from_zero(ops, 1.0 + term * d)
        value = value * (c * d)
    return ops.abs(c * d - 1.0) > ops.epsilon, (c, d, value)


def _fraction(ops: Any, a: Any, b: Any, x: Any, where: Any) -> Any:
    d = 1.0 / _away_from_zero(ops, 1.0 - (a + b) * x / (a + 1.0))
    return ops.iterate(_step, (a, b, x), (d * 0.0 + 1.0, d, d), _LIMIT, where)[-1]


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Return a sum and its rounding error (Knuth 1969)."""
    out = x + y
    part = out - x
    return out, (x - (out - part)) + (y - part)


def _from_mean(ops: Any, a: Any, b: Any, x: Any) -> Any:
    """Compute `x (a + b) - a`, accurately if the terms cancel: products are of halves, so that none is rounded."""
    x_high, a_high, b_high = ops.high(x), ops.high(a), ops.high(b)
    total, error = _sum(x_high * b_high, 0.0 - a)
    total, second_error = _sum(total, x_high * a_high)
    if ops.epsilon == DOUBLE:
        error = error + (x_high * (b - b_high) + (x - x_high) * b) + (x_high * (a - a_high) + (x - x_high) * a)
    return total + (error + second_error)


def by_stirling(ops: Any, a: Any, b: Any, x: Any, y: Any, offset: Any) -> Any:
    """Return `x**a y**b / (a B(a, b))` for `a, b >= 10`, by `offset = x b - y a`, without large logarithms."""
    exponent = a * log1p_less(ops, offset / a, x * (1.0 + b / a)) + b * log1p_less(
        ops, 0.0 - offset / b, y * (1.0 + a / b)
    )
    exponent = exponent + stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b)
    return ops.exp(exponent) * ops.sqrt(b / (a + b) / (2.0 * math.pi * a))


def log_size(ops: Any, a: Any, b: Any) -> Any:
    """Compute `log(B(a, b) min(a, b))`: from `gamma(max) / gamma(a + b)`, then `gamma(min + 1)`."""
    low, most = ops.where(a < b, a, b), ops.where(a < b, b, a)
    far = ops.where(most >= 10.0, most, 10.0)
    ratio = stirling_rest(far) - stirling_rest(low + far) - (far - 0.5) * ops.log1p(low / far)
    ratio = ratio - low * (ops.log(low + far) - 1.0)
    return ops.where(most >= 10.0, ratio, ops.lgamma(most) - ops.lgamma(low + most)) + ops.lgamma(low + 1.0)


def _factor(ops: Any, a: Any, b: Any, x: Any, y: Any, offset: Any, log_x: Any, log_y: Any) -> Any:
    """Compute `x**a y**b / (a B(a, b))` with `y = 1 - x` and `offset = x b - y a`."""
    both = (a >= 10.0) & (b >= 10.0)
    operands = (ops.where(both, v, other) for v, other in ((a, 10.0), (b, 10.0), (x, 0.5), (y, 0.5), (offset, 0.0)))
    far = by_stirling(ops, *operands)
    size = log_size(ops, ops.where(both, 1.0, a), ops.where(both, 1.0, b))
    direct = ops.exp(a * log_x + b * log_y - size) * ops.where(a < b, 1.0, b / a)
    return ops.where(both, far, direct)


# The trapezoidal rule for the integral over `t`, by whether it is double precision: step, first node, number of nodes.
_NODES = {True: (0.125, -3.625, 64), False: (0.25, -3.0, 30)}


def _node(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Add a node of the rule, `u = exp(t - exp(-t)) / scale` (Takahasi and Mori 1974)."""
    (slope, count, odds), (total,) = inputs, state
    step, first, _ = _NODES[ops.epsilon == DOUBLE]
    t = (n - 1.0) * step + first
    fall = ops.exp(0.0 - t)
    v = ops.exp(t - fall)
    scale = ops.abs(slope) + ops.sqrt(ops.abs(count) * odds) * ops.sqrt(1.0 + odds)
    u = v / scale
    w = 0.0 - odds * ops.expm1(0.0 - u)
    exponent = count * (log1p_less(ops, w, 1.0 + w) - odds * expm1_less(ops, 0.0 - u)) - slope * u
    size = (slope + count * odds) * (step * u) * (1.0 + odds)  # a / y, both of which may be huge
    return w == w, (total + size * (1.0 + fall) * ops.exp(exponent),)


def _integral(ops: Any, a: Any, b: Any, x: Any, y: Any, offset: Any, out: Any, where: Any) -> Any:
    """Compute the value of the continued fraction by an integral; elements outside of `where` are those of `out`.

    It is `a/y` times the integral of the density over `s <= x`, divided by the density at `x`. With `s = x exp(-u)` the
    density, times `s`, is `exp(-a u) (1 + w)**(b-1)` where `w = (1 - exp(-u)) x/y`. Its exponent is
    `(b-1) (log(1+w) - w - x/y (exp(-u) - 1 + u)) - u (a - (b-1) x/y)`, in which no large terms cancel.
    """
    a, b, x, y = (ops.where(where, v, other) for v, other in ((a, 200.0), (b, 200.0), (x, 0.5), (y, 0.5)))
    odds, count = x / y, b - 1.0
    slope = (x - ops.where(where, offset, 0.0)) / y
    limit = _NODES[ops.epsilon == DOUBLE][-1]
    return ops.iterate(_node, (slope, count, odds), (ops.where(where, 0.0, out),), limit, where)[0]


_SLIGHT = 1e-3  # if `b` is smaller, the result is about as small as `b`


def _slight_step(ops: Any, n: Any, inputs: Any, state: Any) -> Any:
    """Add a term of `sum((1-a) ... (n-a) y**n / (n! (b+n)))` over n >= 1."""
    (a, b, y), (term, total) = inputs, state
    term = term * ((n - a) * y / n)
    added = term / (b + n)
    return ops.abs(added) > ops.epsilon * ops.abs(total + added), (term, total + added)


def _or_of_slight(ops: Any, out: Any, slight: Any, a: Any, b: Any, y: Any) -> Any:
    """Replace `slight` elements by `I_x(a, b) = 1 - y**b / (b B(a, b)) (1 + b sum)`, `y = 1 - x` (DLMF 8.17.7).

    The factor's logarithm is as small as `b`: the difference of two logarithms of gamma functions is `b` times their
    derivative midway, and a term with the derivative of third order.
    """
    a, b, y = (ops.where(slight, v, other) for v, other in ((a, 2.0), (b, 1e-5), (y, 0.1)))
    zero = y * 0.0
    _, total = ops.iterate(_slight_step, (a, b, y), (zero + 1.0, zero), _LIMIT, slight)
    middle = a + 0.5 * b + 1.0
    third, far = zero, middle
    for _ in range(3):
        third, far = third - 2.0 / (far * far * far), far + 1.0
    inverse = 1.0 / far
    third = third - inverse * inverse * (1.0 + inverse * (1.0 + inverse * (0.5 - inverse * inverse / 6.0)))
    rise = b * (ops.digamma(middle) + b * b * third * (1.0 / 24.0)) - ops.log1p(b / a)
    power = b * ops.log(y) + (rise - log_gamma_1p(ops, b))
    return ops.where(slight, 0.0 - ops.expm1(power) - ops.exp(power) * b * total, out)


def betainc(ops: Any, a: Any, b: Any, x: Any) -> Any:
    """Compute `I_x(a, b)`; NaN outside of `a, b >= 0` and `0 <= x <= 1`, and for `a`, `b` both 0 or infinite."""
    no_a, no_b = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    known = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0) & (a == a) & (b == b) & ~(no_a & no_b)
    inside = known & ~no_a & ~no_b & (x > 0.0) & (x < 1.0)
    all_ = (no_a & (x > 0.0)) | (~no_a & (x == 1.0))
    out = _inside(ops, ops.where(inside, a, 1.0), ops.where(inside, b, 1.0), ops.where(inside, x, 0.25), inside)
    return ops.where(known, ops.where(inside, out, ops.where(all_, 1.0, 0.0)), math.nan)


def _inside(ops: Any, a: Any, b: Any, x: Any, inside: Any) -> Any:
    """Use the fraction, or the one of the complement `I_{1-x}(b, a)`, whichever converges quickly."""
    huge = a + b == math.inf  # finite parameters whose sum overflows
    a, b = ops.where(huge, 0.25 * a, a), ops.where(huge, 0.25 * b, b)
    offset = _from_mean(ops, a, b, x)
    y, log_x, log_y = 1.0 - x, ops.log(x), ops.log1p(0.0 - x)
    direct = x < (a + 1.0) / (a + b + 2.0)
    slight, slight_operands = inside & ~direct & (b < _SLIGHT), (a, b, y)
    large = inside & ((a > _LARGE) | (b > _LARGE))
    a, b = ops.where(direct, a, b), ops.where(direct, b, a)
    x, y = ops.where(direct, x, y), ops.where(direct, y, x)
    log_x, log_y = ops.where(direct, log_x, log_y), ops.where(direct, log_y, log_x)
    offset = ops.where(direct, offset, 0.0 - offset)
    large = large & (a > _FEW)
    out = _integral(ops, a, b, x, y, offset, _fraction(ops, a, b, x, inside & ~large), large)
    out = out * _factor(ops, a, b, x, y, offset, log_x, log_y)
    return ops.if_any(slight, _or_of_slight, ops.where(direct, out, 1.0 - out), slight, *slight_operands)
