"""Special functions in float64 for results that become float32: relative errors of some 1e-11, no library calls.

    erfc erfcx lgamma digamma

They use the logarithm and exponential of `elementary` and are written in the same way. Results rounded to float32 are
correct to half a unit in the last place, also about zeros, except for one number in ten thousand.
"""

from __future__ import annotations

import math
from typing import Any

from corejax_lax_basic.special import elementary
from corejax_lax_basic.special.elementary import cos_pi, horner, sin_pi

# Coefficients of (1 + 2x) erfcx(x), x >= 0, in t = (x - 3) / (x + 3) (Shepherd and Laframboise 1981), error 9e-12.
_K = 3.0
_ERFCX = (
    1.2530080582677954, -0.13562110611486225, -0.0475622941046549, 0.12964515745696892, -0.11927366876986259,
    0.06830805369513955, -0.023770470011140875, 0.0025291780293455308, 0.001888499606562229, -0.0007789724105693683,
    -0.00010469801671162524, 0.0001231921184419861, 4.274481052619356e-06, -1.7686944205536348e-05,
    -1.17906380443904e-07, 1.7677257035627202e-06,
)  # fmt: skip
# Coefficients of lgamma(2 + t) / t for |t| <= 1/2, error 2e-14.
_LGAMMA = (
    0.42278433509844865, 0.3224670334241219, -0.06735230104594789, 0.020580808424383427, -0.007385551491347285,
    0.0028905105477798577, -0.0011927428713188603, 0.000509664345964222, -0.00022327966351536556,
    9.951609827275654e-05, -4.420674109062643e-05, 2.0169787019584055e-05, -1.1453943505060186e-05,
    5.3193215132047825e-06,
)  # fmt: skip
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # (DLMF 5.11.1)
_PSI = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)  # (DLMF 5.11.2)


def erfcx(ops: Any, x: Any) -> Any:
    """Compute `exp(x**2) erfc(x)` for `x >= 0`."""
    sane = ops.where(x < 1e200, x, 1e200)
    t = 1.0 - (2.0 * _K) / (sane + _K)
    return ops.where(x == math.inf, 0.0, horner(t, _ERFCX) / (2.0 * sane + 1.0)) + (x - x) * 0.0


def erfc(ops: Any, x: Any) -> Any:
    """Compute `1 - erf(x)` with a small relative error also for small results."""
    size = ops.abs(x)
    sane = ops.where(size > 100.0, 100.0, size)
    tail = elementary.exp(ops, 0.0 - sane * sane) * erfcx(ops, sane)
    return ops.where(x < 0.0, 2.0 - tail, tail)


def lgamma_positive(ops: Any, x: Any) -> Any:
    """Compute `lgamma` for `x >= 0`: by Stirling's formula from 8 on, else about 2 after a shift to [3/2, 5/2]."""
    far = x >= 8.0
    t, above, below = ops.where(far, 2.0, x), 1.0, 1.0
    for _ in range(6):
        here = t >= 2.5
        t = ops.where(here, t - 1.0, t)
        above = ops.where(here, t * above, above)
    for _ in range(2):
        here = t < 1.5
        below = ops.where(here, t * below, below)
        t = ops.where(here, t + 1.0, t)
    t = t - 2.0
    logarithm = elementary.log(ops, ops.where(far, x, ops.where(x < 2.0, below, above)))
    near = t * horner(t, _LGAMMA) + ops.where(x < 2.0, 0.0 - logarithm, logarithm)
    inverse = 1.0 / ops.where(far, x, 8.0)
    rest = inverse * horner(inverse * inverse, _STIRLING)
    stirling = (x - 0.5) * (logarithm - 1.0) + (rest + (0.5 * math.log(2.0 * math.pi) - 0.5))
    return ops.where(far, stirling, near)


def lgamma(ops: Any, x: Any) -> Any:
    """Compute `log|gamma(x)|`; by reflection below zero (DLMF 5.5.3)."""
    size = ops.abs(x)
    out = lgamma_positive(ops, size)
    sine = ops.abs(sin_pi(x - ops.round(x)))
    negative = x < 0.0
    reflected = elementary.log(ops, math.pi / ops.where(negative, size * sine, 1.0))
    out = ops.where(negative, reflected - out, out)
    return ops.where(size == math.inf, math.inf, out)


def digamma(ops: Any, x: Any) -> Any:
    """Compute the derivative of `lgamma`: shifted up to 8, by reflection below zero (DLMF 5.5.4); NaN at its poles."""
    negative = x < 0.0
    z = ops.where(negative, 1.0 - x, x)
    top, below = 0.0, 1.0
    for _ in range(8):  # the sum of 1/z, 1/(z+1), ... is `top / below`
        here = z < 8.0
        top = ops.where(here, z * top + below, top)
        below = ops.where(here, z * below, below)
        z = ops.where(here, z + 1.0, z)
    inverse = 1.0 / z
    square = inverse * inverse
    out = elementary.log(ops, z) + (square * horner(square, _PSI) - 0.5 * inverse) - top / below
    part = x - ops.round(x)
    reflected = out - math.pi * cos_pi(part) / sin_pi(ops.where(negative, part, 0.5))
    pole = (x <= 0.0) & (part == 0.0)
    return ops.where(pole | (x == -math.inf), math.nan, ops.where(negative, reflected, out))
