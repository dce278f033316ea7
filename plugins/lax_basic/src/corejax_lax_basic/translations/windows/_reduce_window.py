"""The operation `reduce_window`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import ShapedArray
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic.translations._padding import padding_text
from corejax_lax_basic.windows.geometry import Pads, reduce_window_shape_tuple

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def pad_for_windows(ctx: TranslationContext, x: Any, value: Any, padding: Pads, base_dilation: Ints) -> Any:
    """Pad and dilate an operand."""
    config = [(low, high, d - 1) for (low, high), d in zip(padding, base_dilation, strict=True)]
    return ctx.pad(x, config, value) if any(map(any, config)) else x


def windowed(*settings: Sequence[Any]) -> list[int]:
    """Return the dimensions that have windows, by sizes, strides, dilation and padding.

    They must not be split over devices: XLA's partitioner gives wrong numbers for some, and ends the process for
    others.
    """
    trivial = (1, (0, 0))
    return [i for i, values in enumerate(zip(*settings, strict=True)) if any(x not in trivial for x in values)]


def reduce_window(
    ctx: TranslationContext,
    operands: Sequence[Any],
    initial: Sequence[Any],
    body: Callable[..., Any],
    *,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
) -> list[Any]:
    """Lower to `reduce_window` of operands of one shape; `body` combines two scalars of each operand.

    Operands are dilated, and cropped for negative padding, beforehand: compilers are slow at the former and refuse the
    latter.
    """
    if any(d > 1 for d in base_dilation) or any(min(pair) < 0 for pair in padding):
        operands = [pad_for_windows(ctx, x, v, padding, base_dilation) for x, v in zip(operands, initial, strict=True)]
        padding, base_dilation = ((0, 0),) * len(padding), (1,) * len(padding)
    shape = reduce_window_shape_tuple(
        operands[0].aval.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    outs = [ShapedArray(shape, x.aval.dtype) for x in operands]
    if 0 in shape:
        return [ctx.full(out, 0) for out in outs]
    if operands[0].aval.size == 0:  # windows of padding only
        return [ctx.broadcast_in_dim(v, shape, ()) for v in initial]
    attrs = (
        f"base_dilations = {ctx.i64(base_dilation)}, padding = {padding_text(padding)}, "
        f"window_dilations = {ctx.i64(window_dilation)}, window_dimensions = {ctx.i64(window_dimensions)}, "
        f"window_strides = {ctx.i64(window_strides)}"
    )
    scalars = [ShapedArray((), x.aval.dtype) for x in operands]
    regions = [ctx.region([*scalars, *scalars], body)]
    undivided = windowed(window_dimensions, window_strides, padding, window_dilation)
    operands = [ctx.undivided(x, undivided) for x in operands]
    results = ctx.op("reduce_window", *operands, *initial, out=outs, attrs=attrs, regions=regions)
    return [ctx.undivided(x, undivided) for x in results]
