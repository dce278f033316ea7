"""StableHLO of what tables of elementwise primitives say is one operation, and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, xla_translations
from corejax_lax_basic.elementwise._family import STABLEHLO


def expanded(ctx: Any, vals: Sequence[Any]) -> list[Any]:
    """Elementwise operands in one shape: scalars beside arrays are broadcast."""
    shapes = {v.aval.shape for v in vals}
    if len(shapes) == 1:
        return list(vals)
    return ctx.expand_scalars(vals, max(shapes, key=len))  # type: ignore[no-any-return]


def one_op(primitive: Primitive, name: str) -> Callable[..., Any]:
    """The rule of an elementwise primitive that is one operation."""

    def rule(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        vals = in_vals if len(in_vals) == 1 else expanded(ctx, in_vals)
        return ctx.op(name, *vals, out=primitive.abstract(tuple(in_avals), {})[0])

    return rule


def compare(ctx: Any, direction: str, x: Any, y: Any) -> Any:
    """The operation `compare` on values of one type."""
    return ctx.compare(direction, x, y)


for _primitive, _name in STABLEHLO.items():
    xla_translations.register(_primitive, one_op(_primitive, _name))
