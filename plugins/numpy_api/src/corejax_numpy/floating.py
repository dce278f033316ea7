"""Floating-point numbers: signs, mantissas and exponents, neighbours, rounding; NaN and infinity.

The parts are read from the bits (IEEE 754: sign, biased exponent, fraction), as integers of the same width. The
layouts of dtypes of 8 bits or fewer differ, so these dtypes are converted to float32, which holds all their values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Array, dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    like,
    no_out_or_where,
    number_argument,
    promote,
    promote_dtypes,
    static_int,
)
from corejax_numpy.elementwise import greater, isnan, less, trunc, where

_INTEGERS: dict[int, np.dtype[Any]] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def _everywhere(x: Any, value: bool) -> Any:
    return lax.full_like(x, value, np.bool_)


def _real_floating(name: str, *xs: Any) -> list[Any]:
    """Return arguments as real floating-point arrays of one dtype and shape.

    Raises:
        TypeError: an argument is complex.
    """
    arrays = promote(name, *xs, inexact=True)
    if dtypes.is_complex(arrays[0].aval.dtype):
        raise TypeError(f"{name} takes real numbers, got {arrays[0].aval.str_short()}")
    return arrays


def _in_standard_layout(x: Any) -> Any:
    return lax.convert_element_type(x, np.float32) if x.aval.dtype.itemsize == 1 else x


def _bits(x: Any) -> Any:
    return lax.bitcast_convert_type(x, _INTEGERS[x.aval.dtype.itemsize])


# -- signs -------------------------------------------------------------------------------------------------------


def signbit(x: Any, /) -> Any:
    """Test whether the sign bit is set: for negative numbers, -0.0 and NaNs with a sign.

    Raises:
        ValueError: `x` is complex.
    """
    x = array_argument("signbit", x)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"signbit takes real numbers, got {x.aval.str_short()}")
    if dtypes.is_bool(x.dtype) or dtypes.is_unsigned(x.dtype):
        return _everywhere(x, False)
    bits = _bits(_in_standard_layout(x)) if dtypes.is_float(x.dtype) else x
    return lax.lt(bits, like(bits, 0))


def copysign(x1: Any, x2: Any, /) -> Any:
    """Return `x1` with the sign of `x2`, also for zeros and NaNs.

    Raises:
        TypeError: an argument is complex.
    """
    x1, x2 = _real_floating("copysign", x1, x2)
    size = lax.abs(x1)
    return where(signbit(x2), lax.neg(size), size)


def fabs(x: Any, /) -> Any:
    """Compute the absolute value in floating point, also for integers.

    Raises:
        TypeError: `x` is complex.
    """
    return lax.abs(*_real_floating("fabs", x))


def heaviside(x1: Any, x2: Any, /) -> Any:
    """Compute the Heaviside step function: 0 if `x1` is negative, 1 if it is positive, `x2` if it is zero."""
    x1, x2 = promote("heaviside", x1, x2, inexact=True)
    zero, one = like(x1, 0), like(x1, 1)
    at_zero = where(lax.gt(x1, zero), one, where(isnan(x1), x1, x2))
    return where(lax.lt(x1, zero), zero, at_zero)


# -- mantissa and exponent ---------------------------------------------------------------------------------------


def _power_of_two(exponent: Any, dtype: Any) -> Any:
    """Return 2 to an integer power exactly; the power must be a normal number."""
    info, integer = dtypes.finfo(dtype), _INTEGERS[dtype.itemsize]
    biased = lax.add(lax.convert_element_type(exponent, integer), integer.type(1 - int(info.minexp)))
    return lax.bitcast_convert_type(lax.shift_left(biased, integer.type(info.nmant)), dtype)


def _scaled(x: Any, exponent: Any) -> Any:
    """Compute `x * 2**exponent` in two steps, of which only the last rounds if `abs(x)` is in [1/2, 1)."""
    half = lax.shift_right_arithmetic(exponent, like(exponent, 1))
    dtype = x.aval.dtype
    return lax.mul(lax.mul(x, _power_of_two(half, dtype)), _power_of_two(lax.sub(exponent, half), dtype))


def _frexp(x: Any) -> tuple[Any, Any]:
    """Return mantissa and exponent for a standard layout; the derivative of the mantissa is a power of 2."""
    info = dtypes.finfo(x.aval.dtype)
    zero = lax.eq(x, like(x, 0))
    special = lax.bitwise_or(zero, lax.bitwise_not(lax.is_finite(x)))
    subnormal = lax.lt(lax.abs(x), like(x, float(info.smallest_normal)))
    normal = where(subnormal, lax.mul(x, like(x, 2.0**info.nmant)), x)
    bits = _bits(normal)
    fraction, mask = like(bits, int(info.nmant)), like(bits, (1 << int(info.nexp)) - 1)
    field = lax.bitwise_and(lax.shift_right_logical(bits, fraction), mask)
    exponent = lax.sub(lax.convert_element_type(field, np.int32), np.int32(-int(info.minexp)))
    shifted = lax.sub(exponent, where(subnormal, np.int32(info.nmant), np.int32(0)))
    mantissa = where(special, x, _scaled(normal, lax.neg(exponent)))
    return mantissa, where(special, np.int32(0), shifted)


def frexp(x: Any, /) -> tuple[Any, Any]:
    """Decompose into mantissa and exponent: `x == mantissa * 2**exponent`, with `abs(mantissa)` in [1/2, 1).

    Args:
        x: real numbers; integers and booleans are converted to floating point.

    Returns:
        The mantissa, of the floating dtype, and the exponent, of dtype int32. For zeros, infinities and NaN `(x, 0)`.

    Raises:
        TypeError: `x` is complex.
    """
    (x,) = _real_floating("frexp", x)
    mantissa, exponent = _frexp(_in_standard_layout(x))
    return lax.convert_element_type(mantissa, x.dtype) if mantissa.dtype != x.dtype else mantissa, exponent


def ldexp(x1: Any, x2: Any, /) -> Any:
    """Compute `x1 * 2**x2`, rounded once.

    Args:
        x1: real numbers; integers and booleans are converted to floating point.
        x2: integers.

    Raises:
        ValueError: `x1` is complex, or `x2` is not of integers.
    """
    x1, x2 = array_argument("ldexp", x1), array_argument("ldexp", x2, 1)
    if dtypes.is_complex(x1.dtype) or dtypes.is_inexact(x2.dtype):
        raise ValueError(f"ldexp takes real numbers and integers, got {x1.aval.str_short()} and {x2.aval.str_short()}")
    (x1,) = promote_dtypes("ldexp", x1, inexact=True)
    wide = _in_standard_layout(x1)
    mantissa, exponent = _frexp(wide)
    limit = 2 * (-int(dtypes.finfo(wide.dtype).minexp) - 1)  # more than enough for zero or infinity
    if x2.dtype.itemsize >= 4:
        low = 0 if dtypes.is_unsigned(x2.dtype) else -3 * limit
        x2 = lax.clamp(like(x2, low), x2, like(x2, 3 * limit))
    mantissa, exponent, x2 = lax.broadcast_operands(
        mantissa, exponent, lax.convert_element_type(x2, np.int32), name="ldexp"
    )
    total = lax.clamp(np.int32(-limit), lax.add(exponent, x2), np.int32(limit))
    out = _scaled(mantissa, total)
    return out if out.dtype == x1.dtype else lax.convert_element_type(out, x1.dtype)


def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """Split into fractional and integral parts, both with the sign of `x`."""
    no_out_or_where("modf", out, None)
    (x,) = promote_dtypes("modf", x, inexact=True)
    whole = trunc(x)
    return lax.sub(x, whole), whole


# -- neighbours --------------------------------------------------------------------------------------------------


def nextafter(x: Any, y: Any, /) -> Any:
    """Return the floating-point number next to `x` in the direction of `y`."""
    return lax.nextafter(*lax.broadcast_operands(*_real_floating("nextafter", x, y), name="nextafter"))


def spacing(x: Any, /) -> Any:
    """Return the distance from `x` to the next number of larger magnitude, with the sign of `x` (float16: positive).

    Raises:
        ValueError: `x` is complex.
    """
    (x,) = promote_dtypes("spacing", x, inexact=True)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"spacing takes real numbers, got {x.aval.str_short()}")
    x = lax.stop_gradient(x)  # the result is constant between powers of 2
    infinity = lax.full_like(x, math.inf)
    if x.dtype == np.float16:  # as in NumPy
        return lax.sub(lax.nextafter(x, infinity), x)
    out = lax.sub(lax.nextafter(x, copysign(infinity, x)), x)
    smallest = copysign(like(x, float(dtypes.finfo(x.dtype).smallest_subnormal)), x)
    return where(lax.eq(out, like(x, 0)), smallest, out)


# -- rounding ----------------------------------------------------------------------------------------------------


def _to_nearest(x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def rint(x: Any, /) -> Any:
    """Round to the nearest integer, in floating point; halves round to even."""
    x = array_argument("rint", x)
    if not dtypes.is_inexact(x.dtype):
        return lax.convert_element_type(x, dtypes.default_float_dtype())
    return round(x)


def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """Round to a number of decimals; halves round to even.

    Args:
        a: the array; integers are returned unchanged, and the parts of complex numbers are rounded separately.
        decimals: the number of decimals, 0 by default; may be negative for floating-point numbers.
        out: not supported; must be None.

    Raises:
        NotImplementedError: `out` is given, or `decimals` is negative for integers.
        TypeError: `decimals` is not a static integer.
    """
    no_out_or_where("round", out, None)
    a = number_argument("round", a)
    decimals = static_int("round", decimals, "decimals")
    if not dtypes.is_inexact(a.dtype):
        if decimals < 0:
            raise NotImplementedError(
                f"round: negative decimals are not supported for integers, got decimals={decimals}"
            )
        return a
    if decimals > math.log10(float(dtypes.finfo(a.dtype).max)):
        return a  # the dtype does not have that many decimals
    if dtypes.is_complex(a.dtype):
        return lax.complex(round(lax.real(a), decimals), round(lax.imag(a), decimals))
    if decimals == 0:
        return _to_nearest(a)
    narrow = a.dtype.itemsize <= 2  # 16 bits do not hold the scaled number exactly
    x = lax.convert_element_type(a, np.float32) if narrow else a
    factor = like(x, 10.0**decimals)
    rounded = lax.div(_to_nearest(lax.mul(x, factor)), factor)
    return lax.convert_element_type(rounded, a.dtype) if narrow else rounded


# -- NaN and infinity --------------------------------------------------------------------------------------------


def _is_infinity(name: str, infinity: float, doc: str) -> Callable[..., Any]:
    def function(x: Any, /, out: None = None) -> Any:
        no_out_or_where(name, out, None)
        x = array_argument(name, x)
        if dtypes.is_complex(x.dtype):
            raise ValueError(f"{name} takes real numbers, got {x.aval.str_short()}")
        return lax.eq(x, like(x, infinity)) if dtypes.is_float(x.dtype) else _everywhere(x, False)

    lax.named(function, name, f"Test for {doc} infinity. Raises ValueError for complex numbers.")
    return function


isposinf = _is_infinity("isposinf", math.inf, "positive")
isneginf = _is_infinity("isneginf", -math.inf, "negative")


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN and infinities by numbers, also in the parts of complex numbers.

    Args:
        x: the array.
        copy: accepted for compatibility with NumPy and ignored; arrays are immutable.
        nan: the replacement for NaN; 0 by default.
        posinf: the replacement for infinity; by default the largest finite number.
        neginf: the replacement for negative infinity; by default the smallest finite number.
    """
    x = array_argument("nan_to_num", x)
    if not dtypes.is_inexact(x.dtype):
        return x
    if dtypes.is_complex(x.dtype):
        return lax.complex(*(nan_to_num(part, copy, nan, posinf, neginf) for part in (lax.real(x), lax.imag(x))))
    info = dtypes.finfo(x.dtype)
    replacements = (nan, info.max if posinf is None else posinf, info.min if neginf is None else neginf)
    nan, posinf, neginf = (_in_dtype(value, x) for value in replacements)
    return where(isnan(x), nan, where(isposinf(x), posinf, where(isneginf(x), neginf, x)))


def _in_dtype(value: Any, x: Any) -> Any:
    if isinstance(value, np.generic) or lax.is_python_scalar(value):
        return like(x, value if lax.is_python_scalar(value) else value.item())
    return lax.convert_element_type(value if type(value) is Array else array_argument("nan_to_num", value, 2), x.dtype)


def _ignoring_nan(name: str, beyond: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    def function(x1: Any, x2: Any) -> Any:
        x1, x2 = promote(name, x1, x2)
        return where(lax.bitwise_or(*lax.broadcast_operands(beyond(x1, x2), isnan(x2))), x1, x2)

    lax.named(function, name, f"Return the {doc} of `x1` and `x2`; if one is NaN, the other.")
    return function


fmax = _ignoring_nan("fmax", greater, "larger")
fmin = _ignoring_nan("fmin", less, "smaller")
