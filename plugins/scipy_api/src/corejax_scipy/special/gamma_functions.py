"""The gamma function and related functions.

The functions are elementwise on floating-point numbers; `gamma` and `loggamma` also accept complex numbers. They raise
TypeError for other complex arguments, and for arguments that are not arrays. Definitions: DLMF 5 and 8.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import corejax.numpy as jnp
from corejax import custom_jvp
from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_scipy._arguments import flag, inexact, operand, reals, static_int, together
from corejax_scipy.special._formulas import polynomial, sin_pi, stirling_rest, where
from corejax_scipy.special._rows import in_float64, row

__all__ = [
    "bernoulli", "digamma", "factorial", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn",
    "loggamma", "multigammaln", "polygamma", "zeta",
]  # fmt: skip

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

# -- gamma -------------------------------------------------------------------------------------------------------


def _positive_gamma(x: Any) -> Any:
    """Return gamma for `x > 0`, by Stirling's formula after a shift up to 10."""
    small = x < 10.0
    product, shifted = x * 0.0 + 1.0, x
    for _ in range(10):
        here = shifted < 10.0
        product = where(here, product * shifted, product)
        shifted = where(here, shifted + 1.0, shifted)
    large = where(shifted > 180.0, 180.0, shifted)
    half = lax.pow(large, 0.5 * large - 0.25)  # a square root, since the power overflows before the result does
    out = math.sqrt(2 * math.pi) * half * lax.exp(stirling_rest(large) - large) * half
    return where(small, out / product, where(x > 171.7, math.inf, out))


def gamma_formula(x: Any) -> Any:
    """Return gamma, by reflection below zero (DLMF 5.5.3); NaN at negative poles, infinite at zero."""
    size = lax.abs(x)
    negative = x < 0.0
    sine = sin_pi(where(negative, size, 0.5))
    reflected = (-math.pi) / (sine * size * _positive_gamma(where(negative, size, 1.0)))
    out = where(negative, reflected, _positive_gamma(where(x > 0.0, x, 1.0)))
    out = where(size < 1e-17, 1.0 / x, out)  # for tiny x the product of the sine and `size` may underflow
    return where(x == x, where(negative & (lax.floor(x) == x), math.nan, out), x)


_real_gamma, gamma_p = row(
    "gamma", gamma_formula, [lambda out, x: out * lax.digamma(x)],
    "The gamma function of real numbers.",
)  # fmt: skip


def gammasgn_formula(x: Any) -> Any:
    """Return the sign of the gamma function; NaN at its negative poles."""
    below = lax.floor(x)
    odd = lax.floor(0.5 * below) * 2.0 != below
    out = where((x < 0.0) & odd, -1.0, 1.0)
    out = where(x == 0.0, lax.sign(1.0 / x), out)
    return where((x == x) & ~((x < 0.0) & (below == x)), out, math.nan)


gammasgn, gammasgn_p = row(
    "gammasgn", gammasgn_formula, [None], "The sign of the gamma function: 1.0 or -1.0, NaN at its negative poles.",
)  # fmt: skip

# -- complex -----------------------------------------------------------------------------------------------------

_SHIFT = 12
# Coefficients of loggamma(2 + t) / t by t (DLMF 5.7.3).
_NEAR_TWO = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
    9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
    4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
    2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
)  # fmt: skip


def _complex_stirling(z: Any) -> Any:
    """Return loggamma for `Re z >= 12` or so, by Stirling's formula."""
    return (z - 0.5) * lax.log(z) - z + HALF_LOG_2PI + stirling_rest(z)


def _right_loggamma(z: Any) -> Any:
    """Return loggamma for `Re z >= 1/2`, after a shift that subtracts a sum of logarithms."""
    total, shifted = z * 0.0, z
    for _ in range(_SHIFT):
        here = lax.real(shifted) < _SHIFT
        one = lax.full_like(shifted, 1.0)
        total = total + lax.log(lax.select(here, shifted, one))
        shifted = lax.select(here, shifted + 1.0, shifted)
    return _complex_stirling(shifted) - total


def _or_about_zeros(z: Any, elsewhere: Any) -> Any:
    """Return loggamma near its zeros 1 and 2 by a series, since other formulas cancel there; else `elsewhere`."""
    one, two = lax.abs(z - 1.0) < 0.3, lax.abs(z - 2.0) < 0.3
    t = lax.select(one, z - 1.0, lax.select(two, z - 2.0, lax.full_like(z, 0.0)))
    series = t * polynomial(t, _NEAR_TWO)
    return lax.select(one, series - lax.log1p(t), lax.select(two, series, elsewhere))


def _less_exp(x: Any, y: Any) -> Any:
    """Return `1 - exp(x + iy)` without cancellation near poles."""
    half = lax.sin(0.5 * y)
    return lax.complex(2.0 * half * half - lax.expm1(x) * lax.cos(y), -lax.exp(x) * lax.sin(y))


def _loggamma(z: Any) -> Any:
    """Return the branch that is real for positive `z`, with a cut along the negative axis (DLMF 5.5.3; Hare 1997)."""
    x, y = lax.real(z), lax.imag(z)
    left = x < 0.5
    w = lax.select(left, 1.0 - z, z)
    out = _or_about_zeros(w, _right_loggamma(w))
    # In the upper half plane, log(sin(pi z)) is -i pi (z - 1/2) - log 2 + log(1 - exp(2 pi i z)), without overflow.
    upper = lax.complex(x, lax.abs(y))
    turned = x - lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    rest = _less_exp(-2.0 * math.pi * lax.abs(y), 2.0 * math.pi * turned)
    rest = lax.select(left, rest, lax.full_like(rest, 1.0))
    logarithm = -1j * math.pi * (upper - 0.5) - math.log(2.0) + lax.log(rest)
    below = (y < 0.0) | ((y == 0.0) & (1.0 / y < 0.0))
    logarithm = lax.select(below, lax.conj(logarithm), logarithm)
    return lax.select(left, math.log(math.pi) - logarithm - out, out)


def _complex_loggamma_at(z: Any) -> Any:
    """Return loggamma, or NaN at poles."""
    x = lax.real(z)
    pole = (lax.imag(z) == 0.0) & (x <= 0.0) & (lax.floor(x) == x)
    return lax.select(
        pole, lax.full_like(z, complex(math.nan, math.nan)), _loggamma(lax.select(pole, z * 0.0 + 1.0, z))
    )


_complex_loggamma, complex_loggamma_p = row(
    "complex_loggamma", _complex_loggamma_at, None, "Logarithm of the gamma function, of complex numbers.",
    impl="loggamma", complexes=True,
)  # fmt: skip

_complex_gamma, complex_gamma_p = row(
    "complex_gamma", lambda z: lax.exp(_complex_loggamma_at(z)), None, "The gamma function of complex numbers.",
    impl="gamma", complexes=True,
)  # fmt: skip


def gamma(x: Any) -> Any:
    """Compute the gamma function of real or complex numbers; NaN at its negative poles.

    Raises:
        TypeError: `x` is not an array.
    """
    (x,) = inexact("gamma", x)
    return _complex_gamma(x) if dtypes.is_complex(x.dtype) else _real_gamma(x)


def loggamma(x: Any) -> Any:
    """Compute the logarithm of the gamma function: NaN for negative real numbers, the principal branch if complex.

    Raises:
        TypeError: `x` is not an array.
    """
    (x,) = inexact("loggamma", x)
    if dtypes.is_complex(x.dtype):
        return _complex_loggamma(x)
    return jnp.where(x > 0, lax.lgamma(x), math.nan)


def gammaln(x: Any) -> Any:
    """Compute the logarithm of the absolute value of the gamma function."""
    return lax.lgamma(*reals("gammaln", x))


def multigammaln(a: Any, d: int) -> Any:
    """Compute the logarithm of the multivariate gamma function of dimension `d`, for `a > (d - 1) / 2` (DLMF 35.3.4).

    Raises:
        TypeError: `a` is complex or not an array, or `d` is not a static integer.
        ValueError: `d` is below 1.
    """
    count = static_int("multigammaln", d, "d", 1)
    (a,) = reals("multigammaln", a)
    total = 0.25 * count * (count - 1) * math.log(math.pi)
    for i in range(count):
        total = total + lax.lgamma(a - 0.5 * i)
    return total


def gammainc(a: Any, x: Any) -> Any:
    """Compute the regularised lower incomplete gamma function."""
    return lax.igamma(*together("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Any:
    """Compute the regularised upper incomplete gamma function."""
    return lax.igammac(*together("gammaincc", a, x))


def digamma(x: Any) -> Any:
    """Compute the digamma function, the derivative of `gammaln`."""
    return lax.digamma(*reals("digamma", x))


def polygamma(n: Any, x: Any) -> Any:
    """Compute the `n`-th derivative of `digamma` at `x`.

    Raises:
        TypeError: an argument is not an array, or `x` is complex.
        ValueError: `n` does not have an integer dtype.
    """
    order = operand("polygamma", n)
    if not dtypes.is_integer(jnp.result_type(order)):
        raise ValueError(f"polygamma: n must have an integer dtype, got {n!r}")
    order, x = together("polygamma", order, operand("polygamma", x, 1))
    return lax.polygamma(lax.stop_gradient(order), x)


# -- factorials --------------------------------------------------------------------------------------------------


def factorial(n: Any, exact: bool = False) -> Any:
    """Compute `gamma(n + 1)`, or 0 for negative `n`.

    Raises:
        TypeError: `n` is not an array.
        NotImplementedError: `exact` is true; integers of arbitrary size are not supported.
    """
    if flag("factorial", exact, "exact"):
        raise NotImplementedError("factorial: results are floating-point numbers, so `exact` must be False")
    (n,) = reals("factorial", n)
    narrow = dtypes.finfo(n.dtype).bits < 32  # in 16 bits n + 1 would be rounded, 16.4 + 1 to 17.5 for example
    wide = lax.convert_element_type(n, "float32") if narrow else n
    found = jnp.where(wide < 0, 0, _real_gamma(jnp.where(wide < 0, 0, wide) + 1))
    return lax.convert_element_type(found, n.dtype) if narrow else found


def bernoulli(n: int) -> Any:
    """Return the Bernoulli numbers `B[0]`, ..., `B[n]`, with `B[1] = -1/2`, correctly rounded.

    Raises:
        TypeError: `n` is not a static integer.
        ValueError: `n` is negative.
    """
    count = static_int("bernoulli", n, "n", 0)
    numbers = [Fraction(1)]
    for i in range(1, count + 1):
        if i > 1 and i % 2:
            numbers.append(Fraction(0))
        else:
            numbers.append(-sum((math.comb(i + 1, k) * b for k, b in enumerate(numbers)), Fraction(0)) / (i + 1))
    return jnp.asarray([_rounded(b) for b in numbers], dtype=dtypes.default_float_dtype())


def _rounded(b: Fraction) -> float:
    try:
        return float(b)
    except OverflowError:
        return math.copysign(math.inf, b)


# -- zeta --------------------------------------------------------------------------------------------------------

_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


@in_float64
def _zeta_slope(s: Any, q: Any) -> Any:
    """Return the derivative by `s` for `q > 0`, by the Euler-Maclaurin formula (DLMF 25.11.5) term by term."""
    total, w = s * 0.0, q
    for _ in range(14):
        total = total - lax.log(w) * lax.pow(w, -s)
        w = w + 1.0
    logarithm, power = lax.log(w), lax.pow(w, -s)
    total = total - w * power / (s - 1.0) * (logarithm + 1.0 / (s - 1.0)) - 0.5 * power * logarithm
    factor, slope = s / w, 1.0 / w  # s (s+1) ... / w**(2k-1), and its derivative
    for k, number in enumerate(_BERNOULLI, 1):
        total = total + number / math.factorial(2 * k) * power * (slope - logarithm * factor)
        a, b = s + float(2 * k - 1), s + float(2 * k)
        slope = (slope * a * b + factor * (a + b)) / (w * w)
        factor = factor * a * b / (w * w)
    return where((s > 1.0) & (q > 0.0), total, math.nan)


@custom_jvp
def _zeta(x: Any, q: Any) -> Any:
    return lax.zeta(x, q)


@_zeta.defjvp
def _zeta_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, q), (x_dot, q_dot) = primals, tangents
    return _zeta(x, q), x_dot * _zeta_slope(x, q) - q_dot * x * _zeta(x + 1.0, q)


def zeta(x: Any, q: Any = None) -> Any:
    """Compute the Hurwitz zeta function, the sum of `(q + n)**-x` over n = 0, 1, ...

    Args:
        x: the exponent, larger than 1.
        q: the base of the first term.

    Raises:
        TypeError: an argument is complex, or not an array.
        NotImplementedError: `q` is None. The Riemann zeta function of `x > 1` is `zeta(x, 1)`.
    """
    if q is None:
        raise NotImplementedError("zeta: pass q; the Riemann zeta function of x > 1 is zeta(x, 1)")
    return _zeta(*together("zeta", x, q))
