"""The batching rule of primitives that take stacks: the mapped axis becomes the first batch axis."""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, move_batch_axis, vmap_rules

__corejax_registers_for_caller__ = True  # a rule's provenance is the primitive's file


def batched_in_front(primitive: Primitive) -> None:
    """Register it; operands that are not mapped are broadcast."""

    def rule(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
        outs = primitive.bind(*moved, **params)
        return outs, [0] * len(outs) if primitive.multiple_results else 0

    vmap_rules.register(primitive, rule)
