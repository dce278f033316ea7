"""Continuous distributions: beta cauchy chi2 expon gamma gennorm gumbel_l gumbel_r laplace logistic norm pareto t ...

Values are SciPy's: outside of the support, densities are 0 and their logarithms minus infinity. Results are NaN if a
scale or a shape parameter is not positive. Quantiles are NaN outside of [0, 1]. Source: `scipy.stats`.

The functions look up those of `special` and `nn` when they are called: libraries import `norm` and use it later.
"""

from __future__ import annotations

import math
from typing import Any

import corejax.nn as nn
import corejax.numpy as jnp
import corejax.scipy.special as special
from corejax.extend import dtypes
from corejax_scipy.stats._families import located, plain
from corejax_scipy.stats._large import cancels, log_binomial, log_poisson

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_POSITIVE = (0.0, math.inf)


def _log1mexp_of_exp(y: Any) -> Any:
    """Return `log(1 - exp(-exp(y)))`, also if `exp(y)` underflows."""
    far = y < -8.0
    e = jnp.exp(y)
    return jnp.where(far, y - e / 2 + e * e / 24, nn.log1mexp(jnp.where(far, 1.0, e)))


norm = located(
    "norm", "The normal distribution.", "",
    {
        "logpdf": lambda y: -0.5 * y * y - _LOG_ROOT_2PI,
        "cdf": lambda y: special.ndtr(y),
        "logcdf": lambda y: special.log_ndtr(y),
        "sf": lambda y: special.ndtr(-y),
        "logsf": lambda y: special.log_ndtr(-y),
        "ppf": lambda q: special.ndtri(q),
        "isf": lambda q: -special.ndtri(q),
    },
)  # fmt: skip


def _cotangent(q: Any) -> Any:
    """Return `1 / tan(pi q)`, infinite at both ends."""
    middle, near = jnp.abs(q - 0.5) < 0.25, q <= 0.5
    inner = jnp.tan(math.pi * (0.5 - jnp.where(middle, q, 0.5)))
    end = jnp.where(middle, 0.25, jnp.where(near, q, 1.0 - q))
    size = jnp.abs(1.0 / jnp.tan(math.pi * end))  # of -0.0 too
    return jnp.where(middle, inner, jnp.where(near, size, -size))


def _log1p_of_square(y: Any, by: Any = 1.0) -> Any:
    """Return `log1p(y * y / by)`, also if the square overflows."""
    s = jnp.abs(y) / jnp.sqrt(by)
    far = s > 64.0
    large, small = jnp.where(far, s, 64.0), jnp.where(far, 0.0, y)
    inverse = 1.0 / large
    return jnp.where(far, 2.0 * jnp.log(large) + jnp.log1p(inverse * inverse), jnp.log1p(small * small / by))


cauchy = located(
    "cauchy", "The Cauchy distribution.", "",
    {
        "logpdf": lambda y: -math.log(math.pi) - _log1p_of_square(y),
        "cdf": lambda y: jnp.arctan2(1.0, -y) / math.pi,
        "logcdf": None,
        "sf": lambda y: jnp.arctan2(1.0, y) / math.pi,
        "logsf": None,
        "ppf": lambda q: -_cotangent(q),
        "isf": _cotangent,
    },
)  # fmt: skip

expon = located(
    "expon", "The exponential distribution.", "",
    {
        "logpdf": lambda y: -y,
        "cdf": lambda y: -jnp.expm1(-y),
        "logcdf": lambda y: nn.log1mexp(y),
        "sf": lambda y: jnp.exp(-y),
        "logsf": lambda y: -y,
        "ppf": lambda q: -jnp.log1p(-q),
    },
    support=_POSITIVE,
)  # fmt: skip


def _log_gamma_density(y: Any, a: Any) -> Any:
    """Return the log-density, by Poisson probabilities if `a` is large, so that large terms do not cancel."""
    large = cancels(a, y)
    above, point = jnp.where(large, a, 1.0), jnp.where(large, y, 1.0)
    usual = special.xlogy(a - 1.0, y) - y - special.gammaln(jnp.where(large, 1.0, a))
    return jnp.where(large, log_poisson(above, point) + jnp.log(above / point), usual)


gamma = located(
    "gamma", "The gamma distribution with shape `a`.", "a",
    {
        "logpdf": _log_gamma_density,
        "cdf": lambda y, a: special.gammainc(a, y),
        "logcdf": None,
        "sf": lambda y, a: special.gammaincc(a, y),
        "logsf": None,
    },
    support=_POSITIVE,
)  # fmt: skip

chi2 = located(
    "chi2", "The chi-squared distribution with `df` degrees of freedom.", "df",
    {
        "logpdf": lambda y, df: _log_gamma_density(0.5 * y, 0.5 * df) - math.log(2),
        "cdf": lambda y, df: special.gammainc(0.5 * df, 0.5 * y),
        "logcdf": None,
        "sf": lambda y, df: special.gammaincc(0.5 * df, 0.5 * y),
        "logsf": None,
    },
    support=_POSITIVE,
)  # fmt: skip


def _log_beta_density(y: Any, a: Any, b: Any) -> Any:
    """Return the log-density, by binomial probabilities if both shape parameters are large."""
    large = (a > 10.0) & (b > 10.0) & (y > 0.0) & (y < 1.0)
    k, others = jnp.where(large, a, 2.0) - 1.0, jnp.where(large, b, 2.0) - 1.0
    far = log_binomial(k, others, jnp.where(large, y, 0.5)) + jnp.log(k + others + 1.0)
    usual = special.xlog1py(b - 1.0, -y) + special.xlogy(a - 1.0, y) - special.betaln(a, b)
    return jnp.where(large, far, usual)


def _beta_sf(y: Any, a: Any, b: Any) -> Any:
    """Return the survival function by the cdf of `1 - y`, unless rounding `1 - y` loses more than `1 - cdf` does."""
    tiny = float(dtypes.finfo(y.dtype).eps) * 4.0
    sane = jnp.where((y > 0.0) & (y < 0.5), y, 0.25)
    direct = (y < tiny) | ((y < 0.5) & (_log_beta_density(sane, a, b) > 0.0))
    point = jnp.where(direct, y, 1.0 - y)
    part = special.betainc(jnp.where(direct, a, b), jnp.where(direct, b, a), point)
    return jnp.where(direct, 1.0 - part, part)


beta = located(
    "beta", "The beta distribution with shapes `a` and `b`.", "a b",
    {
        "logpdf": _log_beta_density,
        "cdf": lambda y, a, b: special.betainc(a, b, y),
        "logcdf": None,
        "sf": _beta_sf,
        "logsf": None,
    },
    support=(0.0, 1.0),
)  # fmt: skip


def _log_t_density(y: Any, df: Any) -> Any:
    """Return the log-density, which is the normal one if `df` is infinite or so large that `y**2 / df` underflows."""
    normal = (df == math.inf) | ((df > 1e20) & (jnp.abs(y) < 1e4))
    df = jnp.where(df == math.inf, 1.0, df)  # a mask without `y`, so that terms of `df` alone stay constants
    usual = -0.5 * ((df + 1.0) * _log1p_of_square(y, df) + jnp.log(df)) - special.betaln(
        jnp.full_like(df, 0.5), 0.5 * df
    )
    return jnp.where(normal, -0.5 * y * y - _LOG_ROOT_2PI, usual)


t = located("t", "Student's distribution with `df` degrees of freedom.", "df", {"logpdf": _log_t_density})

laplace = located(
    "laplace", "The Laplace distribution.", "",
    {
        "logpdf": lambda y: -jnp.abs(y) - math.log(2),
        "cdf": lambda y: jnp.where(y < 0, 0.5 * jnp.exp(-jnp.abs(y)), 1.0 - 0.5 * jnp.exp(-jnp.abs(y))),
    },
)  # fmt: skip

logistic = located(
    "logistic", "The logistic distribution.", "",
    {
        "logpdf": lambda y: -jnp.abs(y) - 2.0 * jnp.log1p(jnp.exp(-jnp.abs(y))),
        "cdf": lambda y: special.expit(y),
        "sf": lambda y: special.expit(-y),
        "ppf": lambda q: special.logit(q),
        "isf": lambda q: -special.logit(q),
    },
    arguments={"ppf": "x", "isf": "x"},
)  # fmt: skip

_FLAT = 1e4  # beyond this the double exponential is 0 in any dtype
gumbel_r = located(
    "gumbel_r", "The right-skewed Gumbel distribution, of maxima.", "",
    {
        "logpdf": lambda y: -(y + jnp.exp(-y)),
        "cdf": lambda y: jnp.exp(-jnp.exp(-y)),
        "logcdf": lambda y: -jnp.exp(-y),
        "sf": lambda y: -jnp.expm1(-jnp.exp(-y)),
        "logsf": lambda y: _log1mexp_of_exp(-y),
        "ppf": lambda q: -jnp.log(-jnp.log(q)),
    },
    support=(-_FLAT, math.inf), arguments={"ppf": "p"},
)  # fmt: skip

gumbel_l = located(
    "gumbel_l", "The left-skewed Gumbel distribution, of minima.", "",
    {
        "logpdf": lambda y: y - jnp.exp(y),
        "cdf": lambda y: -jnp.expm1(-jnp.exp(y)),
        "logcdf": lambda y: _log1mexp_of_exp(y),
        "sf": lambda y: jnp.exp(-jnp.exp(y)),
        "logsf": lambda y: -jnp.exp(y),
        "ppf": lambda q: jnp.log(-jnp.log1p(-q)),
    },
    support=(-math.inf, _FLAT), arguments={"ppf": "p"},
)  # fmt: skip

pareto = located(
    "pareto", "The Pareto distribution with shape `b`.", "b",
    {
        "logpdf": lambda y, b: jnp.log(b) - (b + 1.0) * jnp.log(y),
        "cdf": lambda y, b: -jnp.expm1(-b * jnp.log(y)),
        "logcdf": lambda y, b: nn.log1mexp(b * jnp.log(y)),
        "sf": lambda y, b: jnp.exp(-b * jnp.log(y)),
        "logsf": lambda y, b: -b * jnp.log(y),
        "ppf": lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
    },
    support=(1.0, math.inf), safe=2.0,
)  # fmt: skip

uniform = located(
    "uniform", "The uniform distribution from `loc` to `loc + scale`.", "",
    {
        "logpdf": jnp.zeros_like,
        "cdf": lambda y: y,
        "ppf": lambda q: q,
    },
    support=(0.0, 1.0),
)  # fmt: skip

# -- truncated ---------------------------------------------------------------------------------------------------


def _log_difference(x: Any, y: Any) -> Any:
    """Return `log(exp(x) - exp(y))` for `x >= y`."""
    gap = x - y
    sane = jnp.where(gap > 0, gap, 1.0)
    return jnp.where(gap > 0, x + nn.log1mexp(sane), -math.inf)


def _log_narrow_mass(a: Any, b: Any) -> Any:
    """Return the log-mass of a narrow interval, by Hermite polynomials at its middle (DLMF 18.5.13)."""
    m, h = 0.5 * (a + b), 0.5 * (b - a)
    u, v = m * m, h * h
    series = (u - 1) * v / 6 + ((u - 6) * u + 3) * v * v / 120 + (((u - 15) * u + 45) * u - 15) * v * v * v / 5040
    return jnp.log(b - a) - 0.5 * u - _LOG_ROOT_2PI + jnp.log1p(series)


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal distribution's mass between `a` and `b`."""
    narrow = (b > a) & ((b - a) * (1.0 + jnp.maximum(jnp.abs(a), jnp.abs(b))) < 0.05)
    near = _log_narrow_mass(jnp.where(narrow, a, 0.0), jnp.where(narrow, b, 0.01))
    return jnp.where(narrow, near, _log_wide_mass(jnp.where(narrow, 0.0, a), jnp.where(narrow, 1.0, b)))


def _log_wide_mass(a: Any, b: Any) -> Any:
    """Return the log-mass of a wide interval, by a difference in the left tail."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    tail = _log_difference(special.log_ndtr(high), special.log_ndtr(low))
    central = (a <= 0) & (b > 0)
    # If most of the mass is inside, the mass outside is small, and log1p of it is accurate.
    inner = jnp.log1p(-special.ndtr(jnp.where(central, a, -1.0)) - special.ndtr(-jnp.where(central, b, 1.0)))
    return jnp.where(central, inner, tail)


def _log_part(y: Any, a: Any, b: Any) -> Any:
    """Return the logarithm of the mass between `a` and `y` over that between `a` and `b`."""
    y = jnp.clip(y, a, b)
    whole = _log_mass(a, b)
    below = _log_mass(a, y) - whole
    above = _log_mass(y, b) - whole
    near_one = below > -0.1
    return jnp.where(near_one, jnp.log1p(-jnp.exp(jnp.where(near_one, above, -1.0))), below)


truncnorm = located(
    "truncnorm", "The normal distribution truncated to standardised points from `a` to `b`.", "a b",
    {
        "logpdf": lambda y, a, b: jnp.where(
            (y < a) | (y > b), -math.inf, -0.5 * y * y - _LOG_ROOT_2PI - _log_mass(a, b)
        ),
        "cdf": lambda y, a, b: jnp.exp(_log_part(y, a, b)),
        "logcdf": _log_part,
        "sf": lambda y, a, b: jnp.exp(_log_part(-y, -b, -a)),
        "logsf": lambda y, a, b: _log_part(-y, -b, -a),
    },
    valid=lambda a, b: a < b,
)  # fmt: skip

# -- without location --------------------------------------------------------------------------------------------


def _vonmises(x: Any, kappa: Any) -> Any:
    sine = jnp.sin(0.5 * x)  # its square is (1 - cos(x)) / 2, without cancellation
    valid = kappa >= 0
    kappa = jnp.where(kappa == 0, kappa + float(dtypes.finfo(kappa.dtype).tiny), kappa)  # the derivative from above
    out = -(kappa * sine) * (2.0 * sine) - math.log(2 * math.pi) - jnp.log(special.i0e(kappa))
    return jnp.where(valid, out, math.nan)


def _wrapcauchy(x: Any, c: Any) -> Any:
    sine, rest = jnp.sin(0.5 * x), 1.0 - c
    distance = rest * rest + 4.0 * c * (sine * sine)  # 1 + c**2 - 2 c cos(x), without cancellation
    out = jnp.log1p(-c) + jnp.log1p(c) - math.log(2 * math.pi) - jnp.log(distance)
    out = jnp.where((x < 0) | (x > 2 * math.pi), -math.inf, out)
    return jnp.where((c > 0) & (c < 1), out, math.nan)


def _gennorm(x: Any, beta: Any) -> Any:
    out = -math.log(2) - special.gammaln(1.0 + 1.0 / beta) - jnp.abs(x) ** beta
    return jnp.where(beta > 0, out, math.nan)


def _gennorm_cdf(x: Any, beta: Any) -> Any:
    size = jnp.abs(x)
    far = size**beta == math.inf
    power = jnp.where(far, 1.0, size) ** beta
    near = power < float(dtypes.finfo(power.dtype).eps)  # here the mass between 0 and x is linear in x
    tail = 0.5 * special.gammaincc(1.0 / beta, jnp.where(near, 1.0, power))
    tail = jnp.where(near, 0.5 - 0.5 * size * jnp.exp(-special.gammaln(1.0 + 1.0 / beta)), tail)
    tail = jnp.where(far, 0.0, tail)
    return jnp.where(beta > 0, jnp.where(x > 0, 1.0 - tail, tail), math.nan)


vonmises = plain("vonmises", "Von Mises' distribution on a circle.", "x kappa", {"logpdf": _vonmises})
wrapcauchy = plain("wrapcauchy", "The Cauchy distribution wound around a circle.", "x c", {"logpdf": _wrapcauchy})
gennorm = plain("gennorm", "The generalised normal distribution.", "x beta", {"logpdf": _gennorm, "cdf": _gennorm_cdf})
