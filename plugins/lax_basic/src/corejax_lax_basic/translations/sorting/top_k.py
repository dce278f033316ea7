"""StableHLO of `top_k`, and of `approx_top_k`, which lowers to an exact `top_k`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.sorting.top_k import approx_top_k_p, top_k_p
from corejax_lax_basic.translations._widening import orderable

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _greatest(ctx: TranslationContext, x: Any, k: int, axis: int) -> list[Any]:
    """Return `top_k` along any axis; the operation itself takes the last axis."""
    last = len(x.aval.shape) - 1
    x = _swap_axes(ctx, x, axis, last)
    shape = (*x.aval.shape[:-1], k)
    outs = [ShapedArray(shape, x.aval.dtype), ShapedArray(shape, np.dtype(np.int32))]
    results = ctx.op("chlo.top_k", x, out=outs, attrs=f"k = {k} : i64")
    return [_swap_axes(ctx, v, axis, last) for v in results]


def _swap_axes(ctx: TranslationContext, x: Any, first: int, second: int) -> Any:
    if first == second:
        return x
    order = list(range(len(x.aval.shape)))
    order[first], order[second] = second, first
    out = x.aval.update(shape=tuple(x.aval.shape[i] for i in order))
    return ctx.op("transpose", x, out=out, attrs=f"permutation = {ctx.i64(order)}")


@xla_translations.register(top_k_p)
def top_k(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, k: int, axis: int) -> Any:
    """Lower to `chlo.top_k`."""
    (x,) = in_vals
    values, places = _greatest(ctx, orderable(ctx, x), k, axis)
    return [ctx.convert(values, x.aval.dtype), places]


@xla_translations.register(approx_top_k_p)
def approx_top_k(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, reduction_dimension: int, is_max_k: bool, **params: Any
) -> Any:
    """Lower to an exact `top_k`; the least elements are the greatest of the negated array."""
    params |= {"reduction_dimension": reduction_dimension, "is_max_k": is_max_k}
    size = approx_top_k_p.abstract(tuple(in_avals), params)[0].shape[reduction_dimension]
    dtype = in_avals[0].dtype
    x = orderable(ctx, in_vals[0])
    if not is_max_k:
        x = ctx.op("negate", x, out=x.aval)
    values, places = _greatest(ctx, x, size, reduction_dimension)
    if not is_max_k:
        values = ctx.op("negate", values, out=values.aval)
    return [ctx.convert(values, dtype), places]
