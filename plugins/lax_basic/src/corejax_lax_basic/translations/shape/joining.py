"""StableHLO of concatenation."""

from __future__ import annotations

from typing import Any

from corejax.extend import xla_translations
from corejax_lax_basic.shape.joining import concatenate_p


@xla_translations.register(concatenate_p)
def concatenate(ctx: Any, in_avals: Any, in_vals: Any, *, dimension: int) -> Any:
    """`concatenate`."""
    out = concatenate_p.abstract(tuple(in_avals), {"dimension": dimension})[0]
    return ctx.op("concatenate", *in_vals, out=out, attrs=f"dimension = {dimension} : i64")
