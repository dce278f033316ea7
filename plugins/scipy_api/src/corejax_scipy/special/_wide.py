"""Exponentials and logarithms of float64 as arithmetic, for results that become float32: exp expm1 log log1p.

XLA's CPU compiler calls a function of C's library for each element of float64, which takes ten times as long. Methods
(Tang 1989, 1990) and coefficients are those of corejax-lax-basic, for values of `corejax.lax`. Relative errors: a few
units of float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax_lax_basic import lax
from corejax_scipy.special._formulas import WIDE, polynomial, where

_BITS = np.dtype(np.int64)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_WHOLE = 1.5 * 2.0**52  # beside which numbers are whole
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first one of 32 bits
# Of (2 atanh(s) - 2 s) / s**3 by s**2 up to s = 0.172, and of (exp(r) - 1 - r) / r**2 by r up to log(2) / 2.
_LOG = (
    0.666666666666667, 0.39999999999899505, 0.28571428625975487, 0.2222221113479508, 0.18182889125261723,
    0.15331721600556042, 0.14616449685043406,
)  # fmt: skip
_EXP = (
    0.5, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062, 0.0013888888917213717,
    0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07,
    2.510038549551032e-08,
)  # fmt: skip


def _shifted(x: Any) -> Any:
    """A whole number as the exponent's bits of a power of 2."""
    return lax.shift_left(x, lax.full_like(x, 52))


def exp(x: Any) -> Any:
    """The exponential function; 0 where that is subnormal."""
    sane = where(x < -708.39, -708.39, where(x > 709.0, 709.0, x))
    k = lax.round(sane * (1.0 / math.log(2.0)), lax.RoundingMethod.TO_NEAREST_EVEN)
    r = (sane - k * _LN2_HIGH) - k * _LN2_LOW
    bits = lax.bitcast_convert_type(k + _WHOLE, _BITS)
    power = lax.bitcast_convert_type(_shifted(bits) + lax.full_like(bits, 1023 << 52), WIDE)
    out = (r * r * polynomial(r, _EXP) + r + 1.0) * power
    return where(x < -708.39, 0.0, where(x > 709.0, math.inf, out))


def expm1(x: Any) -> Any:
    """`exp(x) - 1`."""
    near = lax.abs(x) < 0.34
    r = where(near, x, 0.0)
    return where(near, r * r * polynomial(r, _EXP) + r, exp(x) - 1.0)


def _log(x: Any, less_one: Any = None) -> Any:
    """`log(x)`, minus infinity at 0 and NaN below; `less_one` is `x - 1` before that was rounded."""
    raw = lax.bitcast_convert_type(x, _BITS)
    k = lax.shift_right_arithmetic(raw - lax.full_like(raw, _ROOT_HALF), lax.full_like(raw, 52))
    f = lax.bitcast_convert_type(raw - _shifted(k), WIDE) - 1.0
    k = lax.convert_element_type(k, WIDE)
    s, half = f / (f + 2.0), 0.5 * f * f
    low = s * (half + s * s * polynomial(s * s, _LOG)) + k * _LN2_LOW
    if less_one is not None:
        low = low + where(k == 0.0, (less_one - f) / (f + 1.0), 0.0)
    out = k * _LN2_HIGH - ((half - low) - f)
    ends = where(x == 0.0, -math.inf, where(x > 0.0, x, math.nan))
    return where((x > 0.0) & (x < math.inf), out, ends)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return _log(x)


def log1p(x: Any) -> Any:
    """`log(1 + x)`."""
    return where(lax.abs(x) < 1e-300, x, _log(1.0 + x, x))
