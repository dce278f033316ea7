"""StableHLO of two elements combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import ShapedArray, dtypes
from corejax_lax_basic.reductions._family import Fold
from corejax_lax_basic.translations.elementwise._family import compare
from corejax_lax_basic.translations.elementwise.arithmetic import extremum


def combination(fold: Fold) -> Callable[..., Any]:
    """What a region of two scalars computes."""
    name = str(fold.stablehlo)

    def combine(ctx: Any, x: Any, y: Any) -> Any:
        return extremum(ctx, name, x, y) if name in ("maximum", "minimum") else ctx.op(name, x, y, out=x.aval)

    return combine


def first_wins(ctx: Any, wins: str, x: Any, i: Any, y: Any, j: Any) -> Any:
    """Whether of two (value, index) pairs the first is to be taken, so that any order of folding agrees.

    The better value by the comparison `wins`, a NaN before all numbers; of equals the one with the lesser index.
    """
    flag = ShapedArray((), dtypes.bool_)
    better = compare(ctx, wins, x, y)
    same = compare(ctx, "EQ", x, y)
    if dtypes.is_float(x.aval.dtype):
        x_nan, y_nan = compare(ctx, "NE", x, x), compare(ctx, "NE", y, y)
        y_number = ctx.op("not", y_nan, out=flag)
        better = ctx.op("or", better, ctx.op("and", x_nan, y_number, out=flag), out=flag)
        same = ctx.op("or", same, ctx.op("and", x_nan, y_nan, out=flag), out=flag)
    earlier = ctx.op("and", same, compare(ctx, "LT", i, j), out=flag)
    return ctx.op("or", better, earlier, out=flag)
