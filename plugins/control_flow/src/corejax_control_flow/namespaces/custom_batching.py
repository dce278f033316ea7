"""`corejax.custom_batching`: functions with custom vmap rules."""

from __future__ import annotations

from collections.abc import Callable as _Callable
from typing import Any as _Any

from corejax.extend import tree as _tree
from corejax_control_flow.custom.custom_vmap import custom_vmap as custom_vmap
from corejax_control_flow.loops.map import map as _map

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: _Callable[..., _Any]) -> custom_vmap[..., _Any]:
    """Decorate a function so that `vmap` runs it element by element, by `lax.map`.

    Args:
        f: function of pytrees of arrays that cannot or should not be batched.

    Returns:
        A `custom_vmap` function.

    Raises:
        TypeError: if `f` is not a function.
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: list[_Any], *args: _Any) -> tuple[_Any, _Any]:
        leaves, in_tree = _tree.tree_flatten(args)
        flags = _tree.tree_leaves(in_batched)

        def one(rows: list[_Any]) -> _Any:
            elements = iter(rows)
            merged = [next(elements) if batched else x for x, batched in zip(leaves, flags, strict=True)]
            return mapped(*_tree.tree_unflatten(in_tree, merged))

        out = _map(one, [x for x, batched in zip(leaves, flags, strict=True) if batched])
        return out, _tree.tree_map(lambda _: True, out)

    return mapped
