"""`corejax.random`: keys, and numbers drawn with them, which equal JAX's bit for bit.

A key is created from an integer (`key`) and used once: to draw numbers, or to derive new keys (`split`, `fold_in`).
"""

from __future__ import annotations

from typing import NewType

from corejax.extend import Array
from corejax_random.distributions.counts import binomial, geometric, multinomial, poisson
from corejax_random.distributions.gamma import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    t,
)
from corejax_random.distributions.normal import (
    double_sided_maxwell,
    lognormal,
    maxwell,
    multivariate_normal,
    normal,
    truncated_normal,
)
from corejax_random.distributions.quantiles import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from corejax_random.distributions.random_gamma import random_gamma_p
from corejax_random.distributions.selection import categorical, choice, orthogonal, permutation
from corejax_random.distributions.uniform import bernoulli, bits, rademacher, randint, uniform
from corejax_random.generators.table import PRNGImpl, register_generator
from corejax_random.keys.functions import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

__all__ = [
    "Key", "PRNGImpl", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare",
    "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma",
    "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace", "loggamma",
    "logistic", "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto",
    "permutation", "poisson", "rademacher", "randint", "random_gamma_p", "rayleigh", "register_generator", "split", "t",
    "triangular", "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip

Key = NewType("Key", Array)
"""The type of keys, for annotations: an array whose dtype is a generator's."""


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n.startswith("__"))})
