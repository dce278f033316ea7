"""Densities of the gamma and beta distributions, which are derivatives of incomplete gamma and beta functions.

They are compositions of primitives, in float64 for every dtype. For large parameters they use Stirling's formula, in
which no large logarithms cancel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import get_aval
from corejax_lax_basic.conversion.convert import in_dtype
from corejax_lax_basic.elementwise import select, unary
from corejax_lax_basic.elementwise._family import constant, spread
from corejax_lax_basic.elementwise.powers import pow
from corejax_lax_basic.special import _series
from corejax_lax_basic.special._incomplete_beta import by_stirling, log_size
from corejax_lax_basic.special.gamma import lgamma

__all__: list[str] = []

_WIDE = np.dtype(np.float64)


class _Operations:
    """The operations of formulas, for traced values of float64; see `_eager.Arrays`."""

    epsilon = _series.DOUBLE
    abs, exp, log, log1p = (staticmethod(f) for f in (unary.abs, unary.exp, unary.log, unary.log1p))
    sqrt, lgamma = staticmethod(unary.sqrt), staticmethod(lgamma)

    @staticmethod
    def where(which: Any, x: Any, y: Any) -> Any:
        """Return `x` where the condition holds, else `y`; at most one of them is a number."""
        like = y if isinstance(x, float) else x
        x, y = (spread(constant(like, v), like) if isinstance(v, float) else v for v in (x, y))
        return select.select_n(which, y, x)


_OPS = _Operations()


def _in_float64(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a formula on values of one shape: it is computed in float64 and rounded once, at the end."""

    @functools.wraps(formula)
    def computed(*operands: Any) -> Any:
        largest = max(operands, key=lambda x: get_aval(x).ndim)
        out = formula(*[spread(in_dtype(x, _WIDE), largest) for x in operands])
        return in_dtype(out, get_aval(largest).dtype)

    return computed


@_in_float64
def gamma_density(a: Any, x: Any) -> Any:
    """Compute `x**(a-1) exp(-x) / gamma(a)`."""
    where = _OPS.where
    large = (a >= 10.0) & (a < math.inf) & (x > 0.0) & (x < math.inf)
    far, at = where(large, a, 10.0), where(large, x, 10.0)
    exponent = far * _series.log1p_less(_OPS, (at - far) / far, at / far) - _series.stirling_rest(far)
    by_stirling = unary.exp(exponent) * unary.sqrt(far / (2.0 * math.pi)) / at
    near, size = where(large, 1.0, a), lgamma(where(large, 1.0, a))
    inside = where(large | (x == 0.0), 1.0, x)
    direct = unary.exp((near - 1.0) * unary.log(inside) - inside - size)
    # At zero a power keeps the derivative, which an exponential of a logarithm loses.
    direct = where(x == 0.0, pow(where(x == 0.0, x, 1.0), near - 1.0) * unary.exp(-x - size), direct)
    return where(large, by_stirling, direct)


@_in_float64
def beta_density(a: Any, b: Any, x: Any) -> Any:
    """Compute `x**(a-1) (1-x)**(b-1) / B(a, b)`."""
    where = _OPS.where
    large = (a >= 10.0) & (b >= 10.0) & (a + b < math.inf) & (x > 0.0) & (x < 1.0)
    far, other, at = where(large, a, 10.0), where(large, b, 10.0), where(large, x, 0.5)
    offset = (at * other - far) + at * far  # products of float32 operands are exact in float64
    end = (x == 0.0) | (x == 1.0)
    direct_a, direct_b, inside = where(large, 1.0, a), where(large, 1.0, b), where(large | end, 0.5, x)
    size = log_size(_OPS, direct_a, direct_b)
    powers = (direct_a - 1.0) * unary.log(inside) + (direct_b - 1.0) * unary.log1p(-inside)
    direct = unary.exp(powers - size)
    # At the ends a power keeps the derivative, which an exponential of a logarithm loses.
    outer = where(end, x, 0.5)
    at_end = pow(outer, direct_a - 1.0) * pow(1.0 - outer, direct_b - 1.0) * unary.exp(-size)
    direct = where(end, at_end, direct) * where(direct_a < direct_b, direct_a, direct_b)
    return where(large, by_stirling(_OPS, far, other, at, 1.0 - at, offset) * far / (at * (1.0 - at)), direct)
