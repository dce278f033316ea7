"""Incomplete gamma functions in float64 for results that become float32: relative errors of some 1e-10, no loops.

The formulas are those of `_incomplete_gamma`. The number of terms is fixed by the worst operands. Terms are summed from
the last to the first, with separate numerators and denominators, which compilers do in one pass over the elements.
Formulas for rare operands are computed only if an element needs them.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic.special import _uniform
from corejax_lax_basic.special._series import log_gamma_1p, polynomial

# Terms of the series: of short ones, of long ones; levels of the fraction; terms of the series for small operands.
_FEW, _MANY, _LEVELS, _SMALL = 16, 48, 40, 14
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # (DLMF 5.11.1)
_SHIFT = 6


def _factor(ops: Any, a: Any, x: Any) -> Any:
    """Compute `E = x**a exp(-x) / gamma(a+1)` by Stirling's formula, for `a < 10` at `a + 6`.

    The rounding of logarithms gives an error of 1e-16 times the exponent's terms, which is too large for float64.
    """
    low = a < 10.0
    at, product = ops.where(low, a + float(_SHIFT), a), a + 1.0
    for k in range(2, _SHIFT + 1):
        product = product * (a + float(k))
    inverse = 1.0 / at
    rest = inverse * polynomial(inverse * inverse, _STIRLING) + 0.5 * math.log(2.0 * math.pi)
    exponent = a * ops.log(x) - (at + 0.5) * ops.log(at) + ((at - x) - rest)
    return ops.where(low, product, 1.0) * ops.exp(exponent)


def _series(ops: Any, a: Any, x: Any, count: int) -> Any:
    """Compute `P / E`: `count` terms, and the others as a geometric series."""
    scale = 1.0 / ops.where(a < 1.0, 1.0, a)  # keeps the products small
    y, b = x * scale, a * scale
    last = b + scale * float(count + 1)
    above, below = last, last - y
    for n in range(count, 0, -1):
        below = below * (b + scale * float(n))
        above = below + y * above
    return above / below


def _or_long_series(ops: Any, out: Any, long: Any, a: Any, x: Any) -> Any:
    return ops.where(long, _series(ops, a, x, _MANY), out)


def _or_fraction(ops: Any, out: Any, fraction: Any, a: Any, x: Any) -> Any:
    """Replace elements in the region of the fraction by `Q / (a E)`."""
    inverse = 1.0 / x
    square, gap = inverse * inverse, (x - a) * inverse
    above, below = gap + inverse * float(2 * _LEVELS + 1), 1.0
    for n in range(_LEVELS - 1, -1, -1):
        factor = (a - float(n + 1)) * square * float(n + 1)
        above, below = (gap + inverse * float(2 * n + 1)) * above + factor * below, above
    return ops.where(fraction, below / above * inverse, out)


def _or_small_upper(ops: Any, out: Any, small: Any, a: Any, x: Any) -> Any:
    """Replace small elements by `Q`."""
    b, y = ops.where(small, a, 0.5), ops.where(small, x, 0.5)
    log_power = b * ops.log(y) - log_gamma_1p(ops, b)
    term, total = 1.0, y * 0.0
    for n in range(1, _SMALL + 1):
        term = y * (-1.0 / n) * term
        total = total + term / (b + float(n))
    value = 0.0 - ops.expm1(log_power) - b * ops.exp(log_power) * total
    return ops.where(small, value, out)


def _or_uniform(tail: int) -> Any:
    def computed(ops: Any, out: Any, uniform: Any, a: Any, x: Any) -> Any:
        return ops.where(uniform, _uniform.tails(ops, a, x)[tail], out)

    return computed


_or_uniform_lower, _or_uniform_upper = _or_uniform(0), _or_uniform(1)


def _parts(ops: Any, at: Any) -> tuple[Any, Any]:
    """Compute `E`, and `P / E` or, in the region of the fraction, `Q / (a E)`."""
    long = at.series & (at.x > 1.1 + 0.2 * at.a)
    value = ops.if_any(long, _or_long_series, _series(ops, at.a, at.x, _FEW), long, at.a, at.x)
    return _factor(ops, at.a, at.x), ops.if_any(at.fraction, _or_fraction, value, at.fraction, at.a, at.x)


def lower(ops: Any, at: Any) -> Any:
    """Compute `P` for operands in `_incomplete_gamma._Regions`, inside of its domain."""
    factor, value = _parts(ops, at)
    out = ops.where(at.fraction, 1.0 - at.a * factor * value, factor * value)
    return ops.if_any(at.uniform, _or_uniform_lower, out, at.uniform, *at.large)


def upper(ops: Any, at: Any, small: Any) -> Any:
    """Compute `Q` as `lower` computes `P`; `small` is where `_or_small_upper` is accurate."""
    factor, value = _parts(ops, at)
    out = ops.where(at.fraction, at.a * factor * value, 1.0 - factor * value)
    out = ops.if_any(small, _or_small_upper, out, small, at.a, at.x)
    return ops.if_any(at.uniform, _or_uniform_upper, out, at.uniform, *at.large)
