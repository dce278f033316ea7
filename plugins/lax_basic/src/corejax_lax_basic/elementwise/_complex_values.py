"""Impl rules of functions of complex numbers: NumPy's, with the values of `ENDS` if a part is infinite or NaN.

Annex G leaves some values of the remaining functions open, and NumPy and XLA choose differently: impl rules then give
XLA's value, so that evaluated and compiled programs agree. Real numbers, and complex arrays that are finite
throughout, take NumPy's result unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend.speed import HostCode
from corejax_lax_basic._base.narrow_floats import through_float32
from corejax_lax_basic._base.prepared import Avals, is_ufunc, prepared_by
from corejax_lax_basic.elementwise._complex_ends import with_ends

_NAN = complex(np.nan, np.nan)


def _of_parts(re: Any, im: Any, dtype: Any) -> Any:
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), dtype)
    out.real, out.imag = re, im
    return out


def _with_ends(name: str, f: Any) -> Callable[[Any], Any]:
    """Return NumPy's `f` with the values of `ENDS` for complex operands or results that are not finite throughout.

    `accuracy` is ignored: NumPy has one implementation of each function.
    """

    @is_ufunc(f, "biuf")
    def impl(x: Any, *, accuracy: Any = None) -> Any:
        out = f(x)
        if x.dtype.kind == "c" and not (np.isfinite(out).all() and np.isfinite(x).all()):
            return with_ends(name, x, out)
        return out

    return impl


log = _with_ends("log", np.log)
_expm1 = _with_ends("expm1", np.expm1)
tan = _with_ends("tan", np.tan)
tanh = _with_ends("tanh", np.tanh)
sin = _with_ends("sin", np.sin)
cos = _with_ends("cos", np.cos)
sinh = _with_ends("sinh", np.sinh)
cosh = _with_ends("cosh", np.cosh)


@is_ufunc(np.expm1, "biuf")
def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """Compute NumPy's `expm1`, with positive zeros for complex numbers, as XLA has them."""
    out = _expm1(x)
    return out + 0 if x.dtype.kind == "c" else out


@is_ufunc(np.square, "iuf")
def square(x: Any) -> Any:
    """Compute `x * x`; the real part of a complex square is `(a - b)(a + b)`, for accuracy."""
    if x.dtype.kind != "c":
        return np.square(x)
    a, b = x.real, x.imag
    return _of_parts((a - b) * (a + b), 2 * a * b, x.dtype)


def _or_of_complex(f: np.ufunc) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of complex numbers: its impl rule calls the ufunc `f` for real numbers."""

    def decorate(of_complex: Callable[..., Any]) -> Callable[..., Any]:
        @is_ufunc(f)
        def impl(*operands: Any, accuracy: Any = None) -> Any:
            return (of_complex if operands[0].dtype.kind == "c" else f)(*operands)

        return impl

    return decorate


def _with_branch_cut(name: str, f: np.ufunc) -> Callable[..., Any]:
    """Return NumPy's `f` with the values of `ENDS`, and with the sign of zeros ignored on its branch cuts."""
    of_complex = _with_ends(name, f)
    return _or_of_complex(f)(lambda x: of_complex(x + x.dtype.type(0)))


atanh = _with_ends("atanh", np.arctanh)
atan = _with_ends("atan", np.arctan)
sqrt = _with_branch_cut("sqrt", np.sqrt)
asin = _with_branch_cut("asin", np.arcsin)
acos = _with_branch_cut("acos", np.arccos)
asinh = _with_branch_cut("asinh", np.arcsinh)
acosh = _with_branch_cut("acosh", np.arccosh)


@_or_of_complex(np.log1p)
def log1p(x: Any) -> Any:
    """Compute `log(1 + x)` of complex `x`: accurate near 0 and, unlike NumPy's, finite for the largest numbers."""
    a, b = x.real, x.imag
    small = (abs(a) < 0.5) & (abs(b) < 0.5)
    out = log(_of_parts(a + 1, b, x.dtype))
    return _of_parts(np.where(small, np.log1p(a * (a + 2) + b * b) / 2, out.real), out.imag, x.dtype)


@_or_of_complex(np.log2)
def log2(x: Any) -> Any:
    """Compute the logarithm to base 2 of complex `x` part by part, so that infinite parts do not give NaN."""
    out, scale = log(x), x.real.dtype.type(np.log(2))
    return _of_parts(out.real / scale, out.imag / scale, x.dtype)


def _rsqrt_prepared(avals: Avals, *, accuracy: Any = None) -> Any:
    [x] = avals
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or not x.shape:
        return None
    lines = "{out} = {sqrt}({0})\n{reciprocal}({out}, {out})"
    return HostCode(lines, sqrt=np.sqrt, reciprocal=np.reciprocal)


@prepared_by(_rsqrt_prepared)
@through_float32
def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Compute `1 / sqrt(x)`: zero for infinite complex numbers, and infinite only in the real part for zero."""
    out = np.reciprocal(np.sqrt(x))
    if x.dtype.kind == "c" and not np.isfinite(out).all():
        out = np.where(np.isinf(x), x.dtype.type(0), out)
        return np.where(x == 0, x.dtype.type(complex(np.inf, np.nan)), out)
    return out


exp = _with_ends("exp", np.exp)


@_or_of_complex(np.exp2)
def exp2(x: Any) -> Any:
    """Compute `2 ** x` of complex `x` by its parts: an infinite number times log(2) would be NaN."""
    scale = x.real.dtype.type(np.log(2))
    return exp(_of_parts(x.real * scale, x.imag * scale, x.dtype))


@is_ufunc(np.cbrt)
def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """Return the cube root of real numbers."""
    return np.cbrt(x)


def sign(x: Any) -> Any:
    """Compute `x / |x|`, part by part."""
    size = np.absolute(x)
    zero = size == 0
    size = np.where(zero, size.dtype.type(1), size)
    return np.where(zero, x.dtype.type(0), _of_parts(x.real / size, x.imag / size, x.dtype))


def divide(x: Any, y: Any) -> Any:
    """Compute `x / y`; complex quotients that are not finite follow the recommendation of C's Annex G."""
    out = np.divide(x, y)
    if x.dtype.kind == "c" and not np.isfinite(out).all():
        return np.where(np.isfinite(out), out, _quotient(*np.broadcast_arrays(x, y)))
    return out


@_or_of_complex(np.arctan2)
def atan2(x: Any, y: Any) -> Any:
    """Compute `-i log((y + ix) / sqrt(x^2 + y^2))`."""
    i = x.dtype.type(1j)
    return -i * log(divide(y + i * x, sqrt(x * x + y * y)))


def _quotient(x: Any, y: Any) -> Any:
    """Divide by Smith's algorithm; if the quotient is NaN, give Annex G's for infinite operands and zero divisors."""
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
    """Compute `x ** y`; complex powers that are not finite are computed in polar coordinates."""
    out = np.power(x, y)
    if x.dtype.kind != "c":
        return out
    regular = np.isfinite(out) & np.isfinite(x) & np.isfinite(y)
    return out if regular.all() else np.where(regular, out, _polar_power(*np.broadcast_arrays(x, y)))


def _polar_power(x: Any, y: Any) -> Any:
    """Compute `|x|**c exp(-d angle)` turned by `c angle + d log|x|`, for `y = c + di`; 1**y, x**0, inf**c are exact."""
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
