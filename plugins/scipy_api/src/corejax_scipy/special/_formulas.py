"""Building blocks of formulas in float64: selections, and exponentials of squares without loss of digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax_lax_basic import lax

WIDE = np.dtype(np.float64)
ROOT_PI = math.sqrt(math.pi)
EULER = 0.5772156649015329


def widened(x: Any) -> Any:
    """Convert `x` to float64, also under `config.x64_compat`, which applies to users' arrays, not to formulas."""
    return lax.in_dtype(x, WIDE)


def number(value: float) -> Any:
    """Return a float64 constant."""
    return lax.make_scalar(float(value), WIDE, False)


def where(which: Any, x: Any, y: Any) -> Any:
    """Select `x` where `which` is true, else `y`; Python numbers count as float64."""
    x, y = (number(v) if isinstance(v, int | float) else v for v in (x, y))
    shape = max((v.shape for v in (which, x, y)), key=len)
    which, x, y = (lax.broadcast_to(v, shape) for v in (which, x, y))
    return lax.select(which, x, y)


def polynomial(x: Any, coefficients: Any) -> Any:
    """Return `sum(c[i] * x**i)`, by Horner's rule."""
    out = x * 0.0 + float(coefficients[-1])
    for c in coefficients[-2::-1]:
        out = out * x + float(c)
    return out


def halves(x: Any) -> tuple[Any, Any]:
    """Split `x**2`: return `high` of 24 bits, which has an exact square, and the rest `(x - high)(x + high)`."""
    high = widened(lax.convert_element_type(x, np.dtype(np.float32)))
    return high, (x - high) * (x + high)


def exp_of_square(x: Any, factor: float) -> Any:
    """Return `exp(factor * x**2)` without rounding the exponent."""
    most = 60.0 / math.sqrt(abs(factor))  # clamp x, since beyond the product of the exponentials would be NaN
    sane = lax.clamp(number(-most), x, number(most))
    high, rest = halves(sane)
    return lax.exp(factor * (high * high)) * lax.exp(factor * rest)


def sin_pi(x: Any) -> Any:
    """Return `sin(pi x)`, with an exact reduction of the argument."""
    turns = x - 2.0 * lax.round(0.5 * x, lax.RoundingMethod.TO_NEAREST_EVEN)
    inner = where(lax.abs(turns) > 0.5, lax.sign(turns) - turns, turns)
    return lax.sin(math.pi * inner)


def log1p(x: Any) -> Any:
    """Return `log(1 + x)`; XLA's log1p loses two digits for `x` far from 0."""
    near = lax.abs(x) < 0.25
    return where(near, lax.log1p(where(near, x, 0.0)), lax.log(1.0 + where(near, 0.0, x)))


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def stirling_rest(x: Any) -> Any:
    """Return `lgamma(x)` minus `(x - 1/2) log(x) - x + log(2 pi) / 2`, for `x >= 10` (DLMF 5.11.1)."""
    inverse = 1.0 / x
    return inverse * polynomial(inverse * inverse, _STIRLING)


# -- for results that become float32 -------------------------------------------------------------------------------

SINGLE = np.dtype(np.float32)


def _parts(x: Any) -> tuple[Any, Any]:
    """Split a float64 value into a float32 value and the rest."""
    high = lax.convert_element_type(x, SINGLE)
    return high, x - widened(high)


def short_exp(x: Any) -> Any:
    """Return `exp(x)` for `x <= 0`, accurate to a unit of float32 and computed there, ten times as fast as float64."""
    high, low = _parts(where(x < -104.0, -104.0, x))
    return widened(lax.exp(high)) * (1.0 + low)


def short_log(x: Any) -> Any:
    """Return `log(x)` of numbers in the range of float32; see `short_exp`."""
    high, low = _parts(x)
    return widened(lax.log(high)) + low / where(x > 0.0, x, 1.0)
