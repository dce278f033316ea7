"""Axes of meshes of type Explicit: what types say of results is written behind their operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import JaxprEqn, ShapedArray
from corejax_xla_backend._lowering.types import Value

_TOLD = ("higher_order", "collective", "placing")  # whose own operations say it


def constrained(ctx: Any, eqn: JaxprEqn, outs: Sequence[Value]) -> list[Value]:
    """The results of an equation, laid out as their types say, where no operand of that shape is laid out so."""
    if ctx.module.manual is not None or not eqn.primitive.tags.isdisjoint(_TOLD):
        return list(outs)
    known = {(v.aval.shape, v.aval.explicit_sharding) for v in eqn.invars}
    return [
        x
        if v.aval.explicit_sharding is None or (v.aval.shape, v.aval.explicit_sharding) in known
        else _constrained(ctx, x, v.aval)
        for x, v in zip(outs, eqn.outvars, strict=True)
    ]


def _constrained(ctx: Any, x: Value, aval: ShapedArray) -> Value:
    text = ctx.sharding_text(aval.explicit_sharding, aval.ndim, aval.explicit_sharding.mesh.are_all_axes_explicit)
    made: Value = ctx.op("sdy.sharding_constraint", x, out=x.aval, attrs=f"sharding = #sdy.sharding{text}")
    return made
