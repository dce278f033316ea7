"""Integrals of elementary functions: exp1 expi expn sici spence.

The functions are elementwise on floating-point numbers, and raise TypeError for complex arguments and those that are
not arrays. Definitions: DLMF 6, 8.19 and 25.12.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import nondifferentiable
from corejax_lax_basic import lax
from corejax_scipy._arguments import together
from corejax_scipy.special._chebyshev import Piece, in_pieces
from corejax_scipy.special._formulas import EULER, log1p, polynomial, where
from corejax_scipy.special._rows import row, scipy_special, scipys_or

# -- exponential integrals ---------------------------------------------------------------------------------------


def _asymptotic(x: Any, sign: int) -> Any:
    """Return `sum((sign)**k k! / x**k)` (DLMF 6.12.1), for `x > 100`."""
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, 30):
        term = term * (sign * k / x)
        total = total + term
    return total


def _scaled(name: str, sign: int) -> Any:
    """Return a function for `x exp(-sign x)` times the integral."""

    def f(x: Any) -> Any:
        y = np.minimum(x, 100.0)
        return np.where(
            x > 100, _asymptotic(np.maximum(x, 100.0), sign), y * np.exp(-sign * y) * scipy_special(name)(y)
        )

    return f


_E1 = tuple(Piece(a, b, -1, _scaled("exp1", -1)) for a, b in ((1, 4), (4, math.inf)))
_EI = tuple(Piece(a, b, -1, _scaled("expi", 1)) for a, b in ((6, 12), (12, 24), (24, 48), (48, math.inf)))
# Coefficients of `sum(x**k / (k k!))` divided by x, the integral of `(exp(t) - 1) / t` (DLMF 6.6.1).
_SERIES = [1 / (k * math.factorial(k)) for k in range(1, 48)]


def _exp1(x: Any) -> Any:
    near, small, large = x < 1.0, where(x < 1.0, x, 0.5), where(x < 1.0, 1.0, x)
    inner = -EULER - lax.log(small) + small * polynomial(-small, _SERIES[:20])
    out = where(near, inner, in_pieces(large, *_E1) * lax.exp(-large) / large)
    return where(x > 0.0, out, where(x == 0.0, math.inf, math.nan))


exp1, exp1_p = row(
    "exp1", _exp1, [lambda out, x: -jnp.exp(-x) / x],
    "The exponential integral `E1`, of `exp(-t) / t` over t from `x` to infinity; NaN for negative `x`.",
)  # fmt: skip


def _expi(x: Any) -> Any:
    near, small = x < 6.0, where((x > 0.0) & (x < 6.0), x, 1.0)
    inner = EULER + lax.log(small) + small * polynomial(small, _SERIES)
    large = where(near, 6.0, x)
    growth = lax.exp(0.5 * large)  # a square root, since the exponential overflows before the quotient does
    outer = in_pieces(large, *_EI) * growth / large * growth
    positive = where(near, inner, where(x == math.inf, math.inf, outer))
    return where(x < 0.0, -_exp1(lax.abs(x)), where(x == 0.0, -math.inf, positive))


expi, expi_p = row(
    "expi", _expi, [lambda out, x: jnp.exp(x) / x],
    "The exponential integral `Ei`, the principal value of the integral of `exp(t) / t` from minus infinity to `x`.",
    many=True,
)  # fmt: skip


def _expn_fraction(n: Any, x: Any) -> Any:
    """Return the continued fraction for `x > 2` (DLMF 8.19.17), evaluated backwards."""
    out = x + n * 0.0
    for k in range(50, 0, -1):
        out = x + (n + float(k - 1)) / (1.0 + float(k) / out)
    return lax.exp(-x) / out


def _expn_series(n: Any, x: Any) -> Any:
    """Return the power series for `x <= 2` (DLMF 8.19.8), with the logarithm in the term of `x**(n-1)`."""
    total, power, psi = x * 0.0 + n * 0.0, x * 0.0 + 1.0, x * 0.0 - EULER  # digamma(1)
    logarithm = lax.log(x)
    for k in range(32):
        gap = float(k) - (n - 1.0)
        here = gap == 0.0
        regular = -power / where(here, 1.0, gap)
        total = total + where(here, power * (psi - logarithm), regular)
        psi = psi + 1.0 / (k + 1)
        power = power * (-x) / float(k + 1)
    # For orders beyond the terms above, the logarithm's term x**(n-1) / (n-1)! is less than 1e-19.
    return total


def _expn(n: Any, x: Any) -> Any:
    n, x = jnp.broadcast_arrays(n, x)
    order = where(n < 1.0, 1.0, n)
    large = x > 2.0
    positive = where(
        large, _expn_fraction(order, where(large, x, 3.0)), _expn_series(order, where(large | ~(x > 0.0), 0.5, x))
    )
    at_zero = where(n > 1.0, 1.0 / where(n > 1.0, n - 1.0, 1.0), math.inf)
    of_zero_order = lax.exp(-x) / x
    out = where(x == 0.0, at_zero, where(n == 0.0, of_zero_order, where(x == math.inf, 0.0, positive)))
    return where((n < 0.0) | ~(x >= 0.0) | (lax.floor(n) != n) | (n == math.inf), math.nan, out)


def _scipys_expn(n: Any, x: Any) -> Any:
    """Return SciPy's result, with the limits for large operands and orders beyond 32 bits added."""
    valid = (np.floor(n) == n) & (n >= 0) & (n < math.inf) & (x >= 0)
    many, total = n > 2e9, x + n
    large = np.exp(-x) / total * (1 + n / total / total)  # DLMF 8.20.6
    out = np.where((x == math.inf) | many, large, scipy_special("expn")(np.where(valid & ~many, n, 1), x))
    at_zero = np.where(n > 1, 1 / np.where(n > 1, n - 1, 1), math.inf)
    return np.where(valid, np.where(x == 0, at_zero, out), math.nan)


def _expn_slope(out: Any, n: Any, x: Any) -> Any:
    """Return `-E_(n-1)`, which for order 0 is `-exp(-x) (x + 1) / x**2` (DLMF 8.19.13)."""
    first = n == 0.0
    return jnp.where(first, -jnp.exp(-x) * (x + 1.0) / (x * x), -expn(jnp.where(first, 1.0, n) - 1.0, x))


_expn_row, expn_p = row(
    "expn",
    _expn,
    [nondifferentiable("the order of an exponential integral is a whole number"), _expn_slope],
    "The exponential integral `E_n`, of `exp(-x t) / t**n` over t from 1 to infinity; NaN for negative `n` or `x`.",
    impl=scipys_or(_scipys_expn, _expn, lambda out, n, x: (n > 50) & (n < 2e9)),  # SciPy has only 8 digits there
    arguments="n x",
)


def expn(n: Any, x: Any) -> Any:
    """Compute the exponential integral `E_n`, of `exp(-x t) / t**n` over t from 1 to infinity.

    Args:
        n: the order, a whole number that is not negative; not differentiable.
        x: the argument, not negative.

    Returns:
        The integral; NaN for negative `n` or `x` and for fractional `n`, infinite if `x = 0` and `n < 2`.

    Raises:
        TypeError: an argument is complex, or not an array.
    """
    n, x = together("expn", n, x)
    return expn_p.bind(lax.stop_gradient(n), x)


# -- sine and cosine integral ------------------------------------------------------------------------------------


def _auxiliary(x: Any) -> Any:
    """Return `g(x) - i f(x)` (DLMF 6.2.17 and 6.5.7)."""
    return np.exp(1j * x) * scipy_special("exp1")(1j * x)


_SI = Piece(0, 4, 2, lambda x: scipy_special("sici")(x)[0] / x)
_CIN = [(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 22)]  # (DLMF 6.6.6), over x**2
_F = tuple(Piece(a, b, -2, lambda x: -_auxiliary(x).imag * x) for a, b in ((4, 8), (8, math.inf)))
_G = tuple(Piece(a, b, -2, lambda x: _auxiliary(x).real * x * x) for a, b in ((4, 8), (8, math.inf)))


def _sici(which: str) -> Any:
    def formula(x: Any) -> Any:
        size = lax.abs(x)
        near, small = size < 4.0, where((size > 0.0) & (size < 4.0), size, 1.0)
        large = where(near, 4.0, where(size == math.inf, 1e100, size))
        f, g = in_pieces(large, *_F) / large, in_pieces(large, *_G) / (large * large)
        sine, cosine = lax.sin(large), lax.cos(large)
        if which == "si":
            inner = where(size == 0.0, 0.0, small * in_pieces(small, _SI))
            out = where(near, inner, math.pi / 2 - f * cosine - g * sine)
            return where(x == x, where(x < 0.0, -out, out), x)
        inner = EULER + lax.log(small) + small * small * polynomial(small * small, _CIN)
        out = where(near, where(size == 0.0, -math.inf, inner), f * sine - g * cosine)
        out = where(size == math.inf, 0.0, out)
        return where(x == -math.inf, math.nan, where(x == x, out, x))

    return formula


_si, sine_integral_p = row(
    "sine_integral", _sici("si"), [lambda out, x: jnp.sinc(x / math.pi)],
    "The sine integral.",
    impl=lambda x: scipy_special("sici")(x)[0],
)  # fmt: skip

_ci, cosine_integral_p = row(
    "cosine_integral", _sici("ci"), [lambda out, x: jnp.cos(x) / x],
    "The cosine integral.",
    impl=scipys_or(lambda x: scipy_special("sici")(x)[1], _sici("ci"), lambda out, x: np.abs(x) > 1e9),
)  # fmt: skip


def sici(x: Any) -> tuple[Any, Any]:
    """Compute the sine and cosine integrals `(Si, Ci)`.

    `Si` is the integral of `sin(t) / t` from 0 to `x`; `Ci` is Euler's constant, `log|x|` and the integral of
    `(cos(t) - 1) / t` from 0 to `x`.

    Raises:
        TypeError: `x` is complex, or not an array.
    """
    (x,) = together("sici", x)
    return _si(x), _ci(x)


# -- Spence's function -------------------------------------------------------------------------------------------

_DILOGARITHM = [(-1) ** k / (k + 1) ** 2 for k in range(60)]


def _spence_series(w: Any) -> Any:
    """Return `Li2(-w)` for `|w| <= 1/2` (DLMF 25.12.1)."""
    return -w * polynomial(w, _DILOGARITHM)


def _spence(x: Any) -> Any:
    """Return Spence's function, by inversion and reflection to [1/2, 3/2] (DLMF 25.12.4 and 25.12.6)."""
    large = x > 1.5
    y = where(large, 1.0 / where(large, lax.min(x, x * 0.0 + 1e300), 1.0), x)
    small = (y < 0.5) & (y > 0.0)
    w = where(small, y, where(y > 0.0, y, 1.0) - 1.0)
    reflected = math.pi**2 / 6 - lax.log(where(small, y, 0.25)) * log1p(-where(small, y, 0.25)) - _spence_series(-w)
    out = where(small, reflected, _spence_series(w))
    logarithm = lax.log(where(large, x, 1.0))
    out = where(large, -0.5 * logarithm * logarithm - out, out)
    out = where(x == 0.0, math.pi**2 / 6, where(x == math.inf, -math.inf, where(x == 1.0, 0.0, out)))
    return where((x >= 0.0) & (x == x), out, math.nan)  # XLA simplifies `abs(y) >= 0` to true, even for NaN


def _spence_slope(out: Any, x: Any) -> Any:
    """Return `log(x) / (1 - x)`, which is -1 at 1."""
    w = x - 1.0
    near = jnp.abs(w) < 1e-3
    far = jnp.where(near, 2.0, x)
    return jnp.where(near, -1.0 + w / 2 - w * w / 3 + w * w * w / 4, jnp.log(far) / (1.0 - far))


spence, spence_p = row(
    "spence",
    _spence,
    [_spence_slope],
    "Spence's function, the dilogarithm of `1 - x`: the integral of `log(t) / (1 - t)` from 1 to `x`; NaN below 0.",
    impl=lambda x: np.where(np.isposinf(x), -np.inf, scipy_special("spence")(x)),
)
