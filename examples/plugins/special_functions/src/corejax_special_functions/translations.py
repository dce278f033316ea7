"""StableHLO translations.

Without these rules a compiled program would call SciPy on the host, which is correct but slow and works only on CPUs.
StableHLO has neither function, so each is computed by formulas that converge quickly. Where a formula does not apply, a
select replaces its result. Narrow floats are computed in float32, as in the impl rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_special_functions.functions import erfcx_p, lambertw_p

_ERFCX_CUT = 4.0  # above, this many terms of the continued fraction are accurate to float64
_ERFCX_TERMS = 24


class _Elementwise:
    """Arithmetic on StableHLO values of one real type; Python floats become constants."""

    def __init__(self, ctx: Any, aval: ShapedArray) -> None:
        self.ctx, self.aval = ctx, aval

    def __call__(self, name: str, *operands: Any) -> Any:
        return self.ctx.op(name, *(self._value(x) for x in operands), out=self.aval)

    def _value(self, x: Any) -> Any:
        return self.ctx.full(self.aval, x) if isinstance(x, float) else x

    def where(self, x: Any, comparison: str, y: Any, on_true: Any, on_false: Any) -> Any:
        """Select `on_true` where the comparison ("LT", "EQ") holds, and `on_false` elsewhere."""
        chosen = self.ctx.compare(comparison, self._value(x), self._value(y))
        return self("select", chosen, on_true, on_false)


def _register(primitive: Any) -> Callable[..., Any]:
    """Register `formula(op, x)` as the translation, in float32 or wider."""

    def decorator(formula: Callable[[_Elementwise, Any], Any]) -> Any:
        def translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
            (x,), (aval,) = in_vals, in_avals
            wide = aval.update(dtype=np.dtype(np.float64 if aval.dtype == np.float64 else np.float32))
            return ctx.convert(formula(_Elementwise(ctx, wide), ctx.convert(x, wide.dtype)), aval.dtype)

        return xla_translations.register(primitive, translation)

    return decorator


@_register(erfcx_p)
def _erfcx(op: _Elementwise, x: Any) -> Any:
    """Compute exp(x**2) * erfc(x) below 4, and the continued fraction of erfc (DLMF 7.9.1) above.

    The continued fraction neither overflows nor underflows.
    """
    fraction = x
    for k in range(_ERFCX_TERMS, 0, -1):
        fraction = op("add", x, op("divide", k / 2, fraction))
    far = op("divide", 1 / math.sqrt(math.pi), fraction)
    near = op("multiply", op("exponential", op("multiply", x, x)), op("chlo.erfc", x))
    return op.where(x, "LT", _ERFCX_CUT, near, far)


@_register(lambertw_p)
def _lambertw(op: _Elementwise, x: Any) -> Any:
    """Run two steps of Halley's method on w - x exp(-w), from a start with an error of at most 1e-2.

    The start is Winitzki's approximation, or three terms of the series in sqrt(2 (e x + 1)) near the branch point
    (Corless et al. 1996, eq. 4.22). Steps are skipped at the branch point, where they would divide 0 by 0.
    """
    p = op("sqrt", op("maximum", 0.0, op("multiply", 2.0, op("add", 1.0, op("multiply", math.e, x)))))
    series = op("multiply", p, op("subtract", 1 / 3, op("multiply", p, 11 / 72)))
    near = op("subtract", op("multiply", p, op("subtract", 1.0, series)), 1.0)
    log = op("log_plus_one", x)
    ratio = op("divide", op("log_plus_one", log), op("add", 2.0, log))
    w = op.where(x, "LT", -0.25, near, op("multiply", log, op("subtract", 1.0, ratio)))
    for _ in range(2):
        plus = op("add", w, 1.0)
        f = op("subtract", w, op("multiply", x, op("exponential", op("negate", w))))
        bend = op("divide", op("multiply", op("add", w, 2.0), f), op("add", plus, plus))
        step = op("divide", f, op("subtract", plus, bend))
        w = op.where(plus, "LT", 1e-3, w, op("subtract", w, step))
    w = op.where(x, "EQ", math.inf, x, w)
    domain = float(op.aval.dtype.type(-math.exp(-1)))
    return op.where(x, "LT", domain, op.ctx.full(op.aval, math.nan), w)
