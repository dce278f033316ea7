"""Primitives on stacks of matrices: vmap makes the mapped axis the first batch axis."""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, move_batch_axis, vmap_rules

__corejax_registers_for_caller__ = True  # the provenance of a primitive and its rules is the primitive's file


def of_stacks(name: str, **options: Any) -> Primitive:
    """Make a primitive on stacks, with the options of `Primitive`; its vmap rule broadcasts unmapped operands."""
    primitive = Primitive(name, **options)

    def rule(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
        outs = primitive.bind(*moved, **params)
        return outs, [0] * len(outs) if primitive.multiple_results else 0

    vmap_rules.register(primitive, rule)
    return primitive
