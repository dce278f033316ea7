"""`corejax.scipy.special`: special functions with the values and errors of `scipy.special`.

This module is a table of names by module. Eagerly, SciPy computes most functions. Compiled, they are series in float64,
rounded once. `corejax accuracy` prints the errors of both.
"""

from __future__ import annotations

from corejax_lax_basic import lax as _lax

_MODULES = {
    "special.bessel": """
        bessel_jn i0 i0e i1 i1e sph_harm_y
    """,
    "special.beta_functions": """
        beta betainc betaln comb poch
    """,
    "special.error_functions": """
        dawsn erf erfc erfcinv erfcx erfinv fresnel log_ndtr ndtr ndtri owens_t wofz
    """,
    "special.gamma_functions": """
        bernoulli digamma factorial gamma gammainc gammaincc gammaln gammasgn loggamma multigammaln polygamma zeta
    """,
    "special.hypergeometric": """
        hyp1f1 hyp2f1
    """,
    "special.integrals": """
        exp1 expi expn sici spence
    """,
    "special.logarithms": """
        boxcox boxcox1p entr expit kl_div log_softmax logit logsumexp rel_entr softmax xlog1py xlogy
    """,
}

__getattr__, __dir__, __all__ = _lax.lazy_names("scipy.special", "corejax_scipy", _MODULES, globals())
