"""What `corejax_lax_basic.special.elementary` is made of, for values of `corejax.lax`: float64 without library calls.

For results that become float32. XLA's CPU compiler calls a function of C's library for each exponential and logarithm
of float64, which takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax_lax_basic import lax
from corejax_lax_basic.special import elementary
from corejax_scipy.special._formulas import WIDE, where

_BITS = np.dtype(np.int64)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_WHOLE = 1.5 * 2.0**52  # beside which numbers are whole


def _whole(value: int) -> Any:
    return lax.make_scalar(value, _BITS, False)


class _Operations:
    """See `elementary`."""

    where = staticmethod(where)
    abs = staticmethod(lax.abs)

    def round(self, x: Any) -> Any:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)

    def parts(self, x: Any) -> tuple[Any, Any]:
        raw = lax.bitcast_convert_type(x, _BITS)
        k = lax.shift_right_arithmetic(raw - _whole(_ROOT_HALF), lax.full_like(raw, 52))
        m = lax.bitcast_convert_type(raw - lax.shift_left(k, lax.full_like(raw, 52)), WIDE)
        return m, lax.convert_element_type(k, WIDE)

    def scaled(self, x: Any, k: Any) -> Any:
        raw = lax.bitcast_convert_type(k + _WHOLE, _BITS)
        exponent = lax.shift_left(raw, lax.full_like(raw, 52)) + _whole(1023 << 52)
        return x * lax.bitcast_convert_type(exponent, WIDE)


_OPERATIONS = _Operations()


def exp(x: Any) -> Any:
    """The exponential function."""
    return elementary.exp(_OPERATIONS, x)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return elementary.log(_OPERATIONS, x)


def log1p(x: Any) -> Any:
    """`log(1 + x)`."""
    return elementary.log1p(_OPERATIONS, x)


def expm1(x: Any) -> Any:
    """`exp(x) - 1`."""
    return elementary.expm1(_OPERATIONS, x)
