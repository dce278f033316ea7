"""StableHLO of `dce_sink`: nothing, or a call that the compiler keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import xla_translations
from corejax_control_flow.markers.dce_sink import dce_sink_p


@xla_translations.register(dce_sink_p)
def dce_sink_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, prevent_mlir_dce: bool) -> list[Any]:
    """A call without results, which XLA knows by name."""
    if prevent_mlir_dce:
        ctx.custom_call("dce_sink", *in_vals, out=[], has_side_effect=True)
    return []
