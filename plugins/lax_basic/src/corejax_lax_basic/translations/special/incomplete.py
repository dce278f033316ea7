"""StableHLO of incomplete gamma and beta functions."""

from __future__ import annotations

from corejax.extend import xla_translations
from corejax_lax_basic.special import _incomplete_beta, _incomplete_gamma
from corejax_lax_basic.special import incomplete as special
from corejax_lax_basic.translations.special._formulas import formula

xla_translations.register(special.igamma_p, formula(_incomplete_gamma.lower))
xla_translations.register(special.igammac_p, formula(_incomplete_gamma.upper))
xla_translations.register(special.igamma_grad_a_p, formula(_incomplete_gamma.derivative_by_a))
xla_translations.register(special.random_gamma_grad_p, formula(_incomplete_gamma.sample_derivative))
xla_translations.register(special.regularized_incomplete_beta_p, formula(_incomplete_beta.betainc))
