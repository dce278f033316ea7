"""Exponentials and logarithms in float64 as arithmetic, for results that become float32: exp expm1 log log1p log_ratio.

XLA's CPU compiler calls a function of C's library for each element of float64, which takes ten times as long. Arguments
of logarithms are float32, whose bits are half as wide; what they give is float64, as are exponents. Relative errors are
below 1e-10. Methods: Tang 1989, 1990; coefficients are those of interpolation at Chebyshev's points, in 40 digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy.special._formulas import SINGLE, WIDE, where, widened

_BITS, _SHORT_BITS = np.dtype(np.int64), np.dtype(np.int32)
_ROOT_HALF = 0x3F3504F3  # the bits of sqrt(1/2)
_ONE = 0x3F800000  # those of 1
_WHOLE = 1.5 * 2.0**52  # beside which numbers are whole
_LN2 = math.log(2.0)
# Of (2 atanh(s) - 2 s) / s**3 by s**2 up to s = 0.2, and of (exp(r) - 1 - r) / r**2 by r up to log(2) / 2.
LOG = (0.6666666666739316, 0.3999999877278068, 0.28571759537341557, 0.2219108407954845, 0.1936879280242281)
_EXP = (
    0.5000000013457727, 0.16666666681614256, 0.04166646500604005, 0.008333310934448869, 0.0013933641031986701,
    0.00019890980869750327,
)  # fmt: skip


def horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """`sum(c[i] * x**i)` of at least two coefficients."""
    out = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        out = out * x + c
    return out


def _exponential_parts(x: Any) -> tuple[Any, Any]:
    """`exp(r) - 1` and `2**k` for `x = r + k log(2)`, of `x` that is no larger than 708."""
    sane = where(x < -708.0, -708.0, where(x > 708.0, 708.0, x))
    k = lax.round(sane * (1.0 / _LN2), lax.RoundingMethod.TO_NEAREST_EVEN)
    r = sane - k * _LN2
    bits = lax.bitcast_convert_type_p.bind(k + (_WHOLE + 1023.0), new_dtype=_BITS)  # `config.x64_compat` or not
    shifted = lax.shift_left(bits, lax.full_like(bits, 52))
    return r * r * horner(r, _EXP) + r, lax.bitcast_convert_type_p.bind(shifted, new_dtype=WIDE)


def exp(x: Any) -> Any:
    """The exponential function; infinite beyond 708, 3e-308 below."""
    less_one, power = _exponential_parts(x)
    return where(x > 708.0, math.inf, less_one * power + power)


def expm1(x: Any) -> Any:
    """`exp(x) - 1`; infinite beyond 708."""
    less_one, power = _exponential_parts(x)
    return where(x > 708.0, math.inf, less_one * power + (power - 1.0))


def _shifted(k: Any) -> Any:
    """A whole number as the exponent's bits of a power of 2, of float32."""
    return lax.shift_left(k, lax.full_like(k, 23))


def _whole_log2(bits: Any, half: int) -> Any:
    """The exponent in bits of float32, after rounding by `half`."""
    return lax.shift_right_arithmetic(bits + lax.full_like(bits, half), lax.full_like(bits, 23))


def _two_atanh(s: Any) -> Any:
    z = s * s
    return 2.0 * s + s * z * horner(z, LOG)


def _log_inside(x: Any) -> Any:
    """The natural logarithm of positive finite float32, anything of others."""
    raw = lax.bitcast_convert_type(x, _SHORT_BITS)
    k = _whole_log2(raw, -_ROOT_HALF)
    f = widened(lax.bitcast_convert_type(raw - _shifted(k), SINGLE) - 1.0)
    return widened(k) * _LN2 + _two_atanh(f / (f + 2.0))


def _with_ends(x: Any, out: Any) -> Any:
    """Minus infinity at 0, infinite at infinity, NaN for NaN and below."""
    ends = jnp.where(x == 0.0, -math.inf, jnp.where(x > 0.0, x, math.nan))
    return where((x > 0.0) & (x < math.inf), out, widened(ends))


def log(x: Any) -> Any:
    """The natural logarithm of float32."""
    return _with_ends(x, _log_inside(x))


def log1p(x: Any) -> Any:
    """`log(1 + x)` of float32."""
    near = x + 1.0
    lost = (widened(x) - widened(near)) + 1.0  # of float32 this would be simplified to 0
    lost = lax.convert_element_type(lost, SINGLE)
    return _with_ends(near, where(near == 1.0, widened(x), _log_inside(near) + widened(lost / near)))


def log_ratio(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """`log(p / q)` of positive finite float32, also where the quotient overflows; anything of others.

    Returns:
        The logarithm, and of it, less a multiple of log(2): its half's hyperbolic tangent `t`, and whether the multiple
        is zero, where `t = (p - q) / (p + q)`.
    """
    first, second = (lax.bitcast_convert_type(x, _SHORT_BITS) for x in (p, q))
    gap = first - second
    k = _whole_log2(gap, 1 << 22)  # both to the same power of 2, the first one between 1 and 2
    first = lax.bitwise_or(lax.bitwise_and(first, lax.full_like(first, (1 << 23) - 1)), lax.full_like(first, _ONE))
    x, y = (widened(lax.bitcast_convert_type(bits, SINGLE)) for bits in (first, first - (gap - _shifted(k))))
    t = (x - y) / (x + y)
    return widened(k) * _LN2 + _two_atanh(t), t, lax.eq(k, lax.full_like(k, 0))
