"""StableHLO of reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, xla_translations
from corejax.extend.types import SymbolicDim
from corejax_lax_basic._speed import LONG_INDEX_AXIS
from corejax_lax_basic.reductions._family import MAXIMUM, MINIMUM, REDUCTIONS, Axes, Fold, greatest, least
from corejax_lax_basic.reductions.reduce import argmax_p, argmin_p
from corejax_lax_basic.translations._widening import widened
from corejax_lax_basic.translations.reductions._combination import combination, first_wins, folding
from corejax_lax_basic.translations.reductions._operation import is_all_reduced, reduce_one

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _reduced(aval: ShapedArray, axes: Axes) -> ShapedArray:
    return ShapedArray(tuple(d for i, d in enumerate(aval.shape) if i not in axes), aval.dtype)


def _folding(fold: Fold) -> Callable[..., Any]:
    """Return the rule of a reduction by one operation."""

    def reduce(ctx: TranslationContext, x: Any, initial: Any, *, axes: Axes) -> Any:
        all_reduced = is_all_reduced(fold.stablehlo, x.aval.dtype)
        return reduce_one(ctx, x, initial, _reduced(x.aval, axes), axes, combination(fold), all_reduced)

    return folding(fold, reduce)


def _places(ctx: TranslationContext, x: Any, extremum: Fold, axes: Axes, index: ShapedArray) -> Any:
    """Return the least index of elements that equal the extremum, or are NaN."""
    truth = ShapedArray(x.aval.shape, dtypes.bool_)
    best = _folding(extremum)(ctx, [x.aval], [x], axes=axes)
    best = ctx.broadcast_in_dim(best, x.aval.shape, [d for d in range(x.aval.ndim) if d not in axes])
    matches = ctx.compare("EQ", x, best)
    if dtypes.is_float(x.aval.dtype):
        matches = ctx.op("or", matches, ctx.compare("NE", x, x), out=truth)
    numbers = ctx.op("iota", out=index, attrs=f"iota_dimension = {axes[0]} : i64")
    beyond = ctx.full(index, int(dtypes.iinfo(index.dtype).max))
    chosen = ctx.op("select", matches, numbers, beyond, out=index)
    return _folding(MINIMUM)(ctx, [index], [chosen], axes=axes)


def _index_of(wins: str, worst_of: Callable[[Any], Any], extremum: Fold) -> Callable[..., Any]:
    """Return the rule of argmax or argmin: a reduction of (value, index) pairs, independent of the order of folding.

    XLA on CPUs folds pairs one by one, but numbers several at a time: along long axes the extremum is found first.
    """

    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axes: Axes, index_dtype: Any) -> Any:
        x = widened(ctx, in_vals[0])
        index = ShapedArray(x.aval.shape, index_dtype)
        symbolic = any(isinstance(size, SymbolicDim) for size in index.shape)
        if ctx.platform == "cpu" and not symbolic and index.shape[axes[0]] >= LONG_INDEX_AXIS:
            return _places(ctx, x, extremum, axes, index)
        value_0, index_0 = ShapedArray((), x.aval.dtype), ShapedArray((), index_dtype)

        def body(ctx: TranslationContext, x: Any, i: Any, y: Any, j: Any) -> list[Any]:
            take = first_wins(ctx, wins, x, i, y, j)
            return [ctx.op("select", take, x, y, out=x.aval), ctx.op("select", take, i, j, out=i.aval)]

        numbers = ctx.op("iota", out=index, attrs=f"iota_dimension = {axes[0]} : i64")
        worst = ctx.constant(worst_of(x.aval.dtype))
        last = ctx.constant(np.array(dtypes.iinfo(index_dtype).max, index_dtype))  # loses against any element
        outs = [_reduced(x.aval, axes), _reduced(index, axes)]
        attrs = f"dimensions = {ctx.i64(axes)}"
        regions = [ctx.region([value_0, index_0, value_0, index_0], body)]
        return ctx.op("reduce", x, numbers, worst, last, out=outs, attrs=attrs, regions=regions)[1]

    return rule


for _primitive, _fold in REDUCTIONS.items():
    xla_translations.register(_primitive, _folding(_fold))
xla_translations.register(argmax_p, _index_of("GT", least, MAXIMUM))
xla_translations.register(argmin_p, _index_of("LT", greatest, MINIMUM))
