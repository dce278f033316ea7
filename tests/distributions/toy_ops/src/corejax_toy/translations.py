"""StableHLO rules, and no jaxlib."""

from __future__ import annotations

from typing import Any

from corejax.extend import xla_translations
from corejax_toy.ops import bare_p, scale_p


@xla_translations.register(scale_p)
def scale(ctx: Any, in_avals: Any, in_vals: Any, *, factor: float) -> Any:
    """A product with a constant."""
    return ctx.op("multiply", in_vals[0], ctx.full(in_avals[0], factor), out=in_avals[0])


@xla_translations.register(bare_p, platform="cuda")
def bare_on_cuda(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """For one platform only."""
    return [ctx.op("negate", in_vals[0], out=in_avals[0])]
