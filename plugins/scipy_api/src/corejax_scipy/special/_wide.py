"""Exponentials and logarithms in float64 as arithmetic, for results that become float32: exp expm1 log log1p log_ratio.

XLA's CPU compiler calls a function of the C library for each float64 element, which takes ten times as long. Logarithms
take float32 arguments, since bit operations on these are half as wide, and return float64. Exponentials take float64.
Relative errors are below 1e-10. Methods: Tang 1989, 1990; the coefficients come from interpolation at Chebyshev points,
in 40 digits.
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
_ONE = 0x3F800000  # the bits of 1
_WHOLE = 1.5 * 2.0**52  # adding this rounds a float64 to a whole number
_LN2 = math.log(2.0)
# Coefficients of (2 atanh(s) - 2 s) / s**3 by s**2 up to s = 0.2, and of (exp(r) - 1 - r) / r**2 by r up to log(2) / 2.
LOG = (0.6666666666739316, 0.3999999877278068, 0.28571759537341557, 0.2219108407954845, 0.1936879280242281)
_EXP = (
    0.5000000013457727, 0.16666666681614256, 0.04166646500604005, 0.008333310934448869, 0.0013933641031986701,
    0.00019890980869750327,
)  # fmt: skip


def horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Return `sum(c[i] * x**i)` for at least two coefficients."""
    out = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        out = out * x + c
    return out


def _exponential_parts(x: Any) -> tuple[Any, Any]:
    """Return `exp(r) - 1` and `2**k` for `x = r + k log(2)`, with `|x|` clamped to 708."""
    sane = where(x < -708.0, -708.0, where(x > 708.0, 708.0, x))
    k = lax.round(sane * (1.0 / _LN2), lax.RoundingMethod.TO_NEAREST_EVEN)
    r = sane - k * _LN2
    # Bind the primitive, since the public function would narrow the dtype under `config.x64_compat`.
    bits = lax.bitcast_convert_type_p.bind(k + (_WHOLE + 1023.0), new_dtype=_BITS)
    shifted = lax.shift_left(bits, lax.full_like(bits, 52))
    return r * r * horner(r, _EXP) + r, lax.bitcast_convert_type_p.bind(shifted, new_dtype=WIDE)


def exp(x: Any) -> Any:
    """Return the exponential function; infinite beyond 708, and 3e-308 below -708."""
    less_one, power = _exponential_parts(x)
    return where(x > 708.0, math.inf, less_one * power + power)


def expm1(x: Any) -> Any:
    """Return `exp(x) - 1`; infinite beyond 708."""
    less_one, power = _exponential_parts(x)
    return where(x > 708.0, math.inf, less_one * power + (power - 1.0))


def _shifted(k: Any) -> Any:
    """Shift a whole number to the exponent's bits of float32."""
    return lax.shift_left(k, lax.full_like(k, 23))


def _whole_log2(bits: Any, half: int) -> Any:
    """Return the exponent in the bits of float32, rounded by `half`."""
    return lax.shift_right_arithmetic(bits + lax.full_like(bits, half), lax.full_like(bits, 23))


def _two_atanh(s: Any) -> Any:
    z = s * s
    return 2.0 * s + s * z * horner(z, LOG)


def _log_inside(x: Any) -> Any:
    """Return the natural logarithm of positive finite float32 numbers, and arbitrary values for others."""
    raw = lax.bitcast_convert_type(x, _SHORT_BITS)
    k = _whole_log2(raw, -_ROOT_HALF)
    f = widened(lax.bitcast_convert_type(raw - _shifted(k), SINGLE) - 1.0)
    return widened(k) * _LN2 + _two_atanh(f / (f + 2.0))


def _with_ends(x: Any, out: Any) -> Any:
    """Set a logarithm to minus infinity at 0, infinity at infinity, and NaN for NaN and negative numbers."""
    ends = jnp.where(x == 0.0, -math.inf, jnp.where(x > 0.0, x, math.nan))
    return where((x > 0.0) & (x < math.inf), out, widened(ends))


def log(x: Any) -> Any:
    """Return the natural logarithm of float32 numbers."""
    return _with_ends(x, _log_inside(x))


def log1p(x: Any) -> Any:
    """Return `log(1 + x)` of float32 numbers."""
    near = x + 1.0
    lost = (widened(x) - widened(near)) + 1.0  # in float32 the compiler would simplify this to 0
    lost = lax.convert_element_type(lost, SINGLE)
    return _with_ends(near, where(near == 1.0, widened(x), _log_inside(near) + widened(lost / near)))


def log_ratio(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Return `log(p / q)` of positive finite float32 numbers, also if the quotient overflows; arbitrary for others.

    Returns:
        The logarithm `k log(2) + 2 atanh(t)`, the number `t`, and whether k is 0, in which case
        `t = (p - q) / (p + q)`.
    """
    first, second = (lax.bitcast_convert_type(x, _SHORT_BITS) for x in (p, q))
    gap = first - second
    k = _whole_log2(gap, 1 << 22)  # scale both to the same power of 2, with the first one between 1 and 2
    first = lax.bitwise_or(lax.bitwise_and(first, lax.full_like(first, (1 << 23) - 1)), lax.full_like(first, _ONE))
    x, y = (widened(lax.bitcast_convert_type(bits, SINGLE)) for bits in (first, first - (gap - _shifted(k))))
    t = (x - y) / (x + y)
    return widened(k) * _LN2 + _two_atanh(t), t, lax.eq(k, lax.full_like(k, 0))
