"""StableHLO of the combination of two elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.reductions._family import Fold
from corejax_lax_basic.translations.elementwise.arithmetic import extremum

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def combination(fold: Fold) -> Callable[..., Any]:
    """Return the function that builds the region of two scalars."""
    name = str(fold.stablehlo)

    def combine(ctx: TranslationContext, x: Any, y: Any) -> Any:
        return extremum(ctx, name, x, y) if name in ("maximum", "minimum") else ctx.op(name, x, y, out=x.aval)

    return combine


def folding(fold: Fold, reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule `reduce(ctx, x, initial, **params)`; a fold that rounds accumulates 16-bit floats in float32."""

    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        (x,) = in_vals
        dtype = x.aval.dtype
        if fold.wide and dtype in NARROW_FLOATS:
            x = ctx.convert(x, np.dtype(np.float32))
        initial = ctx.constant(fold.neutral(x.aval.dtype))
        return ctx.convert(reduce(ctx, x, initial, **params), dtype)

    return rule


def first_wins(ctx: TranslationContext, wins: str, x: Any, i: Any, y: Any, j: Any) -> Any:
    """Return whether the first of two (value, index) pairs wins; the choice does not depend on the order of folding.

    The better value by the comparison `wins` wins, and a NaN before all numbers; of equals the one with the lesser
    index.
    """
    flag = ShapedArray((), dtypes.bool_)
    better = ctx.compare(wins, x, y)
    same = ctx.compare("EQ", x, y)
    if dtypes.is_float(x.aval.dtype):
        x_nan, y_nan = ctx.compare("NE", x, x), ctx.compare("NE", y, y)
        y_number = ctx.op("not", y_nan, out=flag)
        better = ctx.op("or", better, ctx.op("and", x_nan, y_number, out=flag), out=flag)
        same = ctx.op("or", same, ctx.op("and", x_nan, y_nan, out=flag), out=flag)
    earlier = ctx.op("and", same, ctx.compare("LT", i, j), out=flag)
    return ctx.op("or", better, earlier, out=flag)
