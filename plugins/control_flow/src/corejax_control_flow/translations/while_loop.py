"""StableHLO of `while`: the operation of that name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, split_list, xla_translations
from corejax_control_flow.loops.while_rules import while_p


@xla_translations.register(while_p)
def while_translation(
    ctx: Any,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any]:
    """`while`, whose regions see the constants around them."""
    cond_consts, body_consts, carry = split_list(in_vals, [cond_nconsts, body_nconsts])
    if any(effect.startswith("ordered:") for effect in cond_jaxpr.effects):
        return _deciding_before(ctx, carry, (cond_jaxpr, cond_consts), (body_jaxpr, body_consts))
    avals = [x.aval for x in carry]
    regions = [
        ctx.region(avals, lambda inner, *values: inner.inline(cond_jaxpr, [*cond_consts, *values])),
        ctx.region(avals, lambda inner, *values: inner.inline(body_jaxpr, [*body_consts, *values])),
    ]
    return ctx.op("while", *carry, out=avals, regions=regions)  # type: ignore[no-any-return]


def _deciding_before(ctx: Any, carry: list[Any], cond: Any, body: Any) -> list[Any]:
    """A loop that carries whether there is one more iteration: in the condition's region effects have no order."""

    def decided(inner: Any, values: Sequence[Any]) -> list[Any]:
        program, consts = cond
        return [*inner.inline(program, [*consts, *values]), *values]

    def step(inner: Any, going: Any, *values: Any) -> list[Any]:
        program, consts = body
        return decided(inner, inner.inline(program, [*consts, *values]))

    state = decided(ctx, carry)
    avals = [x.aval for x in state]
    regions = [ctx.region(avals, lambda inner, going, *_: going), ctx.region(avals, step)]
    return ctx.op("while", *state, out=avals, regions=regions)[1:]  # type: ignore[no-any-return]
