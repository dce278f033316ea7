"""The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), in Lentz's way.

Written once for NumPy arrays and StableHLO values of float64, see `_series`.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic.special._series import log1p_less, stirling_rest

_LIMIT = 5000
_TINY = 1e-300


def _apart(ops: Any, x: Any) -> Any:
    return ops.where(ops.abs(x) < _TINY, _TINY, x)


def _step(ops: Any, n: Any, given: Any, state: Any) -> Any:
    """Two terms of the continued fraction."""
    (a, b, x), (c, d, value) = given, state
    twice = a + 2.0 * n
    for term in (
        n * (b - n) * x / ((twice - 1.0) * twice),
        (0.0 - (a + n)) * (a + b + n) * x / (twice * (twice + 1.0)),
    ):
        c, d = _apart(ops, 1.0 + term / c), 1.0 / _apart(ops, 1.0 + term * d)
        value = value * (c * d)
    return ops.abs(c * d - 1.0) > ops.epsilon, (c, d, value)


def _fraction(ops: Any, a: Any, b: Any, x: Any, where: Any) -> Any:
    d = 1.0 / _apart(ops, 1.0 - (a + b) * x / (a + 1.0))
    return ops.iterate(_step, (a, b, x), (d * 0.0 + 1.0, d, d), _LIMIT, where)[-1]


def _factor(ops: Any, a: Any, b: Any, x: Any, y: Any, log_x: Any, log_y: Any) -> Any:
    """`x**a y**b / (a B(a, b))` with `y = 1 - x`, without the cancellation of large logarithms."""
    both = (a >= 10.0) & (b >= 10.0)
    large, other = ops.where(both, a, 10.0), ops.where(both, b, 10.0)
    moved = x * other - y * large
    exponent = large * log1p_less(ops, moved / large) + other * log1p_less(ops, 0.0 - moved / other)
    exponent = exponent + stirling_rest(large + other) - stirling_rest(large) - stirling_rest(other)
    by_stirling = ops.exp(exponent) * ops.sqrt(other / (2.0 * math.pi * large * (large + other)))
    least, most = ops.where(a < b, a, b), ops.where(a < b, b, a)
    # 1 / B is `least` over `gamma(least + 1)` times the ratio of gamma functions of `most` and the sum.
    far = ops.where(most >= 10.0, most, 10.0)
    low = ops.where(both, 1.0, least)
    ratio = stirling_rest(far) - stirling_rest(low + far) - (far - 0.5) * ops.log1p(low / far)
    ratio = ratio - low * (ops.log(low + far) - 1.0)
    ratio = ops.where(most >= 10.0, ratio, ops.lgamma(most) - ops.lgamma(least + most))
    direct = ops.exp(a * log_x + b * log_y - ops.lgamma(low + 1.0) - ratio) * ops.where(a < b, 1.0, b / a)
    return ops.where(both, by_stirling, direct)


def betainc(ops: Any, a: Any, b: Any, x: Any) -> Any:
    """`I_x(a, b)`; NaN outside of `a, b >= 0` and `0 <= x <= 1`, and where both or neither is all."""
    no_a, no_b = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    known = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0) & (a == a) & (b == b) & ~(no_a & no_b)
    inside = known & ~no_a & ~no_b & (x > 0.0) & (x < 1.0)
    all_ = (no_a & (x > 0.0)) | (~no_a & (x == 1.0))
    out = _inside(ops, ops.where(inside, a, 1.0), ops.where(inside, b, 1.0), ops.where(inside, x, 0.25), inside)
    return ops.where(known, ops.where(inside, out, ops.where(all_, 1.0, 0.0)), math.nan)


def _inside(ops: Any, a: Any, b: Any, x: Any, inside: Any) -> Any:
    """By the fraction, or by that of the complement `I_{1-x}(b, a)`, whichever converges quickly."""
    y, log_x, log_y = 1.0 - x, ops.log(x), ops.log1p(0.0 - x)
    direct = x < (a + 1.0) / (a + b + 2.0)
    a, b = ops.where(direct, a, b), ops.where(direct, b, a)
    x, y = ops.where(direct, x, y), ops.where(direct, y, x)
    log_x, log_y = ops.where(direct, log_x, log_y), ops.where(direct, log_y, log_x)
    out = _fraction(ops, a, b, x, inside) * _factor(ops, a, b, x, y, log_x, log_y)
    return ops.where(direct, out, 1.0 - out)
