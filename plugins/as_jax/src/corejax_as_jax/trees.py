"""Private names of JAX's pytrees that libraries use."""

from __future__ import annotations

from typing import Any

from corejax.extend import tree


class NodeTypes:
    """`kind in _registry`: whether objects of a type are nodes of pytrees."""

    def __contains__(self, kind: Any) -> bool:
        return tree.is_tree_node(kind)


class Registry:
    """`jax.tree_util.default_registry`: the node types of pytrees."""

    def flatten_one_level(self, x: Any) -> tuple[Any, Any] | None:
        """Return the children of a node and its metadata; None for a leaf."""
        return tuple(tree.flatten_one_level(x)) if tree.is_tree_node(type(x)) else None


default_registry = Registry()
