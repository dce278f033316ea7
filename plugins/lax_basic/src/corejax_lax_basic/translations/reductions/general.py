"""StableHLO of `reduce` with any program."""

from __future__ import annotations

from typing import Any

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.reductions.general import reduce_p


@xla_translations.register(reduce_p)
def reduce(ctx: Any, in_avals: Any, in_vals: Any, *, jaxpr: Any, dimensions: Any) -> Any:
    """`reduce`, whose region is the program."""
    outs = reduce_p.abstract(tuple(in_avals), {"jaxpr": jaxpr, "dimensions": dimensions})
    scalars = [ShapedArray((), a.dtype) for a in outs]
    regions = [ctx.region([*scalars, *scalars], lambda ctx, *vals: ctx.inline(jaxpr, vals))]
    return ctx.op("reduce", *in_vals, out=list(outs), attrs=f"dimensions = {ctx.i64(dimensions)}", regions=regions)
