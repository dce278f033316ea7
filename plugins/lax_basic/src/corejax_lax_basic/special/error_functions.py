"""Error functions: erf erfc erf_inv.

    erf : f[*s] -> f[*s]

Floating-point, of the operand's shape, dtype and weak type; TypeError for other dtypes. Definitions: DLMF 7.2.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic._base.derivatives import tangents, tangents_with_result
from corejax_lax_basic._base.type_rules import FLOAT
from corejax_lax_basic.elementwise._family import constant, unary
from corejax_lax_basic.elementwise.arithmetic import mul, neg
from corejax_lax_basic.elementwise.powers import square
from corejax_lax_basic.elementwise.unary import exp
from corejax_lax_basic.special._eager import by_scipy, zero_at_zero

__all__: list[str] = []  # rows bring their own names


def _density(x: Any, factor: float) -> Any:
    return mul(constant(x, factor), exp(neg(square(x))))


erf, erf_p = unary(
    "erf", by_scipy("erf"), FLOAT, None,
    tangents(lambda t, x: mul(_density(x, 2 / math.sqrt(math.pi)), t)),
    "Compute the error function, `2/sqrt(pi)` times the integral of `exp(-t**2)` from 0 to `x`; floating-point.",
)  # fmt: skip

erfc, erfc_p = unary(
    "erfc", by_scipy("erfc"), FLOAT, None,
    tangents(lambda t, x: mul(_density(x, -2 / math.sqrt(math.pi)), t)),
    "Compute `1 - erf(x)`, accurate also if it is small; floating-point.",
)  # fmt: skip

erf_inv, erf_inv_p = unary(
    "erf_inv", by_scipy("erfinv", zero_at_zero), FLOAT, None,
    tangents_with_result(lambda t, out, x: mul(mul(constant(x, math.sqrt(math.pi) / 2), exp(square(out))), t)),
    "Compute the inverse of `erf`: infinite at -1 and 1, NaN beyond; floating-point.",
)  # fmt: skip
