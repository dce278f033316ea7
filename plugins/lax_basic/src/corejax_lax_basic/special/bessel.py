"""Modified Bessel functions of the first kind, scaled by `exp(-|x|)`: bessel_i0e bessel_i1e.

    bessel_i0e : f[*s] -> f[*s]

Floating-point, of the operand's shape, dtype and weak type; TypeError for other dtypes. Definitions: DLMF 10.25.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic._base.derivatives import tangents_with_result
from corejax_lax_basic._base.type_rules import FLOAT
from corejax_lax_basic.elementwise._family import constant, unary
from corejax_lax_basic.elementwise.arithmetic import add, div, mul, neg, sub
from corejax_lax_basic.elementwise.comparison import le
from corejax_lax_basic.elementwise.select import select_n
from corejax_lax_basic.elementwise.unary import abs, exp, sign
from corejax_lax_basic.special._eager import by_scipy, zero_at_zero

__all__: list[str] = []  # rows bring their own names


def _i0e_jvp(t: Any, out: Any, x: Any) -> Any:
    """Return the tangent by `I0' = I1` (DLMF 10.29.3) and the derivative of the scale, zero at its kink 0."""
    return mul(sub(bessel_i1e(x), mul(sign(x), out)), t)


bessel_i0e, bessel_i0e_p = unary(
    "bessel_i0e", by_scipy("i0e"), FLOAT, None,
    tangents_with_result(_i0e_jvp),
    "Compute `exp(-|x|) I0(x)`, the scaled modified Bessel function of order 0; floating-point.",
)  # fmt: skip


_POWERS = [1 / (2 * math.factorial(k) * math.factorial(k + 1)) for k in range(8)]


def _ratio(x: Any, out: Any) -> Any:
    """Compute `out / x`; near 0 as `exp(-|x|)` times a power series (DLMF 10.25.2), so that no derivative cancels."""
    near = le(abs(x), constant(x, 0.5))
    small = select_n(near, constant(x, 0), x)
    square = mul(mul(small, small), constant(x, 0.25))
    series = constant(x, _POWERS[-1])
    for c in _POWERS[-2::-1]:
        series = add(mul(series, square), constant(x, c))
    far = div(out, select_n(near, x, constant(x, 1)))
    return select_n(near, far, mul(exp(neg(mul(sign(small), small))), series))


def _i1e_jvp(t: Any, out: Any, x: Any) -> Any:
    """Return the tangent by `I1' = I0 - I1 / x` (DLMF 10.29.2) and the derivative of the scale; 1/2 at 0."""
    slope = sub(sub(bessel_i0e(x), mul(sign(x), out)), _ratio(x, out))
    return mul(slope, t)


bessel_i1e, bessel_i1e_p = unary(
    "bessel_i1e", by_scipy("i1e", zero_at_zero), FLOAT, None,
    tangents_with_result(_i1e_jvp),
    "Compute `exp(-|x|) I1(x)`, the scaled modified Bessel function of order 1; floating-point.",
)  # fmt: skip
