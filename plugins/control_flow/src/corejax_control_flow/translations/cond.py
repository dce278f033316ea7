"""StableHLO of `cond`: `case`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, xla_translations
from corejax_control_flow.branches.cond_rules import cond_p, joined_out_avals

_FLAG = ShapedArray((), np.dtype(np.bool_))


@xla_translations.register(cond_p)
def cond_translation(
    ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, branches: tuple[ClosedJaxpr, ...], linear: Any
) -> list[Any]:
    """`case`, whose regions see the operands around them. It would take the last branch for a negative index."""
    index, *operands = in_vals
    out = joined_out_avals(branches)
    if not out and not any(branch.effects for branch in branches):
        return []
    known = getattr(index, "known", None)
    if known is not None:  # of `platform_dependent`: the other branches may have no translation here
        return ctx.inline(branches[min(max(int(known), 0), len(branches) - 1)], operands)  # type: ignore[no-any-return]
    # XLA's partitioner refuses branches whose only results are laid out differently; not where there are two.
    another = [ctx.full(_FLAG, False)] if len(out) == 1 and ctx.module.meshes.divides else []
    regions = [ctx.region((), lambda inner, b=branch: [*inner.inline(b, operands), *another]) for branch in branches]
    first = ctx.op("maximum", index, ctx.full(in_avals[0], 0), out=in_avals[0])
    outs: list[Any] = ctx.op("case", first, out=[*out, *(x.aval for x in another)], regions=regions)
    return outs[: len(out)]
