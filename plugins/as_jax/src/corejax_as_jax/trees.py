"""Functions of pytrees to which references are leaves, as in JAX, and private names that libraries use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from corejax.extend import tree
from corejax.ref import Ref
from corejax_as_jax import references


class NodeType(NamedTuple):
    """How nodes of a type are taken apart and built, in the order of JAX's entries of its registry."""

    to_iter: Callable[[Any], tuple[list[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


def _children(node: Any) -> tuple[list[Any], Any]:
    """Return the children of a node, and the structure that builds a node from them."""
    children, treedef = tree.tree_flatten(node, is_leaf=lambda x: x is not node)
    return children, treedef


class NodeTypes:
    """`kind in _registry`: whether objects of a type are nodes of pytrees; `_registry[kind]`: their functions."""

    def __getitem__(self, kind: Any) -> NodeType:
        if kind not in self:
            raise KeyError(kind)
        return NodeType(_children, tree.tree_unflatten)

    def __contains__(self, kind: Any) -> bool:
        return kind is not Ref and tree.is_tree_node(kind)


class Registry:
    """`jax.tree_util.default_registry`: the node types of pytrees."""

    def flatten_one_level(self, x: Any) -> tuple[Any, Any] | None:
        """Return the children of a node and its metadata; None for a leaf."""
        return tuple(tree.flatten_one_level(x)) if type(x) in NodeTypes() else None


default_registry = Registry()


# Functions of `jax.tree` with an argument `is_leaf`, and its position.
_IS_LEAF = {
    "all": 1, "flatten": 1, "flatten_with_path": 1, "leaves": 1, "leaves_with_path": 1, "map": None,
    "map_with_path": None, "reduce": 3, "structure": 1,
}  # fmt: skip


def _is_reference(x: Any) -> bool:
    return type(x) is Ref


def _with_reference_leaves(function: Callable[..., Any], position: int | None) -> Callable[..., Any]:
    """Return a function of pytrees to which references are leaves.

    To corejax they are nodes without leaves, which its transformations rely on. A predicate makes flattening slower, so
    that it is passed only after the program has made a reference.
    """

    @functools.wraps(function)
    def with_leaves(*args: Any, **kwargs: Any) -> Any:
        if references.made:
            is_leaf = kwargs.pop("is_leaf", None)
            if position is not None and len(args) > position:
                *args, is_leaf = args  # type: ignore[assignment]  # a list serves as well
            kwargs["is_leaf"] = _is_reference if is_leaf is None else lambda x: _is_reference(x) or is_leaf(x)
        return function(*args, **kwargs)

    return with_leaves


tree_functions = {name: _with_reference_leaves(getattr(tree, name), position) for name, position in _IS_LEAF.items()}
"""The functions of `jax.tree` to which references are leaves, by name."""
