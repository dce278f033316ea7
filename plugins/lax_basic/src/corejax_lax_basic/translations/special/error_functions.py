"""StableHLO of the error function's kin: operations of CHLO, which XLA's compilers take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import xla_translations
from corejax_lax_basic.special.error_functions import erf_inv_p, erf_p, erfc_p
from corejax_lax_basic.translations.special._formulas import Formula, at_least_float32, chlo, operations_for


def _erf_inv(ctx: Any, x: Any) -> Any:
    """CHLO's, in float64 with a step of Newton's method: near 1 and -1 that has half of the digits."""
    out = ctx.op("chlo.erf_inv", x, out=x.aval)
    if x.aval.dtype != np.float64:
        return out
    ops, size, value = operations_for(x.aval.dtype), Formula(ctx, x), Formula(ctx, out)
    size = ops.abs(size)
    near = (size > 0.5) & (size < 1.0)
    z, rest = ops.where(near, ops.abs(value), 1.0), ops.where(near, 1.0 - size, 0.0)
    better = z + (ops.erfc(z) - rest) * ops.exp(z * z) * (0.5 * math.sqrt(math.pi))
    return ops.where(near, ops.where(value < 0.0, 0.0 - better, better), value).value


for _primitive in (erf_p, erfc_p):
    xla_translations.register(_primitive, chlo(_primitive.name))
xla_translations.register(erf_inv_p, at_least_float32(_erf_inv))
