"""Translations to one operation, to an inlined program, or to nothing.

cond custom_linear_solve custom_lin optimization_barrier dce_sink
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, split_list, xla_translations
from corejax_control_flow.branches.cond_rules import cond_p, joined_out_avals
from corejax_control_flow.custom.custom_vjp_rules import custom_lin_p, no_forward_mode
from corejax_control_flow.markers.dce_sink import dce_sink_p
from corejax_control_flow.markers.optimization_barrier import optimization_barrier_p
from corejax_control_flow.solvers.custom_linear_solve import custom_linear_solve_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

_FLAG = ShapedArray((), np.dtype(np.bool_))


@xla_translations.register(cond_p)
def cond_translation(
    ctx: TranslationContext, in_avals: Any, in_vals: Sequence[Any], *, branches: tuple[ClosedJaxpr, ...], linear: Any
) -> list[Any]:
    """Translate to `case`; the regions refer to the operands from outside.

    A negative index is clamped to 0, as `case` would take the last branch for it.
    """
    index, *operands = in_vals
    out = joined_out_avals(branches)
    if not out and not any(branch.effects for branch in branches):
        return []
    known = getattr(index, "known", None)
    if known is not None:  # as in `platform_dependent`: the other branches may have no translation for this platform
        outs: list[Any] = ctx.inline(branches[min(max(int(known), 0), len(branches) - 1)], operands)
        return outs
    # XLA's partitioner rejects branches with a single result if their layouts differ, but accepts two results.
    dummy = [ctx.full(_FLAG, False)] if len(out) == 1 and ctx.module.meshes.divides else []
    regions = [ctx.region((), lambda inner, b=branch: [*inner.inline(b, operands), *dummy]) for branch in branches]
    first = ctx.op("maximum", index, ctx.full(in_avals[0], 0), out=in_avals[0])
    outs = ctx.op("case", first, out=[*out, *(x.aval for x in dummy)], regions=regions)
    return outs[: len(out)]


@xla_translations.register(custom_linear_solve_p)
def custom_linear_solve_translation(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    const_lengths: Any,
    solve: ClosedJaxpr,
    **params: Any,
) -> list[Any]:
    """Inline the solver."""
    _, _, consts, _, b = split_list(in_vals, const_lengths)
    outs: list[Any] = ctx.inline(solve, [*consts, *b])
    return outs


@xla_translations.register(custom_lin_p)
def custom_lin_translation(
    ctx: TranslationContext, in_avals: Any, in_vals: Sequence[Any], *, name: str, **params: Any
) -> list[Any]:
    """Raise TypeError, as the derivative cannot be evaluated."""
    raise no_forward_mode(name)


@xla_translations.register(optimization_barrier_p)
def optimization_barrier_translation(ctx: TranslationContext, in_avals: Any, in_vals: Sequence[Any]) -> list[Any]:
    """Translate to `optimization_barrier`."""
    return ctx.op("optimization_barrier", *in_vals, out=list(in_avals)) if in_vals else []


@xla_translations.register(dce_sink_p)
def dce_sink_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, prevent_mlir_dce: bool) -> list[Any]:
    """Translate to a custom call without results that XLA keeps, or to nothing."""
    if prevent_mlir_dce:
        ctx.custom_call("dce_sink", *in_vals, out=[], has_side_effect=True)
    return []
