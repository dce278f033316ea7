"""StableHLO of the logarithm of the gamma function and its derivatives, and of the Hurwitz zeta function."""

from __future__ import annotations

from corejax.extend import xla_translations
from corejax_lax_basic.special import _series
from corejax_lax_basic.special.gamma import digamma_p, lgamma_p, polygamma_p, zeta_p
from corejax_lax_basic.translations.special._formulas import formula

xla_translations.register(lgamma_p, formula(lambda ops, x: ops.lgamma(x)))
xla_translations.register(digamma_p, formula(lambda ops, x: ops.digamma(x)))
xla_translations.register(polygamma_p, formula(_series.polygamma))
xla_translations.register(zeta_p, formula(_series.zeta))
