"""Reference values of special functions and distributions by mpmath, to any number of digits.

Each function takes mpf numbers inside of its domain, and may raise or return NaN if it has no value. Formulas are
chosen for safety, not for speed: positive series, or differences that more digits resolve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp  # type: ignore[import-untyped]  # no annotations

Function = Callable[..., Any]
nan = mp.nan


def _rest(x: Any) -> Any:
    """Return `1 - x` exactly."""
    return mp.fsub(1, x, exact=True)


def _lgamma(x: Any) -> Any:
    return mp.re(mp.loggamma(x))


def _beta(a: Any, b: Any) -> Any:
    a, b = min(a, b), max(a, b)
    total = mp.fadd(a, b, exact=True)
    if a <= 0 and mp.isint(a) and mp.isint(b) and b > 0 and total <= 0:  # poles of two factors
        return (-1) ** int(b % 2) * _beta(1 - total, b)
    if not (mp.isint(total) and total <= 0) and max(abs(a), b) > 1e9:
        return mp.exp(_betaln(a, b)) * mp.sign(mp.fprod(mp.sinpi(min(v, mp.mpf(0.5))) for v in (a, b, total)))
    return mp.gammaprod([a, b], [total])


def _betaln(a: Any, b: Any) -> Any:
    with mp.workdps(mp.dps + 20 + _digits(a) + _digits(b)):
        return _lgamma(a) + _lgamma(b) - _lgamma(mp.fadd(a, b, exact=True))


def _digits(x: Any) -> int:
    """Return twice the number of digits of `x` before the decimal point."""
    return 2 * max(0, int(mp.log10(abs(x)))) if x else 0


def _poch(z: Any, m: Any) -> Any:
    total = mp.fadd(z, m, exact=True)
    if mp.isint(z) and z <= 0 and mp.isint(m) and total <= 0:  # poles of both
        return (-1) ** int(m % 2) * mp.gammaprod([_rest(z)], [_rest(total)])
    return mp.gammaprod([total], [z])


def gammainc(a: Any, x: Any) -> Any:
    """Return `P(a, x)` by its positive series (DLMF 8.11.4), or as `1 - Q` for large `x`."""
    if x > a + 2 + 2 * mp.sqrt(a):
        return 1 - gammaincc(a, x)
    return mp.exp(a * mp.log(x) - x - _lgamma(a + 1)) * _kummer_sum(a, x)


def _kummer_sum(a: Any, x: Any) -> Any:
    term = total = mp.mpf(1)
    n = 0
    while term > total * mp.eps:
        n += 1
        term *= x / (a + n)
        total += term
        _stop_at_length(n)
    return total


def _stop_at_length(n: int) -> None:
    if n > 5000:
        raise ArithmeticError("a series is too long")


def gammaincc(a: Any, x: Any) -> Any:
    """Return `Q(a, x)` by its continued fraction (DLMF 8.9.2), or as `1 - P` where that converges slowly."""
    if x <= a + 2 + 2 * mp.sqrt(a):
        return 1 - gammainc(a, x)
    p, q, p_last, q_last = mp.mpf(1), x + 1 - a, mp.mpf(0), mp.mpf(1)
    n = 0
    while n < 2 or abs(p * q_last - p_last * q) > mp.eps * abs(p * q_last):
        n += 1
        z, y = x - a + 2 * n + 1, n * (n - a)
        p, p_last, q, q_last = p * z - p_last * y, p, q * z - q_last * y, q
        _stop_at_length(n)
    return mp.exp(a * mp.log(x) - x - _lgamma(a)) * p / q


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Return `I_x(a, b)` by a positive series (DLMF 8.17.8)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _betainc(b, a, _rest(x), x)
    return _betainc(a, b, x, _rest(x))


def _betainc(a: Any, b: Any, x: Any, y: Any) -> Any:
    term = total = mp.mpf(1)
    n = 0
    while term > total * mp.eps * y:
        term *= x * (a + b + n) / (a + 1 + n)
        total += term
        n += 1
        _stop_at_length(n)
    return mp.exp(a * mp.log(x) + b * mp.log(y) - _betaln(a, b)) / a * total


def ndtr(x: Any) -> Any:
    """Return the normal distribution function."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x: Any) -> Any:
    """Return the logarithm of the normal distribution function."""
    return mp.log1p(-ndtr(-x)) if x > 0 else mp.log(ndtr(x))


def ndtri(p: Any) -> Any:
    """Return the inverse of `ndtr`, by Newton's method from the tail, where `log_ndtr` is concave."""
    if 2 * p > 1:
        return -ndtri(_rest(p))
    if 2 * p == 1:
        return mp.mpf(0)
    target, x = mp.log(p), -mp.sqrt(-2 * mp.log(2 * p)) - mp.mpf(1) / 100
    for _ in range(200):
        step = (log_ndtr(x) - target) * ndtr(x) / mp.npdf(x)
        x -= step
        if abs(step) < mp.eps * 1000 * abs(x):
            return x
    raise ArithmeticError


def owens_t(h: Any, a: Any) -> Any:
    """Return Owen's T function."""
    if a < 0:
        return -owens_t(h, -a)
    h = abs(h)
    if a > 1:
        if h > 1:
            p, q = ndtr(-h), ndtr(-a * h)
            return (p + q) / 2 - p * q - owens_t(a * h, 1 / a)
        return (mp.mpf(1) - mp.erf(h / mp.sqrt(2)) * mp.erf(a * h / mp.sqrt(2))) / 4 - owens_t(a * h, 1 / a)
    end = min(a, mp.sqrt(2 * mp.dps * mp.log(10) + 10) / h) if h else a
    found = mp.quad(lambda t: mp.exp(-((h * t) ** 2) / 2) / (1 + t * t), mp.linspace(0, end, 5))
    return mp.exp(-h * h / 2) * found / (2 * mp.pi)


def spence(x: Any) -> Any:
    """Return the dilogarithm of `1 - x`."""
    if x > 2:
        y = x - 1
        return -(mp.pi**2) / 6 - mp.log(y) ** 2 / 2 - mp.re(mp.polylog(2, -1 / y))
    return mp.re(mp.polylog(2, _rest(x)))


def boxcox(x: Any, lmbda: Any) -> Any:
    """Return the Box-Cox transformation."""
    return mp.expm1(lmbda * mp.log(x)) / lmbda if lmbda else mp.log(x)


def kl_div(x: Any, y: Any) -> Any:
    """Return the Kullback-Leibler divergence."""
    return x * mp.log(x / y) - x + y


def _by_a(a: Any, x: Any) -> Any:
    h = mp.mpf(10) ** (-mp.dps // 3) * a
    with mp.workdps(mp.dps + 20 + mp.dps // 3):
        return (gammainc(a + h, x) - gammainc(a - h, x)) / (2 * h)


def _gamma_density(a: Any, x: Any) -> Any:
    return (a - 1) * mp.log(x) - x - _lgamma(a)


def _log1mexp(y: Any) -> Any:
    return mp.log(-mp.expm1(-y))


def _mass(a: Any, b: Any) -> Any:
    return ndtr(-a) - ndtr(-b) if a > 0 else ndtr(b) - ndtr(a)


def _binomial(n: Any, k: Any) -> Any:
    return mp.gammaprod([n + 1], [k + 1, n - k + 1])


def _log_binomial(n: Any, k: Any) -> Any:
    return _lgamma(n + 1) - _lgamma(k + 1) - _lgamma(n - k + 1)


def _xlogy(x: Any, y: Any) -> Any:
    return x * mp.log(y) if x else mp.mpf(0)


def _gennorm_cdf(x: Any, b: Any) -> Any:
    above = gammaincc(1 / b, abs(x) ** b) / 2
    return 1 - above if x > 0 else above


def _lower_mass(y: Any, a: Any, b: Any) -> Any:
    return _mass(a, y) / _mass(a, b)


# Reference functions by public name, below `corejax.scipy.special` or, with a dot, `corejax.scipy.stats`.
REFERENCES: dict[str, Function] = {
    "beta": _beta, "betaln": lambda a, b: mp.log(abs(_beta(a, b))) if min(a, b) < 0 else _betaln(a, b),
    "betainc": betainc, "gammainc": gammainc, "gammaincc": gammaincc,
    "i0": lambda x: mp.besseli(0, x), "i1": lambda x: mp.besseli(1, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "boxcox": boxcox, "boxcox1p": lambda x, lmbda: boxcox(mp.fadd(1, x, exact=True), lmbda), "comb": _binomial,
    "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), "digamma": lambda x: mp.psi(0, x),
    "entr": lambda x: -x * mp.log(x), "erf": mp.erf, "erfc": mp.erfc, "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfinv": lambda x: mp.sign(x) * -ndtri(_rest(abs(x)) / 2) / mp.sqrt(2),
    "erfcinv": lambda y: -ndtri(y / 2) / mp.sqrt(2),
    "exp1": mp.e1, "expi": mp.ei, "expit": lambda x: 1 / (1 + mp.exp(-x)), "expn": mp.expint,
    "factorial": lambda n: mp.gamma(n + 1), "fresnel_s": mp.fresnels, "fresnel_c": mp.fresnelc, "gamma": mp.gamma,
    "gammaln": _lgamma, "gammasgn": lambda x: mp.sign(mp.gamma(x)), "hyp1f1": mp.hyp1f1, "hyp2f1": mp.hyp2f1,
    "kl_div": kl_div, "log_ndtr": log_ndtr, "loggamma": _lgamma, "logit": lambda x: mp.log(x / _rest(x)),
    "multigammaln": lambda a: mp.log(mp.pi) / 2 + _lgamma(a) + _lgamma(a - mp.mpf(1) / 2),
    "ndtr": ndtr, "ndtri": ndtri, "owens_t": owens_t, "poch": _poch,
    "polygamma": lambda n, x: mp.psi(int(n), x), "rel_entr": lambda x, y: x * mp.log(x / y), "sici_s": mp.si,
    "sici_c": mp.ci, "spence": spence,
    "xlog1py": lambda x, y: x * mp.log1p(y), "xlogy": lambda x, y: x * mp.log(y), "zeta": mp.zeta,
    "igamma_grad_a": _by_a,
    "random_gamma_grad": lambda a, x: -_by_a(a, x) / mp.exp(_gamma_density(a, x)),
    "bessel_jn_0": lambda x: mp.besselj(0, x), "bessel_jn_3": lambda x: mp.besselj(3, x),
    "bessel_jn_30": lambda x: mp.besselj(30, x),

    "norm.logpdf": lambda x: -x * x / 2 - mp.log(2 * mp.pi) / 2, "norm.cdf": ndtr, "norm.logcdf": log_ndtr,
    "norm.sf": lambda x: ndtr(-x), "norm.logsf": lambda x: log_ndtr(-x), "norm.ppf": ndtri,
    "norm.isf": lambda q: -ndtri(q), "norm.pdf": mp.npdf,
    "cauchy.logpdf": lambda x: -mp.log(mp.pi * (1 + x * x)), "cauchy.cdf": lambda x: mp.atan2(1, -x) / mp.pi,
    "cauchy.logcdf": lambda x: mp.log(mp.atan2(1, -x) / mp.pi), "cauchy.sf": lambda x: mp.atan2(1, x) / mp.pi,
    "cauchy.logsf": lambda x: mp.log(mp.atan2(1, x) / mp.pi), "cauchy.ppf": lambda q: -mp.cot(mp.pi * q),
    "cauchy.isf": lambda q: mp.cot(mp.pi * q),
    "expon.logpdf": lambda x: -x, "expon.logsf": lambda x: -x, "expon.sf": lambda x: mp.exp(-x),
    "expon.cdf": lambda x: -mp.expm1(-x), "expon.logcdf": _log1mexp, "expon.ppf": lambda q: -mp.log1p(-q),
    "gamma.logpdf": lambda x, a: _gamma_density(a, x), "gamma.cdf": lambda x, a: gammainc(a, x),
    "gamma.logcdf": lambda x, a: mp.log(gammainc(a, x)), "gamma.sf": lambda x, a: gammaincc(a, x),
    "gamma.logsf": lambda x, a: mp.log(gammaincc(a, x)),
    "chi2.logpdf": lambda x, n: _gamma_density(n / 2, x / 2) - mp.log(2),
    "chi2.cdf": lambda x, n: gammainc(n / 2, x / 2),
    "chi2.logcdf": lambda x, n: mp.log(gammainc(n / 2, x / 2)), "chi2.sf": lambda x, n: gammaincc(n / 2, x / 2),
    "chi2.logsf": lambda x, n: mp.log(gammaincc(n / 2, x / 2)),
    "beta.logpdf": lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - _betaln(a, b),
    "beta.cdf": lambda x, a, b: betainc(a, b, x), "beta.logcdf": lambda x, a, b: mp.log(betainc(a, b, x)),
    "beta.sf": lambda x, a, b: betainc(b, a, _rest(x)), "beta.logsf": lambda x, a, b: mp.log(betainc(b, a, _rest(x))),
    "t.logpdf": lambda x, n: -(n + 1) / 2 * mp.log1p(x * x / n) - mp.log(n) / 2 - _betaln(mp.mpf(1) / 2, n / 2),
    "laplace.cdf": lambda x: mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2,
    "laplace.logpdf": lambda x: -abs(x) - mp.log(2),
    "logistic.logpdf": lambda x: -x - 2 * mp.log1p(mp.exp(-x)), "logistic.cdf": lambda x: 1 / (1 + mp.exp(-x)),
    "logistic.sf": lambda x: 1 / (1 + mp.exp(x)), "logistic.ppf": lambda q: mp.log(q / _rest(q)),
    "logistic.isf": lambda q: mp.log(_rest(q) / q),
    "gumbel_r.logpdf": lambda x: -x - mp.exp(-x), "gumbel_r.cdf": lambda x: mp.exp(-mp.exp(-x)),
    "gumbel_r.logcdf": lambda x: -mp.exp(-x), "gumbel_r.sf": lambda x: -mp.expm1(-mp.exp(-x)),
    "gumbel_r.logsf": lambda x: _log1mexp(mp.exp(-x)), "gumbel_r.ppf": lambda q: -mp.log(-mp.log(q)),
    "gumbel_l.logpdf": lambda x: x - mp.exp(x), "gumbel_l.cdf": lambda x: -mp.expm1(-mp.exp(x)),
    "gumbel_l.logcdf": lambda x: _log1mexp(mp.exp(x)), "gumbel_l.sf": lambda x: mp.exp(-mp.exp(x)),
    "gumbel_l.logsf": lambda x: -mp.exp(x), "gumbel_l.ppf": lambda q: mp.log(-mp.log1p(-q)),
    "pareto.logpdf": lambda x, b: mp.log(b) - (b + 1) * mp.log(x), "pareto.cdf": lambda x, b: -mp.expm1(-b * mp.log(x)),
    "pareto.logcdf": lambda x, b: _log1mexp(b * mp.log(x)), "pareto.sf": lambda x, b: mp.exp(-b * mp.log(x)),
    "pareto.logsf": lambda x, b: -b * mp.log(x), "pareto.ppf": lambda q, b: mp.exp(-mp.log1p(-q) / b),
    "truncnorm.logpdf": lambda x, a, b: -x * x / 2 - mp.log(2 * mp.pi) / 2 - mp.log(_mass(a, b)),
    "truncnorm.cdf": _lower_mass, "truncnorm.logcdf": lambda x, a, b: mp.log(_lower_mass(x, a, b)),
    "truncnorm.logsf": lambda x, a, b: mp.log(_mass(x, b) / _mass(a, b)),
    "truncnorm.sf": lambda x, a, b: _mass(x, b) / _mass(a, b),
    "vonmises.logpdf": lambda x, k: k * (mp.cos(x) - 1) - mp.log(2 * mp.pi * mp.besseli(0, k) * mp.exp(-k)),
    "wrapcauchy.logpdf": lambda x, c: mp.log((1 - c * c) / (2 * mp.pi * (1 + c * c - 2 * c * mp.cos(x)))),
    "gennorm.logpdf": lambda x, b: -mp.log(2) - _lgamma(1 + 1 / b) - abs(x) ** b,
    "gennorm.cdf": _gennorm_cdf,
    "bernoulli.logpmf": lambda k, p: mp.log(p) if k else mp.log1p(-p),
    "binom.logpmf": lambda k, n, p: _log_binomial(n, k) + _xlogy(k, p) + _xlogy(n - k, _rest(p)),
    "betabinom.logpmf": lambda k, n, a, b: _log_binomial(n, k) + _betaln(k + a, n - k + b) - _betaln(a, b),
    "geom.logpmf": lambda k, p: (k - 1) * mp.log1p(-p) + mp.log(p) if k > 1 else mp.log(p),
    "nbinom.logpmf": lambda k, n, p: _lgamma(n + k) - _lgamma(n) - _lgamma(k + 1) + n * mp.log(p) + _xlogy(k, _rest(p)),
    "poisson.logpmf": lambda k, mu: _xlogy(k, mu) - mu - _lgamma(k + 1),
    "poisson.cdf": lambda k, mu: gammaincc(k + 1, mu),
}  # fmt: skip
