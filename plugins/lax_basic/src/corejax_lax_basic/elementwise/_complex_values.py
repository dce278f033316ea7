"""Impl rules of functions that take complex numbers: NumPy's, with XLA's values where a part is infinite or NaN.

C leaves much open there, and NumPy and XLA choose differently. What is compiled is not slowed down for that, so a value
is XLA's whichever way it is computed. Real numbers, and complex arrays that are finite throughout, take NumPy's way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import HostCode
from corejax_lax_basic._base.narrow_floats import through_float32
from corejax_lax_basic._base.prepared import is_ufunc, prepared_by

_NAN = complex(np.nan, np.nan)


def _of_parts(re: Any, im: Any, dtype: Any) -> Any:
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), dtype)
    out.real, out.imag = re, im
    return out


_Parts = Callable[[Any, Any], tuple[Any, Any]]
_MANY = 512  # elements
_LARGEST = 300.0  # part whose exponential float64 holds, and its square


def _by_parts(x: Any, parts: _Parts, largest: float = _LARGEST) -> Any:
    """A function of many complex64 by `parts`, the real and imaginary part of its result as functions of float64.

    NumPy computes complex numbers one by one, in ten times as long. None of others, and where a part is huge, or not a
    number.
    """
    if x.dtype != np.complex64 or x.size < _MANY:
        return None
    a, b = x.real.astype(np.float64), x.imag.astype(np.float64)
    if not max(np.abs(a).max(), np.abs(b).max()) < largest:
        return None
    return _of_parts(*parts(a, b), x.dtype)


def _sin(x: Any) -> Any:
    """Of a number that was float32: for that NumPy has a loop of vectors."""
    return np.sin(x.astype(np.float32))


def _cos(x: Any) -> Any:
    return np.cos(x.astype(np.float32))


def _exp_parts(a: Any, b: Any) -> tuple[Any, Any]:
    size = np.exp(a)
    return size * _cos(b), size * _sin(b)


def _expm1_parts(a: Any, b: Any) -> tuple[Any, Any]:
    size, half = np.expm1(a), _sin(b / 2)
    return size * _cos(b) - 2 * half * half, (size + 1) * _sin(b)


def _log_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """Squares of float32 are exact, and so are sums of these and -1 near the unit circle."""
    square, other = (np.square(f(np.abs(a), np.abs(b))) for f in (np.maximum, np.minimum))
    size = square + other
    return np.where(size < 0.5, np.log(size), np.log1p((square - 1) + other)) / 2, np.arctan2(b, a)


def _sqrt_parts(a: Any, b: Any) -> tuple[Any, Any]:
    large = np.sqrt((np.abs(a) + np.sqrt(a * a + b * b)) / 2)
    small = np.abs(b) / np.where(large == 0, 1, 2 * large)
    right = a >= 0
    return np.where(right, large, small), np.copysign(np.where(right, small, large), b)


def _atanh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """DLMF 4.37.24 and its imaginary part; odd, so that the logarithm is of numbers above 1."""
    size = np.abs(a)
    re = np.log1p(4 * size / (np.square(1 - size) + b * b)) / 4
    return np.copysign(re, a), np.arctan2(2 * b, (1 - size) * (1 + size) - b * b) / 2


def _sinh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    return np.sinh(a) * _cos(b), np.cosh(a) * _sin(b)


def _cosh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    return np.cosh(a) * _cos(b), np.sinh(a) * _sin(b)


def _tanh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """Of sums of squares, which do not cancel about the poles."""
    sinh, cos = np.sinh(a), _cos(b)
    size = sinh * sinh + cos * cos
    return sinh * np.cosh(a) / size, _sin(b) * cos / size


def _turned(parts: _Parts) -> _Parts:
    """`f(z)` as `-i g(iz)`, by the parts of `g`: a sine by that of the hyperbolic one."""

    def turned(a: Any, b: Any) -> tuple[Any, Any]:
        re, im = parts(-b, a)
        return im, -re

    return turned


def _cos_parts(a: Any, b: Any) -> tuple[Any, Any]:
    return _cosh_parts(-b, a)


def _mended(
    f: Any, mend: Callable[[Any, Any], Any], parts: _Parts | None = None, largest: float = _LARGEST
) -> Callable[[Any], Any]:
    """NumPy's `f`; `mend(x, out)` gives the result where that of complex numbers is not finite throughout.

    NumPy has one implementation of each function, whatever `accuracy` is asked for. With `parts` see `_by_parts`.
    """

    @is_ufunc(f, "biuf")
    def impl(x: Any, *, accuracy: Any = None) -> Any:
        if parts is not None and (found := _by_parts(x, parts, largest)) is not None:
            return found
        out = f(x)
        if x.dtype.kind == "c" and not np.isfinite(out).all():
            return mend(x, out)
        return out

    return impl


def _nan_of_nan(x: Any, out: Any) -> Any:
    """A NaN in either part is one in both, also beside an infinite one."""
    return np.where(np.isnan(x), out.dtype.type(_NAN if out.dtype.kind == "c" else np.nan), out)


def _tan_mended(x: Any, out: Any) -> Any:
    return np.where(np.isnan(out) & (x.real != 0), out.dtype.type(_NAN), out)


def _tanh_mended(x: Any, out: Any) -> Any:
    return np.where(np.isnan(out) & (x.imag != 0), out.dtype.type(_NAN), out)


def _nan_of_angle(x: Any, out: Any) -> Any:
    """NaN where the angle is not finite, for zero too."""
    return np.where(np.isfinite(x.imag), out, out.dtype.type(_NAN))


def _nan_of_finite(x: Any, out: Any) -> Any:
    """As `_nan_of_nan`, but beside an infinite part."""
    return np.where(np.isnan(x) & ~np.isinf(x), out.dtype.type(_NAN), out)


def _expm1_mended(x: Any, out: Any) -> Any:
    """Real numbers have real values."""
    return _of_parts(out.real, np.where(x.imag == 0, x.imag, out.imag), x.dtype)


def _sin_mended(x: Any, out: Any) -> Any:
    a, b = x.real, x.imag
    by_parts = _of_parts(np.sin(a) * np.cosh(b), np.cos(a) * np.sinh(b), x.dtype)
    return np.where(np.isfinite(out), out, by_parts)


def _cos_mended(x: Any, out: Any) -> Any:
    a, b = x.real, x.imag
    by_parts = _of_parts(np.cos(a) * np.cosh(b), -np.sin(a) * np.sinh(b), x.dtype)
    return np.where(np.isfinite(out), out, by_parts)


absolute = _mended(np.absolute, _nan_of_nan)
log = _mended(np.log, _nan_of_nan, _log_parts, np.inf)
expm1 = _mended(np.expm1, _expm1_mended, _expm1_parts)
tan = _mended(np.tan, _tan_mended, _turned(_tanh_parts))
tanh = _mended(np.tanh, _tanh_mended, _tanh_parts)
sin = _mended(np.sin, _sin_mended, _turned(_sinh_parts))
cos = _mended(np.cos, _cos_mended, _cos_parts)
sinh = _mended(np.sinh, _nan_of_angle, _sinh_parts)
cosh = _mended(np.cosh, _nan_of_angle, _cosh_parts)


@is_ufunc(np.square, "iuf")
def square(x: Any) -> Any:
    """The real part of a complex square as `(a - b)(a + b)`, for accuracy."""
    if x.dtype.kind != "c":
        return np.square(x)
    a, b = x.real, x.imag
    return _of_parts((a - b) * (a + b), 2 * a * b, x.dtype)


def _cut(f: Any, of_complex: Any) -> Callable[[Any], Any]:
    """`f`, and `of_complex` for complex numbers, on whose branch cuts the sign of a zero does not count."""

    @is_ufunc(f)
    def impl(x: Any, *, accuracy: Any = None) -> Any:
        return of_complex(x + x.dtype.type(0)) if x.dtype.kind == "c" else f(x)

    return impl


def _atanh(x: Any) -> Any:
    """The imaginary part of infinite numbers and NaN is an angle, by the sign of that of `x`."""
    if (found := _by_parts(x, _atanh_parts, np.inf)) is not None:
        return found
    out = np.arctanh(x)
    if np.isfinite(x).all():
        return out
    undefined = np.isnan(x) & ~np.isinf(x)
    angle = np.where(x.imag >= 0, np.pi / 2, -np.pi / 2)
    re = np.where(undefined, x.real.dtype.type(np.nan), out.real)
    return _of_parts(re, np.where(undefined | np.isinf(x.real), angle, out.imag), x.dtype)


@is_ufunc(np.arctanh)
def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
    return _atanh(x) if x.dtype.kind == "c" else np.arctanh(x)


@is_ufunc(np.arctan)
def atan(x: Any) -> Any:
    """`-i atanh(i x)` for complex numbers."""
    if x.dtype.kind != "c":
        return np.arctan(x)
    turned = _atanh(_of_parts(-x.imag, x.real, x.dtype))
    return _of_parts(turned.imag, -turned.real, x.dtype)


sqrt = _cut(np.sqrt, _mended(np.sqrt, _nan_of_nan, _sqrt_parts, np.inf))
asin = _cut(np.arcsin, _mended(np.arcsin, _nan_of_finite))
acos = _cut(np.arccos, _mended(np.arccos, _nan_of_finite))
asinh = _cut(np.arcsinh, _mended(np.arcsinh, _nan_of_finite))
acosh = _cut(np.arccosh, _mended(np.arccosh, _nan_of_finite))


@is_ufunc(np.log1p)
def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """Accurate near 0, and finite for the largest numbers, which NumPy's is not for complex ones."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    a, b = x.real, x.imag
    small = (abs(a) < 0.5) & (abs(b) < 0.5)
    out = log(_of_parts(a + 1, b, x.dtype))
    return _of_parts(np.where(small, np.log1p(a * (a + 2) + b * b) / 2, out.real), out.imag, x.dtype)


def _rsqrt_prepared(avals: Any, *, accuracy: Any = None) -> Any:
    [x] = avals
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or not x.shape:
        return None
    lines = "{out} = {sqrt}({0})\n{reciprocal}({out}, {out})"
    return HostCode(lines, sqrt=np.sqrt, reciprocal=np.reciprocal)


@prepared_by(_rsqrt_prepared)
@through_float32
def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Zero of infinite numbers, and infinite only in the real part of zero."""
    out = np.reciprocal(np.sqrt(x))
    if x.dtype.kind == "c" and not np.isfinite(out).all():
        out = np.where(np.isinf(x), x.dtype.type(0), out)
        return np.where(x == 0, x.dtype.type(complex(np.inf, np.nan)), out)
    return out


@is_ufunc(np.exp)
def exp(x: Any, *, accuracy: Any = None) -> Any:
    """The exponential."""
    if (found := _by_parts(x, _exp_parts)) is not None:
        return found
    out = np.exp(x)
    if x.dtype.kind == "c" and not np.isfinite(x.imag).all():
        return _nan_of_angle(x, out)
    return out


@is_ufunc(np.exp2)
def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """By parts for complex numbers: an infinite one times log(2) would be NaN."""
    if x.dtype.kind != "c":
        return np.exp2(x)
    scale = x.real.dtype.type(np.log(2))
    return exp(_of_parts(x.real * scale, x.imag * scale, x.dtype))


@is_ufunc(np.cbrt)
def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """The cube root of real numbers."""
    return np.cbrt(x)


def sign(x: Any) -> Any:
    """`x / |x|`, part by part."""
    size = np.absolute(x)
    size = np.where(size == 0, size.dtype.type(1), size)
    return _of_parts(x.real / size, x.imag / size, x.dtype)


def divide(x: Any, y: Any) -> Any:
    """`x / y`; complex quotients that are not finite as C's Annex G recommends."""
    out = np.divide(x, y)
    if x.dtype.kind == "c" and not np.isfinite(out).all():
        return np.where(np.isfinite(out), out, _quotient(*np.broadcast_arrays(x, y)))
    return out


@is_ufunc(np.arctan2)
def atan2(x: Any, y: Any) -> Any:
    """For complex numbers `-i log((y + ix) / sqrt(x^2 + y^2))`."""
    if x.dtype.kind != "c":
        return np.arctan2(x, y)
    i = x.dtype.type(1j)
    return -i * log(divide(y + i * x, sqrt(x * x + y * y)))


def _quotient(x: Any, y: Any) -> Any:
    """Smith's algorithm, and what Annex G says of infinite operands and zero divisors where that gives NaN only."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    first = abs(c) < abs(d)
    small, large = np.where(first, (c, d), (d, c))
    ratio = small / large
    scale = large + small * ratio
    re = np.where(first, a * ratio + b, a + b * ratio) / scale
    im = np.where(first, b * ratio - a, b - a * ratio) / scale
    of_zero, of_infinite, by_infinite = (y == 0) & ~(np.isnan(a) & np.isnan(b)), np.isinf(x), np.isinf(y)
    infinity = np.copysign(c.dtype.type(np.inf), c)
    p, q = (np.copysign(np.isinf(v).astype(v.dtype), v) for v in (a, b))
    r, s = (np.copysign(np.isinf(v).astype(v.dtype), v) for v in (c, d))
    conditions = [~(np.isnan(re) & np.isnan(im)), of_zero, of_infinite & np.isfinite(y), by_infinite & np.isfinite(x)]
    re = np.select(conditions, [re, infinity * a, np.inf * (p * c + q * d), 0 * (a * r + b * s)], np.nan)
    im = np.select(conditions, [im, infinity * b, np.inf * (q * c - p * d), 0 * (b * r - a * s)], np.nan)
    return _of_parts(re, im, x.dtype)


def power(x: Any, y: Any) -> Any:
    """`x ** y`; in polar coordinates where a complex power is not finite."""
    out = np.power(x, y)
    if x.dtype.kind != "c":
        return out
    regular = np.isfinite(out) & np.isfinite(x) & np.isfinite(y)
    return out if regular.all() else np.where(regular, out, _polar_power(*np.broadcast_arrays(x, y)))


def _polar_power(x: Any, y: Any) -> Any:
    """`|x|**c exp(-d angle)`, turned by `c angle + d log|x|`, for `y = c + di`; exact at 1**y, x**0 and inf**c."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    modulus, angle = np.hypot(a, b), np.arctan2(b, a)
    modulus = np.where(np.isnan(x), a.dtype.type(np.nan), modulus)
    size = np.power(modulus, c) * np.exp(-d * angle)
    turn = c * angle + d * np.log(modulus)
    real = _of_parts(np.power(a, c), np.zeros_like(a), x.dtype)
    one, of_zero = (y == 0) | (x == 1), (x == 0) & (c > 0) & np.isfinite(d)
    of_infinity = (a == np.inf) & (b == 0) & (d == 0) & (c != 0) & ~np.isnan(c)
    polar = _of_parts(size * np.cos(turn), size * np.sin(turn), x.dtype)
    return np.select([one, of_zero, of_infinity], [np.ones_like(x), np.zeros_like(x), real], polar)
