"""`scipy.special` of 100,000 numbers, eager and compiled; densities of `scipy.stats`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cases.loops import both
from cases.registry import Sides, blocking, case

MANY = 10**5

# s is `scipy.special`, x positive numbers, p numbers between 0 and 1.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "gammaln": lambda s, x, p: s.gammaln(x),
    "digamma": lambda s, x, p: s.digamma(x),
    "gammainc": lambda s, x, p: s.gammainc(x, p),
    "betainc": lambda s, x, p: s.betainc(x, x, p),
    "erf": lambda s, x, p: s.erf(x),
    "erfinv": lambda s, x, p: s.erfinv(p),
    "ndtr": lambda s, x, p: s.ndtr(x),
    "ndtri": lambda s, x, p: s.ndtri(p),
    "log_ndtr": lambda s, x, p: s.log_ndtr(-x),
    "expit": lambda s, x, p: s.expit(x),
    "logit": lambda s, x, p: s.logit(p),
    "logsumexp": lambda s, x, p: s.logsumexp(x),
    "xlogy": lambda s, x, p: s.xlogy(x, p),
    "entr": lambda s, x, p: s.entr(p),
    "zeta": lambda s, x, p: s.zeta(x + 1, x),
    "polygamma": lambda s, x, p: s.polygamma(1, x),
    "i0e": lambda s, x, p: s.i0e(x),
    "i1e": lambda s, x, p: s.i1e(x),
    "expi": lambda s, x, p: s.expi(x),
    "bessel_jn": lambda s, x, p: s.bessel_jn(x, v=3, n_iter=50),
    "rel_entr": lambda s, x, p: s.rel_entr(x, p),
    "kl_div": lambda s, x, p: s.kl_div(x, p),
    "boxcox": lambda s, x, p: s.boxcox(x, p),
    "boxcox1p": lambda s, x, p: s.boxcox1p(x, p),
    "owens_t": lambda s, x, p: s.owens_t(x, p),
    "hyp1f1": lambda s, x, p: s.hyp1f1(x, x + p, x),
    "hyp2f1": lambda s, x, p: s.hyp2f1(p, p, p + 1, p),
}

# t is `scipy.stats`, x positive numbers, p numbers between 0 and 1: 32 of each.
DENSITIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "norm.logpdf": lambda t, x, p: t.norm.logpdf(x, 0.5, 2.0),
    "norm.pdf": lambda t, x, p: t.norm.pdf(x),
    "norm.cdf": lambda t, x, p: t.norm.cdf(x),
    "gamma.logpdf": lambda t, x, p: t.gamma.logpdf(x, 2.0),
    "beta.logpdf": lambda t, x, p: t.beta.logpdf(p, 2.0, 3.0),
    "t.logpdf": lambda t, x, p: t.t.logpdf(x, 4.0),
    "poisson.logpmf": lambda t, x, p: t.poisson.logpmf(3, x),
    "uniform.pdf": lambda t, x, p: t.uniform.pdf(p),
    "multivariate_normal.logpdf": lambda t, x, p: t.multivariate_normal.logpdf(x[:3], x[3:6], np.eye(3, dtype="f4")),
}


def _side(module: str, f: Callable[..., Any], size: int, compiled: bool) -> Callable[[Any], Callable[[], Any]]:
    def side(lib: Any) -> Callable[[], Any]:
        namespace = importlib.import_module(f"{lib.__name__}.scipy.{module}")
        rng = np.random.default_rng(0)
        x, p = rng.uniform(0.1, 12, size).astype(np.float32), rng.uniform(0.01, 0.99, size).astype(np.float32)
        x, p = lib.numpy.asarray(x), lib.numpy.asarray(p)
        call = lambda x, p: f(namespace, x, p)  # noqa: E731
        run = lib.jit(call) if compiled else call
        return blocking(lib, lambda: run(x, p))

    return side


def _case(name: str, wanted: float | None, side: Callable[[Any], Callable[[], Any]], short: bool) -> None:
    @case(name, wanted, short=short)
    def make() -> Sides:
        return both(side)


for _name, _call in FUNCTIONS.items():
    _case(f"eager special {_name} of 100,000", 1.1, _side("special", _call, MANY, False), False)
for _name, _call in FUNCTIONS.items():
    _case(f"compiled special {_name} of 100,000", 1.05, _side("special", _call, MANY, True), False)
for _name, _call in DENSITIES.items():
    _case(f"eager stats {_name}", None, _side("stats", _call, 32, False), True)
