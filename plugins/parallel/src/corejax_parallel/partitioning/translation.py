"""`custom_partitioning` in StableHLO: a call that its author's function partitions, or its program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, ShapedArray, xla_translations
from corejax_parallel.partitioning.custom_partitioning import custom_partitioning_p


@xla_translations.register(custom_partitioning_p)
def _translation(
    ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, call: ClosedJaxpr, partitioning: Any
) -> list[Any]:
    from corejax_xla_backend import hlo

    if not hlo.is_over_devices(ctx):
        return ctx.inline(call, in_vals)  # type: ignore[no-any-return]
    avals, out_avals = call.in_avals, call.out_avals

    def split(operands: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        mesh, program, placed_in, placed_out = partitioning.split(avals, out_avals, operands, results)
        return mesh, functools.partial(_part, program), placed_in, placed_out

    rule = partitioning.rule(hlo.mesh_of(ctx), avals, out_avals)
    return hlo.partitioned_call(ctx, in_vals, out_avals, rule, split)


def _part(program: ClosedJaxpr, ctx: Any, *parts: Any) -> list[Any]:
    return ctx.inline(program, parts)  # type: ignore[no-any-return]
