"""StableHLO of the error function's kin: operations of CHLO, which XLA's compilers take."""

from __future__ import annotations

from corejax.extend import xla_translations
from corejax_lax_basic.special.error_functions import erf_inv_p, erf_p, erfc_p
from corejax_lax_basic.translations.special._formulas import chlo

for _primitive in (erf_p, erfc_p, erf_inv_p):
    xla_translations.register(_primitive, chlo(_primitive.name))
