"""Measure errors of special functions and distributions at the ends of their domains, run and compiled, by mpmath.

A table has the domain and the error bound of each function. Operands are tiny and huge numbers, whole numbers and their
neighbours, and operands that are equal, opposite or nearly so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp  # type: ignore[import-untyped]  # no annotations

import corejax
import corejax.numpy as jnp
import corejax.scipy.special as special
import corejax.scipy.stats as stats
from corejax import lax
from corejax_scipy.accuracy.references import REFERENCES


class Domain(NamedTuple):
    """An open interval; of whole numbers if `whole`."""

    low: float
    high: float
    whole: bool = False


class Row(NamedTuple):
    """The domain of a function and the bounds of its relative errors.

    Attributes:
        domains: the domains of the operands.
        float64: the bound of the relative error in float64.
        float32: the bound of the relative error in float32.
        floor: errors of smaller results are relative to this number, because terms of its size cancel there.
        why: the reason for a bound or a floor that is larger than usual.
    """

    domains: tuple[Domain, ...]
    float64: float = 1e-12
    float32: float = 1e-6
    floor: float = 0.0
    why: str = ""


_REAL, _POSITIVE, _UNIT = Domain(-math.inf, math.inf), Domain(0.0, math.inf), Domain(0.0, 1.0)
_COUNT, _ORDER, _CIRCLE = Domain(-1.0, 1e6, True), Domain(-1.0, 200.0, True), Domain(-6.3, 6.3)
_SHAPE = Domain(1e-30, 1e15)  # mpmath takes seconds for larger numbers
_LOG = "the logarithm has zeros, next to which its terms cancel"
_TAIL = "a logarithm of a probability that is a difference of two"


def _rows(names: str, *domains: Domain, **bounds: Any) -> dict[str, Row]:
    return {name: Row(domains, **bounds) for name in names.split()}


TABLE: dict[str, Row] = {
    **_rows(
        """dawsn digamma erf erfcx expi expit gamma gammaln gammasgn i0 i0e i1 log_ndtr ndtr sici_s
        norm.cdf norm.logcdf norm.logpdf norm.logsf norm.pdf norm.sf cauchy.cdf cauchy.logpdf cauchy.sf laplace.cdf
        laplace.logpdf logistic.cdf logistic.logpdf logistic.sf""",
        _REAL,
    ),
    **_rows("gumbel_r.cdf gumbel_r.logcdf gumbel_r.logpdf gumbel_r.logsf gumbel_r.sf", Domain(-30.0, 1e300)),
    **_rows("gumbel_l.cdf gumbel_l.logcdf gumbel_l.logpdf gumbel_l.logsf gumbel_l.sf", Domain(-1e300, 30.0)),
    **_rows("erfc", _REAL, float32=4e-6, why="XLA's own function in float32"),
    **_rows("i1e", _REAL, float32=2e-6, why="XLA's own function in float32"),
    **_rows("fresnel_c fresnel_s", Domain(-1e30, 1e30)),
    **_rows("cauchy.logcdf cauchy.logsf", Domain(-1e37, 1e37)),
    **_rows("bessel_jn_0 bessel_jn_3", _REAL),
    **_rows("bessel_jn_30", Domain(1e-6, 1e300)),
    **_rows(
        "entr exp1 expon.cdf expon.logcdf expon.logpdf expon.logsf expon.sf factorial loggamma sici_c spence", _POSITIVE
    ),
    **_rows("multigammaln", Domain(0.5, math.inf)),
    **_rows(
        """logit ndtri norm.ppf norm.isf cauchy.ppf cauchy.isf expon.ppf logistic.ppf logistic.isf gumbel_r.ppf
        gumbel_l.ppf""",
        _UNIT,
    ),
    **_rows("erfinv", Domain(-1.0, 1.0)),
    **_rows("erfcinv", Domain(0.0, 2.0)),
    **_rows("kl_div rel_entr xlogy", _POSITIVE, _POSITIVE),
    **_rows("chi2.cdf chi2.sf gamma.cdf gamma.sf", _POSITIVE, _SHAPE),
    **_rows("gammainc gammaincc", _SHAPE, _POSITIVE),
    **_rows(
        "igamma_grad_a random_gamma_grad",
        *[Domain(1e-12, 600.0)] * 2,
        float64=1e-11,
        why="two terms cancel for large a",
    ),
    **_rows("gamma.logpdf chi2.logpdf", _POSITIVE, _POSITIVE, float32=5e-6, floor=1.0, why=_LOG),
    **_rows("beta betaln poch", *[Domain(-1e100, 1e100)] * 2, float64=5e-12, why="differences of logarithms"),
    **_rows("owens_t", Domain(-40.0, 40.0), Domain(-1e15, 1e15)),
    **_rows("boxcox", _POSITIVE, _REAL),
    **_rows("boxcox1p", Domain(-1.0, math.inf), _REAL),
    **_rows("xlog1py", _REAL, Domain(-1.0, math.inf)),
    **_rows("comb", _COUNT, _COUNT),
    **_rows("expn", Domain(-1.0, 300.0, True), Domain(0.0, 600.0)),
    **_rows("polygamma", _ORDER, _POSITIVE),
    **_rows("zeta", Domain(1.0 + 1e-10, 200.0), Domain(0.0, 100.0), floor=1e-290, why="terms are subnormal"),
    **_rows("betainc", *[Domain(0.0, 1e15)] * 2, _UNIT),
    **_rows("beta.cdf", _UNIT, *[Domain(0.0, 1e15)] * 2),
    **_rows("beta.sf", Domain(1e-30, 1.0), Domain(1e-6, 1e15), Domain(0.0, 1e15), float64=5e-12, why="1 - x"),
    **_rows("gamma.logcdf gamma.logsf chi2.logcdf chi2.logsf", Domain(1e-3, 50.0), Domain(1e-3, 6.0)),
    **_rows("beta.logcdf beta.logsf", Domain(1e-3, 0.999), *[Domain(0.1, 5.0)] * 2),
    **_rows("beta.logpdf", _UNIT, _POSITIVE, _POSITIVE, float32=5e-6, floor=1.0, why=_LOG),
    **_rows(
        "hyp1f1", *[Domain(-20.0, 20.0)] * 2, Domain(-100.0, 100.0), float64=1e-9, floor=1e-6, why="series with signs"
    ),
    **_rows("hyp2f1", *[Domain(0.0, 6.0)] * 3, Domain(-20.0, 0.9), float64=1e-10, why="digits are lost beyond"),
    **_rows("t.logpdf", _REAL, Domain(1e-30, math.inf), floor=1.0, why=_LOG),
    **_rows("gennorm.logpdf", _REAL, _POSITIVE, floor=1.0, why=_LOG),
    **_rows("gennorm.cdf", Domain(-30.0, 30.0), Domain(0.1, 20.0)),
    **_rows("vonmises.logpdf", _CIRCLE, _POSITIVE, floor=1.0, why=_LOG),
    **_rows("wrapcauchy.logpdf", Domain(0.0, 6.28), _UNIT, floor=1.0, why=_LOG),
    **_rows("pareto.cdf pareto.logcdf pareto.logsf pareto.sf", Domain(1.0, math.inf), _POSITIVE),
    **_rows("pareto.logpdf", Domain(1.0, math.inf), _POSITIVE, floor=1.0, why=_LOG),
    **_rows("pareto.ppf", _UNIT, _POSITIVE),
    **_rows(
        "truncnorm.cdf truncnorm.logcdf truncnorm.logsf truncnorm.sf",
        *[Domain(-1e3, 1e3)] * 3,
        float64=1e-11,
        float32=4e-6,
        why=_TAIL,
    ),
    **_rows("truncnorm.logpdf", *[Domain(-1e3, 1e3)] * 3, float64=1e-11, float32=4e-6, floor=1.0, why=_TAIL),
    **_rows("bernoulli.logpmf", Domain(-1.0, 2.0, True), _UNIT),
    **_rows("binom.logpmf", _COUNT, _COUNT, _UNIT, floor=1.0, why=_LOG),
    **_rows("betabinom.logpmf", _COUNT, _COUNT, _POSITIVE, _POSITIVE, float64=1e-10, floor=1.0, why=_LOG),
    **_rows("geom.logpmf", Domain(0.0, 1e6, True), _UNIT),
    **_rows("nbinom.logpmf", _COUNT, _POSITIVE, _UNIT, floor=1.0, why=_LOG),
    **_rows("poisson.logpmf", _COUNT, _POSITIVE, floor=1.0, why=_LOG),
    **_rows("poisson.cdf", _COUNT, _POSITIVE),
}
_SORTED = {
    "truncnorm": (1, 0, 2),
    "binom": (0, 1),
    "betabinom": (0, 1),
    "comb": (1, 0),
}  # operands to sort, smallest first

_OTHERS: dict[str, Callable[..., Any]] = {
    "bessel_jn_0": lambda x: special.bessel_jn(x, v=0)[0],
    "bessel_jn_3": lambda x: special.bessel_jn(x, v=3)[3],
    "bessel_jn_30": lambda x: special.bessel_jn(x, v=30)[30],
    "fresnel_c": lambda x: special.fresnel(x)[1],
    "fresnel_s": lambda x: special.fresnel(x)[0],
    "multigammaln": lambda a: special.multigammaln(a, 2),
    "sici_c": lambda x: special.sici(x)[1],
    "sici_s": lambda x: special.sici(x)[0],
    **{name: getattr(lax, name) for name in ("igamma_grad_a", "polygamma", "random_gamma_grad")},
}


def function(name: str) -> Callable[..., Any]:
    """Return the function of a row of the table."""
    if name in _OTHERS:
        return _OTHERS[name]
    distribution, _, key = name.rpartition(".")
    value: Callable[..., Any] = getattr(getattr(stats, distribution) if distribution else special, key)
    return value


# -- operands ------------------------------------------------------------------------------------------------------

_SIZES = (
    2.3e-308, 1e-300, 1e-155, 1e-40, 1e-30, 1e-17, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 0.35, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0,
    8.0, 10.0, 20.0, 30.0, 50.0, 100.0, 170.5, 171.5, 700.0, 1e3, 1e4, 1e6, 1e8, 1e15, 1e17, 1e30, 1e38, 1e100, 1e155,
    1e300,
)  # fmt: skip
_GAPS = (0.0, 1e-15, -1e-15, 1e-8, -1e-8, 1e-4)  # relative distances to whole numbers
_RATIOS = (1.0, 1.0, 1.0 + 1e-15, 1.0 + 1e-8, 1.001, 1.3, 0.8, -1.0)  # ratios of one operand to another


def _operand(rng: Any, count: int, domain: Domain) -> Any:
    """Return numbers of a domain: of all sizes, at both ends, and close to whole numbers."""
    low, high, whole = domain
    width = min(high, 100.0) - max(low, -100.0)
    even = rng.uniform(max(low, -100.0), min(high, 100.0), count)
    sizes = np.choose(rng.integers(0, 4, count), [
        rng.choice(_SIZES, count), np.exp(rng.uniform(-708, 709, count)), np.exp(rng.uniform(-28, 14, count)),
        np.round(rng.uniform(0, 30, count)) * (1.0 + rng.choice(_GAPS, count)),
    ])  # fmt: skip
    sizes = sizes * (rng.choice([-1.0, 1.0], count) if low < 0 else 1.0)
    if width < 100.0 and not whole:
        upper = high - np.exp(rng.uniform(-36, 0, count)) * width
        sizes = np.where(rng.random(count) < 0.2, upper, sizes)
    out = np.where((sizes > low) & (sizes < high) & (sizes != 0), sizes, even)
    return np.floor(np.abs(out)) if whole else out


def points(name: str, count: int, dtype: Any, seed: int = 0) -> list[Any]:
    """Return operands of a function inside of its domain, in a dtype; the same ones for the same seed."""
    rng, domains = np.random.default_rng(seed), TABLE[name].domains
    xs = [_operand(rng, count, domain) for domain in domains]
    for i in range(1, len(xs)):
        xs[i] = np.where(rng.random(count) < 0.25, xs[i - 1] * rng.choice(_RATIOS, count), xs[i])
        xs[i] = np.floor(xs[i]) if domains[i].whole else xs[i]
    order = _SORTED.get(name.partition(".")[0])
    if order is not None:
        for i, column in zip(order, np.sort([xs[i] for i in order], axis=0), strict=True):
            xs[i] = column
    with np.errstate(all="ignore"):
        xs = [x.astype(dtype) for x in xs]
    inside = np.ones(count, bool)
    for x, (low, high, whole) in zip(xs, domains, strict=True):
        # Compiled programs flush subnormal numbers to 0.
        normal = (np.abs(x) >= 4 * np.finfo(dtype).tiny) | (whole & (x == 0))
        wide = x.astype(np.float64)  # float64 represents the ends of all domains
        inside &= np.isfinite(x) & (wide > low) & (wide < high) & normal
    return [x[inside] for x in xs]


# -- measured ------------------------------------------------------------------------------------------------------


def reference(name: str, operands: Sequence[float], most: int = 250) -> float | None:
    """Return the value by mpmath in which two precisions agree, or None if none do or the function has a pole."""
    digits = 20 if name == "owens_t" else 30  # owens_t is an integral, which is slow
    with mp.workdps(digits):
        last = None
        while mp.dps <= most:
            try:
                value = REFERENCES[name](*[mp.mpf(x) for x in operands])
            except (ArithmeticError, ValueError, mp.NoConvergence):
                return None
            if mp.isnan(value) or mp.im(value) != 0:
                return None
            agree = last is not None and value != 0 and not mp.isinf(value)
            if agree and abs(value - last) <= abs(value) * mp.mpf(10) ** -16:
                return float(mp.re(value))
            last, mp.dps = value, 2 * mp.dps
    return float(value) if mp.isinf(value) else None


class Measured(NamedTuple):
    """The largest relative error of a function in one dtype and mode, its operands, and the error's bound."""

    function: str
    dtype: str
    mode: str
    count: int  # type: ignore[assignment]  # hides `tuple.count`
    worst: float
    bound: float
    where: tuple[float, ...]
    why: str


def measure(name: str, dtype: Any, mode: str, count: int = 100, seed: int = 0) -> Measured:
    """Measure a row of the table.

    Errors that rounding the operands could cause count as 0: errors below four times the change of the value when each
    operand changes by one unit in the last place.

    Args:
        name: the name of the row.
        dtype: float32 or float64.
        mode: "run" or "compiled".
        count: the number of points; points without a reference value are left out.
        seed: the seed of the points.
    """
    row, dtype = TABLE[name], np.dtype(dtype)
    xs, f = points(name, count, dtype, seed), function(name)
    found = np.asarray((corejax.jit(lambda *v: f(*v)) if mode == "compiled" else f)(*[jnp.asarray(x) for x in xs]))
    bound = row.float64 if dtype == np.float64 else row.float32
    worst, where, known = 0.0, (), 0
    for got, *operands in zip(found.tolist(), *[x.tolist() for x in xs], strict=True):
        want = reference(name, operands)
        if want is not None:
            known += 1
            error = _error(got, want, dtype, row.floor)
            if error > bound and error < math.inf and abs(got - want) <= 4 * _moved(name, operands, want, dtype):
                error = 0.0
            if not error <= worst:
                worst, where = error, tuple(operands)
    return Measured(name, dtype.name, mode, known, worst, bound, where, row.why)


def _error(got: float, want: float, dtype: Any, floor: float) -> float:
    """Return the relative error; results that overflow or are subnormal are right if they are infinite or tiny."""
    info = np.finfo(dtype)
    tiny, huge = float(info.tiny), float(info.max)
    if abs(want) > huge * (1 - 1e-6):
        return 0.0 if abs(got) > huge * (1 - 1e-4) and got * want > 0 else math.inf
    if abs(want) < tiny:
        return 0.0 if abs(got) <= 2 * tiny else math.inf
    error = abs(got - want) / max(abs(want), floor)
    return error if error == error else math.inf


def _moved(name: str, operands: Sequence[float], want: float, dtype: Any) -> float:
    """Return how much the value changes when each operand that is not a count changes by a unit in the last place."""
    total, step = 0.0, 1.0 + float(np.finfo(dtype).eps)
    for i, domain in enumerate(TABLE[name].domains):
        if not domain.whole:
            value = reference(name, [x * step if j == i else x for j, x in enumerate(operands)])
            total += 0.0 if value is None or math.isinf(value) else abs(value - want)
    return total
