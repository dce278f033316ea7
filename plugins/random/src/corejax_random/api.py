"""`corejax.random`: keys, and numbers drawn with them, which equal JAX's bit for bit.

A key is created from an integer (`key`) and used once: to draw numbers, or to derive new keys (`split`, `fold_in`).

This module is a table of names. The modules below it define the functions, and are imported on first use.
"""

from __future__ import annotations

from typing import NewType as _NewType

from corejax.extend import Array as _Array
from corejax_lax_basic import lax as _lax

Key = _NewType("Key", _Array)
"""The type of keys, for annotations: an array whose dtype is a generator's."""

_MODULES = {
    "distributions.counts": """
        binomial geometric multinomial poisson
    """,
    "distributions.gamma": """
        ball beta chisquare dirichlet f gamma generalized_normal loggamma t
    """,
    "distributions.normal": """
        double_sided_maxwell lognormal maxwell multivariate_normal normal truncated_normal
    """,
    "distributions.quantiles": """
        cauchy exponential gumbel laplace logistic pareto rayleigh triangular wald weibull_min
    """,
    "distributions.random_gamma": """
        random_gamma_p
    """,
    "distributions.selection": """
        categorical choice orthogonal permutation
    """,
    "distributions.uniform": """
        bernoulli bits rademacher randint uniform
    """,
    "generators.table": """
        PRNGImpl register_generator
    """,
    "keys.functions": """
        PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data
    """,
}

__getattr__, __dir__, __all__ = _lax.lazy_names("random", "corejax_random", _MODULES, globals())
