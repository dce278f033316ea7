"""Exponentials and logarithms of float64 as arithmetic, which compilers vectorise.

XLA's CPU compiler calls a library function for each element of float64, which takes ten times as long. The formulas are
written for values of programs, under construction or traced: `ops` has `where`, `abs` and

    parts(x) -> (m, k)      x = m * 2**k for positive x, m from sqrt(1/2) to sqrt(2)
    scaled(x, k)            x * 2**k for whole -1022 <= k <= 1023
    round(x)                the nearest whole number

Errors are below one unit in the last place. Methods: Tang 1989, 1990; coefficients are those of near-minimax
polynomials, fitted in 40 digits at Chebyshev's points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first part has 32 bits
# Coefficients of (2 atanh(s) - 2 s) / s**3 in s**2; the logarithm has a relative error of 5e-18.
_LOG = (
    0.666666666666667, 0.39999999999899505, 0.28571428625975487, 0.2222221113479508, 0.18182889125261723,
    0.15331721600556042, 0.14616449685043406,
)  # fmt: skip
# Coefficients of (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2; the exponential has a relative error of 1.3e-17.
_EXP = (
    0.5, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062, 0.0013888888917213717,
    0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07,
    2.510038549551032e-08,
)  # fmt: skip


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """Compute `sum(c[i] * x**i)` with at least two coefficients."""
    out = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        out = out * x + c
    return out


def _log_of_parts(m: Any, k: Any, more: Any = None) -> Any:
    """Compute `log(m * 2**k)`, or `log((m + m * more) * 2**k)` for a small `more`."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    low = s * (half + z * horner(z, _LOG)) + k * _LN2_LOW
    if more is not None:
        low = low + more
    return k * _LN2_HIGH - ((half - low) - f)


def _with_ends(ops: Any, x: Any, out: Any) -> Any:
    """Return minus infinity for 0, infinity for infinity, NaN for NaN and negative numbers, else `out`."""
    ends = ops.where(x == 0.0, -math.inf, ops.where(x > 0.0, x, math.nan))
    return ops.where((x > 0.0) & (x < math.inf), out, ends)


def log(ops: Any, x: Any) -> Any:
    """Compute the natural logarithm."""
    return _with_ends(ops, x, _log_of_parts(*ops.parts(x)))


def log1p(ops: Any, x: Any) -> Any:
    """Compute `log(1 + x)`, corrected for the rounding of the sum."""
    total = x + 1.0
    m, k = ops.parts(total)
    error = ops.where(k == 0.0, (x - (m - 1.0)) / m, 0.0)
    out = _with_ends(ops, total, _log_of_parts(m, k, error))
    return ops.where(ops.abs(x) < 1e-300, x, out)


_LEAST, _MOST = -708.39, 709.782712893384  # results beyond are subnormal or infinite


def exp(ops: Any, x: Any) -> Any:
    """Compute the exponential function; subnormal results are 0."""
    sane = ops.where(x < _LEAST, _LEAST, ops.where(x > _MOST, _MOST, x))  # NaN stays
    k = ops.round(sane * (1.0 / math.log(2.0)))
    k = ops.where(k > 1023.0, 1023.0, k)
    r = (sane - k * _LN2_HIGH) - k * _LN2_LOW
    out = ops.scaled(r * r * horner(r, _EXP) + r + 1.0, k)
    return ops.where(x < _LEAST, 0.0, ops.where(x > _MOST, math.inf, out))


def power(ops: Any, x: Any, y: Any) -> Any:
    """Compute `x ** y` for positive `x` to a relative error of `y log(x)` units, for results that become float32."""
    return ops.where(x == 1.0, 1.0, exp(ops, y * log(ops, x)))


def expm1(ops: Any, x: Any) -> Any:
    """Compute `exp(x) - 1`, for results that become float32."""
    near = ops.abs(x) < 0.34
    r = ops.where(near, x, 0.0)
    return ops.where(near, r * r * horner(r, _EXP) + r, exp(ops, x) - 1.0)


# -- circular functions --------------------------------------------------------------------------------------------


def _taylor(first: int, count: int) -> list[float]:
    """Return coefficients of `sin(pi r)` (`first` = 1) or `cos(pi r)` (0) by powers of `r**2`."""
    return [(-1) ** i * math.pi ** (2 * i + first) / math.factorial(2 * i + first) for i in range(count)]


_SIN, _COS = _taylor(1, 12), _taylor(0, 12)


def sin_pi(x: Any) -> Any:
    """Compute `sin(pi x)` for `|x| <= 1/2`, by its series (DLMF 4.19.1)."""
    return x * horner(x * x, _SIN)


def cos_pi(x: Any) -> Any:
    """Compute `cos(pi x)` for `|x| <= 1/2`, accurate in absolute terms."""
    return horner(x * x, _COS)
