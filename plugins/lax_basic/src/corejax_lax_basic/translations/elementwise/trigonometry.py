"""StableHLO of sinh, cosh and atan2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.elementwise.trigonometry import atan2_p, cosh_p, sinh_p
from corejax_lax_basic.translations.elementwise._family import expanded
from corejax_lax_basic.translations.elementwise.complex_ends import function

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _half_exp(ctx: TranslationContext, x: Any) -> tuple[Any, Any]:
    """Compute `exp(|x|) / 2` and `exp(-|x|) / 2`; the first overflows only if a hyperbolic function does."""
    aval = x.aval
    size = ctx.op("multiply", ctx.op("abs", x, out=aval), ctx.full(aval, 0.5), out=aval)
    root = ctx.op("exponential", size, out=aval)
    grown = ctx.op("multiply", ctx.op("multiply", root, ctx.full(aval, 0.5), out=aval), root, out=aval)
    return grown, ctx.op("divide", ctx.full(aval, 0.25), grown, out=aval)


def _cosh(ctx: TranslationContext, x: Any) -> Any:
    return ctx.op("add", *_half_exp(ctx, x), out=x.aval)


def _sinh(ctx: TranslationContext, x: Any) -> Any:
    """Compute the hyperbolic sine; below 1 by `exp(|x|) - 1`, which is accurate there."""
    aval = x.aval
    size, one = ctx.op("abs", x, out=aval), ctx.full(aval, 1)
    large = ctx.op("subtract", *_half_exp(ctx, x), out=aval)
    less = ctx.op("exponential_minus_one", size, out=aval)
    both = ctx.op("add", less, ctx.op("divide", less, ctx.op("add", less, one, out=aval), out=aval), out=aval)
    small = ctx.op("multiply", both, ctx.full(aval, 0.5), out=aval)
    out = ctx.op("select", ctx.compare("LT", size, one), small, large, out=aval)
    return ctx.op("multiply", ctx.op("sign", x, out=aval), out, out=aval)


def _hyperbolic(of_real: Any, name: str) -> Any:
    """Return a rule that is `of_real`, in float32 at least, and an operation of CHLO for complex numbers.

    CHLO's operations of real numbers compute `exp(x + log(1/2))`, which has an error of |x| ulp.
    """

    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
        (x,) = in_vals
        dtype = x.aval.dtype
        if dtypes.is_complex(dtype):
            return function(ctx, name, f"chlo.{name}", x)
        wide = ctx.convert(x, np.dtype(np.float32)) if dtype in NARROW_FLOATS else x
        return ctx.convert(of_real(ctx, wide), dtype)

    return rule


xla_translations.register(sinh_p, _hyperbolic(_sinh, "sinh"))
xla_translations.register(cosh_p, _hyperbolic(_cosh, "cosh"))


@xla_translations.register(atan2_p)
def _atan2(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    x, y = expanded(ctx, in_vals)
    aval = x.aval
    if not dtypes.is_complex(aval.dtype):
        return ctx.op("atan2", x, y, out=aval)
    # `-i log((y + ix) / sqrt(x^2 + y^2))`, with the same steps as the impl rule.
    i = ctx.full(aval, 1j)
    squares = ctx.op("add", ctx.op("multiply", x, x, out=aval), ctx.op("multiply", y, y, out=aval), out=aval)
    point = ctx.op("add", y, ctx.op("multiply", i, x, out=aval), out=aval)
    direction = ctx.op("divide", point, function(ctx, "sqrt", "sqrt", squares), out=aval)
    return ctx.op("multiply", ctx.full(aval, -1j), function(ctx, "log", "log", direction), out=aval)
