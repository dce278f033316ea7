"""Error functions and functions of the normal distribution: dawsn erf erfc erfcinv erfcx erfinv fresnel ndtr ...

The functions are elementwise on floating-point numbers (`wofz`: complex), and raise TypeError for arguments that are
not arrays. Definitions: DLMF 7.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import get_aval
from corejax_lax_basic import lax
from corejax_scipy._arguments import together
from corejax_scipy.special import _wide
from corejax_scipy.special._chebyshev import Piece, in_pieces, powers
from corejax_scipy.special._formulas import (
    ROOT_PI,
    SINGLE,
    WIDE,
    exp_of_square,
    halves,
    polynomial,
    short_exp,
    short_log,
    where,
    widened,
)
from corejax_scipy.special._rows import row, scipy_special, scipys_or

_ROOT_2 = math.sqrt(2)
_ROOT_2PI = math.sqrt(2 * math.pi)


def erf(x: Any) -> Any:
    """Compute the error function, `2 / sqrt(pi)` times the integral of `exp(-t**2)` from 0 to `x`."""
    return lax.erf(*together("erf", x))


def erfc(x: Any) -> Any:
    """Compute `1 - erf(x)`, accurately also if it is small."""
    return lax.erfc(*together("erfc", x))


def erfinv(x: Any) -> Any:
    """Compute the inverse of `erf`: infinite at -1 and 1, NaN beyond."""
    return lax.erf_inv(*together("erfinv", x))


# -- erfcx, dawsn ------------------------------------------------------------------------------------------------

# The series is in t = (x - K) / (x + K), which maps [0, inf) to [-1, 1) (Shepherd and Laframboise 1981).
_K = 3.75


def _erfcx_at(t: Any) -> Any:
    x = _K * (1 + t) / (1 - t)
    return (1 + 2 * x) * scipy_special("erfcx")(x)


_ERFCX = Piece(-1, 1, 1, _erfcx_at)


def erfcx_formula(x: Any) -> Any:
    """Return erfcx by a series for positive `x`, and by reflection for negative `x`."""
    size = where(lax.is_finite(x), lax.abs(x), 1e300)
    right = in_pieces(1.0 - 2.0 * _K / (size + _K), _ERFCX) / (1.0 + 2.0 * size)
    left = 2.0 * exp_of_square(lax.max(x, lax.full_like(x, -30.0)), 1.0) - right
    out = where(x < 0.0, where(x < -27.0, math.inf, left), right)
    return where(x == x, where(lax.eq(x, math.inf + 0.0 * size), 0.0, out), x)


def _rest(x: Any, sign: float) -> Any:
    """Return `sum(sign**k (2k-1)!! / (2 x**2)**k)` over `k >= 1` for large `x` (DLMF 7.12.1)."""
    y = sign / (2.0 * x * x)
    out = y * 0.0
    for k in range(12, 0, -1):
        out = y * (2 * k - 1) * (1.0 + out)
    return out


def _far(x: Any) -> Any:
    """Return where `x` is so large that the asymptotic series is accurate."""
    return lax.abs(x) > (12.0 if get_aval(x).dtype == WIDE else 4.5)


def _erfcx_slope(out: Any, x: Any) -> Any:
    """Return `2 x erfcx(x) - 2/sqrt(pi)`, by the asymptotic series where the terms cancel."""
    far = _far(x) & (x > 0.0)
    series = (2.0 / ROOT_PI) * _rest(jnp.where(far, x, 20.0), -1.0)
    return jnp.where(far, series, 2.0 * x * out - 2.0 / ROOT_PI)


erfcx, erfcx_p = row(
    "erfcx", erfcx_formula, [_erfcx_slope],
    "`exp(x**2) erfc(x)`, which neither overflows nor underflows for positive `x`.",
)  # fmt: skip

_DAWSN = (
    Piece(0, 2, 2, lambda x: scipy_special("dawsn")(x) / x),
    Piece(2, 4, 1, lambda x: scipy_special("dawsn")(x) / x),
    Piece(4, math.inf, -2, lambda x: scipy_special("dawsn")(x) * x),
)


def _dawsn(x: Any) -> Any:
    size = lax.abs(x)
    sum_ = in_pieces(size, *_DAWSN)
    return where(size < 4.0, x * sum_, sum_ / where(size < 4.0, 4.0, x))


def _dawsn_slope(out: Any, x: Any) -> Any:
    """Return `1 - 2 x dawsn(x)`, by the asymptotic series where the terms cancel."""
    far = _far(x)
    return jnp.where(far, -_rest(jnp.where(far, x, 20.0), 1.0), 1.0 - 2.0 * x * out)


dawsn, dawsn_p = row(
    "dawsn", _dawsn, [_dawsn_slope],
    "Dawson's integral, `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`.",
)  # fmt: skip

# -- the normal distribution -------------------------------------------------------------------------------------

_ERROR = 2.0**-29  # the relative error of series for float32


def _tail(x: Any) -> Any:
    """Return `exp(x**2 / 2)` times the probability beyond `x >= 0`, for float32, with a single division."""
    size = where(x > 1e30, 1e30, x) * math.sqrt(0.5)
    above, scale = size + _K, 1.0 + 2.0 * size
    inverse = 1.0 / (above * scale)
    return 0.5 * polynomial(1.0 - 2.0 * _K * scale * inverse, powers(_ERFCX, _ERROR)) * (above * inverse)


def _ndtr_of_float32(x: Any) -> Any:
    x = widened(x)
    beyond = _tail(lax.abs(x)) * short_exp(-0.5 * x * x)
    return where(x < 0.0, beyond, 1.0 - beyond)


ndtr, ndtr_p = row(
    "ndtr", lambda x: 0.5 * lax.erfc(x * -math.sqrt(0.5)), [lambda out, x: lax.exp(-0.5 * x * x) / _ROOT_2PI],
    "The cumulative distribution function of the standard normal distribution.",
    single=_ndtr_of_float32,
    many=True,
)  # fmt: skip


def _log_ndtr(x: Any) -> Any:
    low = where(x < -1.0, x, -1.0)
    tail = lax.log(0.5 * erfcx_formula(low * -math.sqrt(0.5))) - 0.5 * low * low
    high = where(x < -1.0, 0.0, x)
    return where(x < -1.0, tail, lax.log1p(-0.5 * lax.erfc(high * math.sqrt(0.5))))


def _log_ndtr_of_float32(x: Any) -> Any:
    """Return log_ndtr by one logarithm: of the scaled tail, of the tail, or of 1 minus the tail."""
    x = widened(x)
    tail, half_square = _tail(lax.abs(x)), 0.5 * x * x
    beyond = tail * short_exp(-half_square)
    far = x < -1.0
    argument = where(far, tail, where(x < 0.0, beyond, 1.0 - beyond))
    high = lax.convert_element_type(argument, SINGLE)
    # The rounding error of the argument matters only near 1, where it adds to the logarithm.
    rest = (1.0 - widened(high)) - beyond
    out = widened(lax.log(high)) + where(x < 0.0, where(far, -half_square, 0.0), rest)
    return where((beyond == 0.0) & (x > 0.0), -0.0, out)


def _log_ndtr_slope(out: Any, x: Any) -> Any:
    """Return the density divided by the distribution function."""
    low = jnp.where(x < 0.0, x, 0.0)
    left = (2.0 / _ROOT_2PI) / erfcx(low * -math.sqrt(0.5))
    return jnp.where(x < 0.0, left, jnp.exp(-0.5 * x * x - out) / _ROOT_2PI)


_log_ndtr_row, log_ndtr_p = row(
    "log_ndtr", _log_ndtr, [_log_ndtr_slope],
    "Logarithm of `ndtr`, accurate also where that underflows.",
    single=_log_ndtr_of_float32,
    many=True,
)  # fmt: skip


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """Compute the logarithm of `ndtr`, accurately also if `ndtr` underflows.

    Args:
        x: a floating-point array.
        series_order: ignored, since no asymptotic series is summed; a positive integer.

    Raises:
        TypeError: `x` is complex or not an array, or `series_order` is not an integer.
        ValueError: `series_order` is not positive.
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order must be an integer, got {series_order!r}")
    if series_order < 1:
        raise ValueError(f"log_ndtr: series_order must be positive, got {series_order}")
    return _log_ndtr_row(x)


def _by_root(s: Any) -> Any:
    """Return `-ndtri(p) / s` with `s = sqrt(-2 log(p))`."""
    return -scipy_special("ndtri_exp")(-s * s / 2) / s


_QUANTILES = (Piece(1.9, 4, -1, _by_root), Piece(4, 12, -1, _by_root), Piece(12, 38.7, -1, _by_root))
_MIDDLE = 0.35  # half the width of the interval around 1/2 with a series of its own
_CENTRAL = Piece(0, _MIDDLE, 2, lambda q: scipy_special("ndtri")(0.5 + q) / q)


def _quantile(logarithm: Any, error: float) -> Any:
    def formula(p: Any) -> Any:
        q = p - 0.5
        central = lax.abs(q) < _MIDDLE
        inner = q * in_pieces(where(central, lax.abs(q), 0.1), _CENTRAL, error=error)
        tail = where(q < 0.0, p, 1.0 - p)
        sane = where(central | ~(tail > 0.0), 0.1, tail)
        s = lax.sqrt(-2.0 * logarithm(sane))
        outer = s * in_pieces(s, *_QUANTILES, error=error)
        out = where(central, inner, where(q < 0.0, -outer, outer))
        ends = where(p == 0.0, -math.inf, where(p == 1.0, math.inf, math.nan))
        return where((p > 0.0) & (p < 1.0), out, ends)

    return formula


def _ndtri_of_float32(p: Any) -> Any:
    return _quantile(short_log, _ERROR)(widened(p))


ndtri, ndtri_p = row(
    "ndtri", _quantile(lax.log, 0.0), [lambda out, p: _ROOT_2PI * jnp.exp(0.5 * out * out)],
    "The quantile function of the standard normal distribution, the inverse of `ndtr`; NaN outside of [0, 1].",
    single=_ndtri_of_float32,
    many=True,
    arguments="p",
)  # fmt: skip


def _erfcinv(quantile: Any) -> Any:
    """Return the inverse of erfc for `y < 0.5` by the normal quantile, which keeps tails, else by that of erf."""

    def formula(y: Any) -> Any:
        tail = y < 0.5
        low = quantile(0.5 * where(tail, y, 0.5)) * -math.sqrt(0.5)
        return where(tail, low, lax.erf_inv(1.0 - where(tail, 1.0, y)))

    return formula


erfcinv, erfcinv_p = row(
    "erfcinv", _erfcinv(_quantile(lax.log, 0.0)), [lambda out, y: -0.5 * ROOT_PI * jnp.exp(out * out)],
    "Compute the inverse of `erfc`: infinite at 0 and 2, NaN outside of [0, 2].",
    many=True,
    arguments="y",
)  # fmt: skip


@functools.cache
def _gauss_legendre(count: int) -> tuple[list[float], list[float]]:
    """Return points and weights of Gauss-Legendre quadrature on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return [float(x) for x in (points + 1) / 2], [float(w) for w in weights / 2]


def _owens_t_below(h: Any, a: Any, points: int, exp: Any, density: Any) -> Any:
    """Return Owen's T for `h >= 0` and `0 <= a <= 1`, by quadrature up to where the integrand is negligible."""
    scale = where(h * a > 8.0, 8.0 / where(h > 8.0, h, 8.0), a)
    total, step = h * 0.0, h * scale
    square, other = -0.5 * step * step, scale * scale
    for x, w in zip(*_gauss_legendre(points), strict=True):
        total = total + w * exp(square * (x * x)) / (1.0 + other * (x * x))
    return density(h) * scale * total / (2.0 * math.pi)


def _owens_t(below: Any, quadrants: Any) -> Any:
    """Return Owen's T by symmetry, and for `|a| > 1` by reflection (Owen 1956, equation 2.3)."""

    def formula(h: Any, a: Any) -> Any:
        h, a = (widened(v) for v in jnp.broadcast_arrays(h, a))
        h, size = lax.abs(h), lax.abs(a)
        finite = where(size > 1e300, 1e300, size)
        large = size > 1.0
        product = where(h == 0.0, 0.0, lax.min(h * finite, h * 0.0 + 1e300))
        inner = below(where(large, product, h), where(large, 1.0 / where(large, finite, 1.0), finite))
        reflected = quadrants(h * math.sqrt(0.5), product * math.sqrt(0.5), product <= 0.67) - inner
        out = where(h > 1e10, 0.0, where(large, reflected, inner))
        out = where(a == 0.0, 0.0, lax.sign(a) * out)
        return where((h == h) & (a == a), out, math.nan)

    return formula


def _quadrants(x: Any, y: Any, near: Any) -> Any:
    """Return `(1 - erf(x) erf(y)) / 4`."""
    close = 0.25 - 0.25 * lax.erf(x) * lax.erf(y)
    return where(near, close, 0.25 * (lax.erfc(x) + lax.erfc(y) - lax.erfc(x) * lax.erfc(y)))


def _short_quadrants(x: Any, y: Any, near: Any) -> Any:
    x, y = (2.0 * _tail(v * _ROOT_2) * _wide.exp(-v * v) for v in (x, y))
    return 0.25 * (x + y - x * y)


_OWENS_T = _owens_t(lambda h, a: _owens_t_below(h, a, 24, lax.exp, lambda h: exp_of_square(h, -0.5)), _quadrants)
_OWENS_T_OF_FLOAT32 = _owens_t(
    lambda h, a: _owens_t_below(h, a, 14, _wide.exp, lambda h: _wide.exp(-0.5 * h * h)), _short_quadrants
)


def _owens_t_impl(h: Any, a: Any) -> Any:
    """Return SciPy's result, or for small `a`, where SciPy loses up to all digits, the first terms of a series."""
    h, a = h.astype(np.float64), a.astype(np.float64)
    small = (np.abs(a) < 1e-5) & (np.abs(h) < 40)
    x, y = np.where(small, h, 0), np.where(small, a, 0)
    series = np.exp(-0.5 * x * x) * (y - y**3 * (0.5 * x * x + 1) / 3) / (2 * math.pi)
    return np.where(small, series, scipy_special("owens_t")(h, a))


owens_t, owens_t_p = row(
    "owens_t",
    _OWENS_T,
    [
        lambda out, h, a: jnp.exp(-0.5 * h * h) * lax.erf(a * h / _ROOT_2) * (-0.5 / _ROOT_2PI),
        lambda out, h, a: jnp.exp(-0.5 * (1.0 + a * a) * h * h) / (2.0 * math.pi * (1.0 + a * a)),
    ],
    "Owen's T function: the integral of `exp(-h**2 (1 + t**2) / 2) / (1 + t**2) / (2 pi)` over t from 0 to `a`.",
    impl=_owens_t_impl,
    single=_OWENS_T_OF_FLOAT32,
    many=True,
    arguments="h a",
)

# -- Fresnel's integrals -----------------------------------------------------------------------------------------


def _auxiliary(x: Any) -> Any:
    """Return `g(x) + i f(x)` (DLMF 7.2.10 and 7.7.10)."""
    return (0.5 + 0.5j) * scipy_special("wofz")(ROOT_PI / 2 * (1 + 1j) * x)


_FRESNEL_S = Piece(0, 2, 4, lambda x: scipy_special("fresnel")(x)[0] / x**3)
_FRESNEL_C = Piece(0, 2, 4, lambda x: scipy_special("fresnel")(x)[1] / x)
_F = (Piece(2, 3, -4, lambda x: _auxiliary(x).imag * x), Piece(3, math.inf, -4, lambda x: _auxiliary(x).imag * x))
_G = (Piece(2, 3, -4, lambda x: _auxiliary(x).real * x**3), Piece(3, math.inf, -4, lambda x: _auxiliary(x).real * x**3))


def phase(x: Any) -> Any:
    """Return `pi x**2 / 2` modulo whole turns, without rounding the square."""
    high, rest = halves(lax.clamp(lax.full_like(x, -1e9), x, lax.full_like(x, 1e9)))
    return (lax.rem(high * high, lax.full_like(x, 4.0)) + lax.rem(rest, lax.full_like(x, 4.0))) * (math.pi / 2)


def _fresnel(which: str) -> Any:
    def formula(x: Any) -> Any:
        size = lax.abs(x)
        near, small = size < 2.0, where(size < 2.0, size, 1.0)
        large = where(near, 2.0, where(size > 1e30, 1e30, size))
        f, g = in_pieces(large, *_F) / large, in_pieces(large, *_G) / (large * large * large)
        sine, cosine = lax.sin(phase(large)), lax.cos(phase(large))
        if which == "s":
            inner, outer = small * small * small * in_pieces(small, _FRESNEL_S), 0.5 - f * cosine - g * sine
        else:
            inner, outer = small * in_pieces(small, _FRESNEL_C), 0.5 + f * sine - g * cosine
        out = where(near, inner, outer)
        return where(x == x, where(x < 0.0, -out, out), x)

    return formula


def _is_turned(out: Any, x: Any) -> Any:
    """Return where the rounding of SciPy's square matters, since it has many whole turns."""
    return np.abs(x) > 1e3


def _of_phase(f: Any) -> Any:
    """Return a derivative rule: the integrand `f(pi x**2 / 2)`, which is arbitrary beyond 1e9."""
    return lambda out, x: lax.in_dtype(f(phase(widened(x))), x.dtype)


_s, fresnel_s_p = row(
    "fresnel_s", _fresnel("s"), [_of_phase(lax.sin)],
    "Fresnel's sine integral.",
    impl=scipys_or(lambda x: scipy_special("fresnel")(x)[0], _fresnel("s"), _is_turned),
)  # fmt: skip

_c, fresnel_c_p = row(
    "fresnel_c", _fresnel("c"), [_of_phase(lax.cos)],
    "Fresnel's cosine integral.",
    impl=scipys_or(lambda x: scipy_special("fresnel")(x)[1], _fresnel("c"), _is_turned),
)  # fmt: skip


def fresnel(x: Any) -> tuple[Any, Any]:
    """Compute the Fresnel integrals `(S, C)`, of `sin(pi t**2 / 2)` and `cos(pi t**2 / 2)` over t from 0 to `x`.

    Raises:
        TypeError: `x` is complex, or not an array.
    """
    (x,) = together("fresnel", x)
    return _s(x), _c(x)


# -- Faddeeva's function -----------------------------------------------------------------------------------------

_TERMS = 48


@functools.cache
def _weideman() -> tuple[float, list[float]]:
    """Return scale and coefficients of the rational expansion (Weideman 1994, with the FFT of section 3)."""
    scale = math.sqrt(_TERMS / _ROOT_2)
    count = 2 * _TERMS
    theta = np.arange(-count + 1, count) * np.pi / count
    t = scale * np.tan(theta / 2)
    values = np.concatenate([[0.0], np.exp(-t * t) * (scale * scale + t * t)])
    spectrum = np.real(np.fft.fft(np.fft.fftshift(values))) / (2 * count)
    return scale, [float(c) for c in spectrum[1 : _TERMS + 1]]


def _upper(z: Any) -> Any:
    """Return wofz for positive imaginary parts: a rational expansion, or a continued fraction for large `|z|`."""
    scale, coefficients = _weideman()
    size = lax.abs(lax.real(z)) + lax.abs(lax.imag(z))
    far = size > 12.0
    one = lax.full_like(z, 1.0)
    inner = lax.select(far, one, z)
    below = scale - 1j * inner
    ratio = (scale + 1j * inner) / below
    total = ratio * 0.0 + coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * ratio + c
    near = 2.0 * total / (below * below) + (1 / ROOT_PI) / below
    outer = lax.select(far, z, one * 20.0)
    fraction = outer
    for k in range(12, 0, -1):
        fraction = outer - (0.5 * k) / fraction
    return lax.select(far, (1j / ROOT_PI) / fraction, near)


def _wofz(z: Any) -> Any:
    lower = lax.imag(z) < 0.0
    out = _upper(lax.select(lower, -z, z))
    growth = lax.exp(-z * z)
    return lax.select(lower, growth + growth - out, out)  # a sum, since 2 * growth would multiply 0 by infinity


wofz, wofz_p = row(
    "wofz", _wofz, [lambda out, z: 2j / ROOT_PI - 2.0 * z * out],
    "Faddeeva's function `exp(-z**2) erfc(-i z)`, of complex numbers.",
    complexes=True, arguments="z",
)  # fmt: skip
