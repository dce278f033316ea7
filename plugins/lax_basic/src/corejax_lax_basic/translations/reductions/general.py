"""StableHLO of `reduce` with any program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import ClosedJaxpr, Jaxpr, ShapedArray, xla_translations
from corejax_lax_basic.elementwise._family import STABLEHLO
from corejax_lax_basic.elementwise.arithmetic import max_p, min_p
from corejax_lax_basic.reductions.general import reduce_p
from corejax_lax_basic.translations.reductions._operation import is_all_reduced, reduce_one

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(reduce_p)
def reduce(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, jaxpr: ClosedJaxpr, dimensions: Any) -> Any:
    """Lower to `reduce` with the program as its region."""
    outs = reduce_p.abstract(tuple(in_avals), {"jaxpr": jaxpr, "dimensions": dimensions})

    def body(ctx: TranslationContext, *vals: Any) -> Any:
        return ctx.inline(jaxpr, vals)

    if len(outs) == 1:
        all_reduced = is_all_reduced(_operation(jaxpr.jaxpr), outs[0].dtype)
        x, initial = in_vals
        return [reduce_one(ctx, x, initial, outs[0], dimensions, body, all_reduced)]
    scalars = [ShapedArray((), a.dtype) for a in outs]
    regions = [ctx.region([*scalars, *scalars], body)]
    return ctx.op("reduce", *in_vals, out=list(outs), attrs=f"dimensions = {ctx.i64(dimensions)}", regions=regions)


def _operation(jaxpr: Jaxpr) -> str | None:
    """Return the operation of StableHLO that equals a program of two elements, or None."""
    if len(jaxpr.eqns) != 1:
        return None
    (eqn,) = jaxpr.eqns
    alone = set(map(id, eqn.invars)) == set(map(id, jaxpr.invars)) and list(eqn.outvars) == jaxpr.outvars
    return {**STABLEHLO, max_p: "maximum", min_p: "minimum"}.get(eqn.primitive) if alone else None
