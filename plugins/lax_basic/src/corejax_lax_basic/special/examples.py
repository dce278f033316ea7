"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import typed, unary


def _binary(low: Any, high: Any, **more: Any) -> list[Example]:
    return [Example([typed(3), typed(3)], low=low, high=high, **more)]


def _of_whole_order(m: Any, x: Any) -> tuple[Any, Any]:
    return np.round(m).astype(m.dtype), x


def _with_inverse(a: Any, x: Any) -> tuple[Any, Any]:
    """Limit `x`, so that the inverse is not subnormal: compiled programs take subnormal numbers for zero."""
    return a, np.minimum(x, 1e300) if x.dtype == np.float64 else x


_ONCE = "igamma_grad_a, the derivative by the first operand, has no derivative by it"
_NO_SECOND_ORDER = dict.fromkeys(("second_order", "pairs", "triples"), _ONCE)

NAMED: dict[str, Callable[[], list[Example]]] = {
    **dict.fromkeys(("erf", "erfc"), unary),
    "erf_inv": lambda: unary(-0.9, 0.9),
    "bessel_i0e": lambda: unary(0.2, 9.0),
    "bessel_i1e": lambda: unary(0.2, 9.0),
    "lgamma": lambda: unary(0.3, 5.0),
    "digamma": lambda: unary(0.3, 5.0),
    "polygamma": lambda: _binary((0.6, 0.5), (3.4, 4.0), prepare=_of_whole_order),
    "zeta": lambda: _binary(1.5, 4.0),
    "igamma": lambda: _binary((0.6, 0.3), (6.0, 5.0), skip=_NO_SECOND_ORDER),
    "igammac": lambda: _binary((0.6, 0.3), (6.0, 5.0), skip=_NO_SECOND_ORDER),
    "igamma_grad_a": lambda: _binary((0.6, 0.3), (6.0, 5.0)),
    "random_gamma_grad": lambda: _binary((0.6, 0.3), (6.0, 5.0), prepare=_with_inverse),
    "regularized_incomplete_beta": lambda: [
        Example([typed(3), typed(3), typed(3)], low=(1.2, 1.2, 0.1), high=(4.0, 4.0, 0.9))
    ],
}
