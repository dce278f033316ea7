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
    avals = [x.aval for x in carry]
    regions = [
        ctx.region(avals, lambda inner, *values: inner.inline(cond_jaxpr, [*cond_consts, *values])),
        ctx.region(avals, lambda inner, *values: inner.inline(body_jaxpr, [*body_consts, *values])),
    ]
    return ctx.op("while", *carry, out=avals, regions=regions)  # type: ignore[no-any-return]
