"""StableHLO of cumulative reductions: `reduce_window` over all elements before each element.

XLA turns windows of prefixes into a tree of small windows, so that the work is not quadratic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, stage_closed, xla_translations
from corejax.extend.types import SymbolicDim
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.reductions._family import CUMULATIVE, Fold
from corejax_lax_basic.reductions.associative_scan import associative_scan
from corejax_lax_basic.reductions.cumulative import cumlogsumexp_p, logaddexp
from corejax_lax_basic.translations._padding import padding_text
from corejax_lax_basic.translations.reductions._combination import combination, folding

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _prefixes(fold: Fold, combine: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of a cumulative reduction.

    Args:
        fold: the row's combination.
        combine: function that combines two scalars in a region.
    """

    def reduce(ctx: TranslationContext, x: Any, initial: Any, *, axis: int, reverse: bool) -> Any:
        shape = x.aval.shape
        if x.aval.size == 0:
            return x
        size = shape[axis]
        window = [size if i == axis else 1 for i in range(len(shape))]
        before = [size - 1 if i == axis else 0 for i in range(len(shape))]
        nothing = [0] * len(shape)
        padding = zip(nothing, before, strict=True) if reverse else zip(before, nothing, strict=True)
        attrs = f"window_dimensions = {ctx.i64(window)}, padding = {padding_text(tuple(padding))}"
        scalar = ShapedArray((), x.aval.dtype)
        regions = [ctx.region([scalar, scalar], combine)]
        return ctx.op("reduce_window", x, initial, out=x.aval, attrs=attrs, regions=regions)

    return folding(fold, reduce)


def _logaddexp(ctx: TranslationContext, x: Any, y: Any) -> Any:
    aval = x.aval
    gap = ctx.op("subtract", x, y, out=aval)
    small = ctx.op("exponential", ctx.op("negate", ctx.op("abs", gap, out=aval), out=aval), out=aval)
    greater = ctx.op("maximum", x, y, out=aval)
    finite = ctx.op("add", greater, ctx.op("log_plus_one", small, out=aval), out=aval)
    return ctx.op("select", ctx.compare("NE", gap, gap), ctx.op("add", x, y, out=aval), finite, out=aval)


_logarithms = _prefixes(CUMULATIVE[cumlogsumexp_p], _logaddexp)


@xla_translations.register(cumlogsumexp_p)
def _cumlogsumexp(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis: int, reverse: bool) -> Any:
    """Combine pairs of whole arrays: XLA computes windows of exponentials and logarithms element by element."""
    (x,) = in_vals
    dtype = x.aval.dtype
    if any(isinstance(size, SymbolicDim) for size in x.aval.shape) or x.aval.size == 0:
        return _logarithms(ctx, in_avals, in_vals, axis=axis, reverse=reverse)
    if dtype in NARROW_FLOATS:
        x = ctx.convert(x, np.dtype(np.float32))
    aval = ShapedArray(x.aval.shape, x.aval.dtype)
    scan = stage_closed(lambda x: [associative_scan(logaddexp, x, reverse, axis)], [aval])
    return ctx.convert(ctx.inline(scan, [x])[0], dtype)


for _primitive, _fold in CUMULATIVE.items():
    if _primitive is not cumlogsumexp_p:
        xla_translations.register(_primitive, _prefixes(_fold, combination(_fold)))
