"""StableHLO of selections from windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, xla_translations
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.translations._padding import padding_text
from corejax_lax_basic.translations.reductions._combination import first_wins
from corejax_lax_basic.translations.windows._reduce_window import pad_for_windows, reduce_window, windowed
from corejax_lax_basic.windows.geometry import Pads
from corejax_lax_basic.windows.selection import select_and_gather_add_p, select_and_scatter_add_p, worst

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(select_and_gather_add_p)
def select_and_gather_add(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    select: str,
    padding: Pads,
    base_dilation: Ints,
    **params: Any,
) -> Any:
    """Lower to `reduce_window` of keys, their numbers and the values; the numbers decide between equal keys.

    Each device computes all windows: XLA's partitioner gives wrong numbers for split windows of several arrays.
    """
    values, keys = (ctx.undivided(x) for x in in_vals)
    low = ctx.constant(worst(select, keys.aval.dtype))
    zero = ctx.constant(np.zeros((), values.aval.dtype))
    keys = pad_for_windows(ctx, keys, low, padding, base_dilation)
    values = pad_for_windows(ctx, values, zero, padding, base_dilation)
    shape = keys.aval.shape
    flat = ShapedArray((keys.aval.size,), np.dtype(np.int32))
    numbers = ctx.reshape(ctx.op("iota", out=flat, attrs="iota_dimension = 0 : i64"), shape)
    last = ctx.constant(np.array(np.iinfo(np.int32).max, np.int32))
    wins = "GT" if select == "ge" else "LT"

    def body(ctx: TranslationContext, x: Any, i: Any, s: Any, y: Any, j: Any, t: Any) -> list[Any]:
        take = first_wins(ctx, wins, x, i, y, j)
        return [ctx.op("select", take, a, b, out=a.aval) for a, b in ((x, y), (i, j), (s, t))]

    ones = (1,) * len(shape)
    nothing = ((0, 0),) * len(shape)
    operands, initial = [keys, numbers, values], [low, last, zero]
    return ctx.undivided(reduce_window(ctx, operands, initial, body, padding=nothing, base_dilation=ones, **params)[2])


@xla_translations.register(select_and_scatter_add_p)
def select_and_scatter_add(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    select: str,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
) -> Any:
    """Lower to `select_and_scatter` of padded keys, as XLA has refused padding; 16-bit floats are summed in float32."""
    source, keys = in_vals
    dtype, shape = source.aval.dtype, keys.aval.shape
    if source.aval.size == 0 or keys.aval.size == 0:
        return ctx.full(ShapedArray(shape, dtype), 0)
    if dtype in NARROW_FLOATS:
        source, keys = (ctx.convert(x, np.dtype(np.float32)) for x in in_vals)
    ones = (1,) * len(shape)
    undivided = windowed(window_dimensions, window_strides, padding)
    source, keys = (ctx.undivided(x, undivided) for x in (source, keys))
    keys = pad_for_windows(ctx, keys, ctx.constant(worst(select, keys.aval.dtype)), padding, ones)
    zero = ctx.constant(np.zeros((), keys.aval.dtype))

    def keeps(ctx: TranslationContext, x: Any, y: Any) -> Any:
        keep = ctx.compare(select.upper(), x, y)
        if not dtypes.is_float(x.aval.dtype):
            return keep
        return ctx.op("or", keep, ctx.compare("NE", x, x), out=keep.aval)

    scalar = ShapedArray((), keys.aval.dtype)
    attrs = (
        f"padding = {padding_text(((0, 0),) * len(shape))}, window_dimensions = {ctx.i64(window_dimensions)}, "
        f"window_strides = {ctx.i64(window_strides)}"
    )
    regions = [
        ctx.region([scalar, scalar], keeps),
        ctx.region([scalar, scalar], lambda ctx, x, y: ctx.op("add", x, y, out=x.aval)),
    ]
    out = ctx.op("select_and_scatter", keys, source, zero, out=keys.aval, attrs=attrs, regions=regions)
    back = tuple((-low, -high) for low, high in padding)
    return ctx.convert(pad_for_windows(ctx, ctx.undivided(out, undivided), zero, back, ones), dtype)
