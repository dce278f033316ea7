"""StableHLO of `optimization_barrier`: the operation of that name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import xla_translations
from corejax_control_flow.markers.optimization_barrier import optimization_barrier_p


@xla_translations.register(optimization_barrier_p)
def optimization_barrier_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any]) -> list[Any]:
    """The StableHLO operation of that name."""
    return ctx.op("optimization_barrier", *in_vals, out=list(in_avals)) if in_vals else []
