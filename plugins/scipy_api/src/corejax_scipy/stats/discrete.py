"""Distributions of whole numbers: bernoulli betabinom binom geom multinomial nbinom poisson; and dirichlet.

Values are SciPy's: numbers that are not whole have probability 0, and invalid parameters give NaN. Source:
`scipy.stats`.
"""

from __future__ import annotations

import math
from typing import Any

import corejax.numpy as jnp
import corejax.scipy.special as special
from corejax.extend import dtypes
from corejax_scipy._arguments import array, reals, together
from corejax_scipy.stats._families import Distribution, add, counting
from corejax_scipy.stats._large import log_beta_binomial, log_binomial, log_poisson


def _unit(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


bernoulli = counting(
    "bernoulli", "Success or not, with probability `p`.", "p",
    lambda y, p: special.xlogy(y, p) + special.xlog1py(1.0 - y, -p),
    support=lambda y, p: (y >= 0) & (y <= 1), valid=_unit, safe=jnp.round,
)  # fmt: skip


def _bernoulli_cdf(k: Any, p: Any) -> Any:
    k, p = together("bernoulli.cdf", k, p)
    out = jnp.where(k < 0, 0.0, jnp.where(k < 1, 1.0 - p, 1.0))
    return jnp.where(_unit(p) & (k == k), out, math.nan)


def _bernoulli_ppf(q: Any, p: Any) -> Any:
    q, p = together("bernoulli.ppf", q, p)
    out = jnp.where(q == 0, -1.0, jnp.where(q <= 1.0 - p, 0.0, jnp.ones_like(p)))
    return jnp.where(_unit(p) & _unit(q), out, math.nan)


add(bernoulli, "cdf", _bernoulli_cdf)
add(bernoulli, "ppf", _bernoulli_ppf)

binom = counting(
    "binom", "The number of successes of `n`, each with probability `p`.", "n p",
    lambda y, n, p: log_binomial(y, n - y, p),
    support=lambda y, n, p: (y >= 0) & (y <= n),
    valid=lambda n, p: (n >= 0) & (jnp.floor(n) == n) & _unit(p),
    safe=lambda n, p: jnp.where(p > 0.5, n, 0.0),
)  # fmt: skip

betabinom = counting(
    "betabinom", "The number of successes of `n` with a beta-distributed probability.", "n a b",
    log_beta_binomial,
    support=lambda y, n, a, b: (y >= 0) & (y <= n),
    valid=lambda n, a, b: (n >= 0) & (jnp.floor(n) == n) & (a > 0) & (b > 0),
    safe=lambda n, a, b: jnp.zeros_like(a),
)  # fmt: skip

geom = counting(
    "geom", "The number of trials until one succeeds, each with probability `p`.", "p",
    lambda y, p: special.xlog1py(y - 1.0, -p) + jnp.log(p),
    support=lambda y, p: y >= 1, valid=lambda p: (p > 0) & (p <= 1), safe=jnp.ones_like,
)  # fmt: skip


def _log_part(n: Any, y: Any) -> Any:
    """Return `log(n / (n + y))`."""
    more = n > y
    return jnp.where(more, -jnp.log1p(y / jnp.where(more, n, 1.0)), jnp.log(n) - jnp.log(n + y))


nbinom = counting(
    "nbinom", "The number of failures before `n` successes, each with probability `p`.", "n p",
    lambda y, n, p: log_binomial(n, y, p) + _log_part(n, y),
    support=lambda y, n, p: y >= 0,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    safe=lambda n, p: jnp.zeros_like(p),
)  # fmt: skip

poisson = counting(
    "poisson", "The number of events of which `mu` are expected.", "mu",
    log_poisson,
    support=lambda y, mu: y >= 0, valid=lambda mu: mu >= 0, safe=jnp.zeros_like,
)  # fmt: skip


def _poisson_cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    k, mu, loc = together("poisson.cdf", k, mu, loc)
    y = jnp.floor(k - loc)
    inside = y >= 0
    out = jnp.where(inside, special.gammaincc(jnp.where(inside, y, 0.0) + 1.0, mu), 0.0)
    return jnp.where((mu >= 0) & (y == y), out, math.nan)


def _poisson_entropy(mu: Any, loc: Any = 0) -> Any:
    """Return the entropy, by sums up to 10 standard deviations, or a series beyond `mu = 100` (Evans 1988)."""
    mu, _ = together("poisson.entropy", mu, loc)
    small = mu < 100
    inner = jnp.where(small, mu, 1.0)[..., None]
    k = jnp.arange(221, dtype=mu.dtype)
    terms = special.xlogy(k, inner) - special.gammaln(k + 1.0) - inner
    near = -jnp.sum(jnp.where(jnp.exp(terms) > 0, jnp.exp(terms) * terms, 0.0), axis=-1)
    large = jnp.where(small, 100.0, mu)
    far = 0.5 * jnp.log(2 * math.pi * math.e * large) - 1 / (12 * large) - 1 / (24 * large**2) - 19 / (360 * large**3)
    return jnp.where(mu == 0, 0.0, jnp.where(mu > 0, jnp.where(small, near, far), math.nan))


add(poisson, "cdf", _poisson_cdf)
add(poisson, "entropy", _poisson_entropy)

# -- of vectors --------------------------------------------------------------------------------------------------


def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    counts, total = array("multinomial.logpmf", x, 0), array("multinomial.logpmf", n, 1)
    for what, value in (("x", counts), ("n", total)):
        if not dtypes.is_integer(value.dtype) and value.dtype != bool:
            raise ValueError(f"multinomial: {what} must have integers, got {value.aval.str_short()}")
    (p,) = reals("multinomial.logpmf", p)
    y, n = counts.astype(p.dtype), total.astype(p.dtype)
    out = special.gammaln(n + 1.0) + jnp.sum(special.xlogy(y, p) - special.gammaln(y + 1.0), axis=-1)
    return jnp.where(jnp.all(counts >= 0, axis=-1) & (jnp.sum(counts, axis=-1) == total), out, -math.inf)


multinomial = Distribution(
    "multinomial",
    "Counts of the outcomes of `n` trials, the last axis of `x`, with probabilities `p`.",
    {"logpmf": _multinomial_logpmf},
)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    (x, alpha) = reals("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet: alpha must be a vector, got {alpha.aval.str_short()}")
    count = alpha.shape[0]
    if not x.ndim or x.shape[0] not in (count, count - 1):
        raise ValueError(
            f"dirichlet: the first axis of x must have the {count} elements of alpha or one less, got "
            f"{x.aval.str_short()}"
        )
    if x.shape[0] != count:
        x = jnp.concatenate([x, 1.0 - jnp.sum(x, axis=0, keepdims=True)])
    inside = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1.0) < 1e-6)
    size = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    column = jnp.reshape(alpha, (count, *[1] * (x.ndim - 1)))
    out = jnp.sum(special.xlogy(column - 1.0, jnp.where(inside, x, 0.5)), axis=0) - size
    known = jnp.all(x == x, axis=0)  # comparisons with NaN are False and would give a number
    return jnp.where(inside, out, jnp.where(known, -math.inf, math.nan))


dirichlet = Distribution(
    "dirichlet",
    "The Dirichlet distribution of points with positive coordinates, along the first axis of `x`, that add up to 1.",
    {"logpdf": _dirichlet_logpdf},
)
