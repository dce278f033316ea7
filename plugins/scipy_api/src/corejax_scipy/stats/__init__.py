"""`corejax.scipy.stats`: distributions and functions of samples, with the values of `scipy.stats`.

This module is a table of names. Distributions are objects with functions as attributes.
"""

from __future__ import annotations

from corejax_lax_basic import lax as _lax

_MODULES = {
    "stats.continuous": """
        beta cauchy chi2 expon gamma gennorm gumbel_l gumbel_r laplace logistic norm pareto t truncnorm uniform vonmises
        wrapcauchy
    """,
    "stats.density_estimation": """
        gaussian_kde
    """,
    "stats.discrete": """
        bernoulli betabinom binom dirichlet geom multinomial nbinom poisson
    """,
    "stats.multivariate": """
        multivariate_normal
    """,
    "stats.samples": """
        mode rankdata sem
    """,
}

__getattr__, __dir__, __all__ = _lax.lazy_names("scipy.stats", "corejax_scipy", _MODULES, globals())
