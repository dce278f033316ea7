"""StableHLO of `select_and_scatter` with any programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import ClosedJaxpr, ShapedArray, xla_translations
from corejax_lax_basic.translations._padding import padding_text
from corejax_lax_basic.translations.windows._reduce_window import windowed
from corejax_lax_basic.windows.select_and_scatter import select_and_scatter_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(select_and_scatter_p)
def select_and_scatter(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    select_jaxpr: ClosedJaxpr,
    scatter_jaxpr: ClosedJaxpr,
    **params: Any,
) -> Any:
    """Lower to `select_and_scatter` with the programs as its regions."""
    operand, source, initial = in_vals
    out = ShapedArray(operand.aval.shape, operand.aval.dtype)
    if operand.aval.size == 0 or source.aval.size == 0:
        return ctx.broadcast_in_dim(initial, out.shape, ())
    attrs = (
        f"padding = {padding_text(params['padding'])}, window_dimensions = {ctx.i64(params['window_dimensions'])}, "
        f"window_strides = {ctx.i64(params['window_strides'])}"
    )
    undivided = windowed(params["window_dimensions"], params["window_strides"], params["padding"])
    operand, source = (ctx.undivided(x, undivided) for x in (operand, source))
    scalar = ShapedArray((), out.dtype)
    regions = [
        ctx.region([scalar, scalar], lambda ctx, *vals, program=program: ctx.inline(program, vals))
        for program in (select_jaxpr, scatter_jaxpr)
    ]
    scattered = ctx.op("select_and_scatter", operand, source, initial, out=out, attrs=attrs, regions=regions)
    return ctx.undivided(scattered, undivided)
