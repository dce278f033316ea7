"""StableHLO of error functions: operations of CHLO, which XLA's compilers accept, and formulas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import xla_translations
from corejax_lax_basic.special.elementary import horner
from corejax_lax_basic.special.error_functions import erf_inv_p, erf_p, erfc_p
from corejax_lax_basic.translations.special._formulas import Formula, at_least_float32, chlo, operations_for

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

_LIBRARY = operations_for(np.dtype(np.float64))  # its functions are StableHLO's own, for every dtype

# erf_inv(x) / x is a smooth function of w = -log(1 - x**2) (Giles, "Approximating the erfinv function", GPU Computing
# Gems 2, 2012). This quotient of polynomials, fitted to it, is within 1.9e-8 of it over the 16.7 that float32 reaches.
_ABOVE = (0.8862269418, 0.3076009160, 5.986904443e-2, 7.804415250e-3, 6.466491137e-4, 2.382497516e-5)
_BELOW = (1.0, 8.529158322e-2, 3.219146850e-2, 1.905529604e-3, 1.777111597e-4, 1.254030321e-6)


def _erf_inv(ctx: TranslationContext, x: Any) -> Any:
    return (_erf_inv_wide if x.aval.dtype == np.float64 else _erf_inv_single)(ctx, x)


def _erf_inv_single(ctx: TranslationContext, x: Any) -> Any:
    """Compute within 5 ulp; CHLO's formula is within 65 ulp, with twice as many operations."""
    ops, arg = _LIBRARY, Formula(ctx, x)
    w = 0.0 - ops.log((1.0 - arg) * (1.0 + arg))
    out = arg * (horner(w, _ABOVE) / horner(w, _BELOW))
    return ops.where(ops.abs(arg) == 1.0, arg * math.inf, out).value


def _erf_inv_wide(ctx: TranslationContext, x: Any) -> Any:
    """Add a step of Newton's method to CHLO's value, which has half of the digits near 1 and -1."""
    out = ctx.op("chlo.erf_inv", x, out=x.aval)
    ops, size, value = _LIBRARY, Formula(ctx, x), Formula(ctx, out)
    size = ops.abs(size)
    near = (size > 0.5) & (size < 1.0)
    z, rest = ops.where(near, ops.abs(value), 1.0), ops.where(near, 1.0 - size, 0.0)
    better = z + (ops.erfc(z) - rest) * ops.exp(z * z) * (0.5 * math.sqrt(math.pi))
    return ops.where(near, ops.where(value < 0.0, 0.0 - better, better), value).value


for _primitive in (erf_p, erfc_p):
    xla_translations.register(_primitive, chlo(_primitive.name))
xla_translations.register(erf_inv_p, at_least_float32(_erf_inv))
