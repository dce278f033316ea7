"""StableHLO's `reduce` of one array, in a form that XLA can partition over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def is_all_reduced(name: str | None, dtype: Any) -> bool:
    """Return whether XLA has an all-reduce for this operation of StableHLO."""
    if dtype in SMALL_INT_BYTES:
        return False
    if name in ("maximum", "minimum"):
        return not dtypes.is_complex(dtype)
    return name in ("add", "multiply") or (name in ("and", "or") and dtypes.is_bool(dtype))


def reduce_one(
    ctx: TranslationContext,
    x: Any,
    initial: Any,
    out: ShapedArray,
    axes: Any,
    body: Callable[..., Any],
    all_reduced: bool,
) -> Any:
    """Lower to `reduce`, with the region that `body` builds.

    If XLA has no all-reduce of the kind, its partitioner refuses to reduce sharded axes, except in a reduction of
    several arrays: for these it gathers the partial results of all devices, and reduces them. Therefore a second array
    is reduced along, and its result ignored; the barrier keeps the compiler from removing it. Only whole bytes can be
    gathered.
    """
    dtype, attrs = x.aval.dtype, f"dimensions = {ctx.i64(axes)}"
    if all_reduced or not ctx.module.meshes.divides:
        regions = [ctx.region([ShapedArray((), dtype)] * 2, body)]
        return ctx.op("reduce", x, initial, out=out, attrs=attrs, regions=regions)
    x, initial = (ctx.convert(v, SMALL_INT_BYTES.get(dtype, dtype)) for v in (x, initial))
    carried = x.aval.dtype
    zero, zeros = ctx.constant(np.zeros((), carried)), ctx.full(ShapedArray(x.aval.shape, carried), 0)

    def first(ctx: TranslationContext, x: Any, p: Any, y: Any, q: Any) -> list[Any]:
        combined = body(ctx, ctx.convert(x, dtype), ctx.convert(y, dtype))
        return [ctx.convert(combined[0] if isinstance(combined, list) else combined, carried), p]

    types = [ShapedArray(out.shape, carried)] * 2
    regions = [ctx.region([ShapedArray((), carried)] * 4, first)]
    outs = ctx.op("reduce", x, zeros, initial, zero, out=types, attrs=attrs, regions=regions)
    return ctx.convert(ctx.op("optimization_barrier", *outs, out=types)[0], dtype)
