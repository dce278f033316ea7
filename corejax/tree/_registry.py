"""Registration of classes as pytree nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from operator import methodcaller
from typing import Any, TypeVar

from corejax.base.provenance import Provenance
from corejax.errors import DuplicateRegistrationError
from corejax.tree._kinds import Registration, leaf_types, node_types
from corejax.tree._treedef import is_tree_node

__corejax_registers_for_caller__ = True

T = TypeVar("T", bound=type)
Flatten = Callable[[Any], tuple[Iterable[Any], Hashable]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
Unflatten = Callable[[Any, Any], Any]


def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Register a class as a pytree node.

    Args:
        nodetype: the class. Its subclasses are not registered.
        flatten_func: `node -> (children, metadata)`; metadata must be comparable, and hashable or containers (lists,
            dicts, sets, dataclasses) of hashable values.
        unflatten_func: `(metadata, children) -> node`. Children may be any objects, not only arrays.
        flatten_with_keys_func: `node -> (((key, child), ...), metadata)`, for key paths.

    Raises:
        ValueError: the class is a node already; the message names the module that registered it.
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"expected a class to register as pytree node, got {nodetype!r}")
    owner, name = Provenance.of_caller(), f"{nodetype.__module__}.{nodetype.__qualname__}"
    if is_tree_node(nodetype):
        by = f"by {node_types.provenance(nodetype)}" if nodetype in node_types else "built in"
        raise DuplicateRegistrationError(f"{name} is a pytree node already: registered {by}, and again by {owner}")
    if nodetype in leaf_types:
        raise ValueError(f"{name} is a leaf: it cannot be a node")
    node_types.register(nodetype, Registration(flatten_func, unflatten_func, flatten_with_keys_func), provenance=owner)


def register_pytree_node_class(cls: T) -> T:
    """Register the decorated class by its `tree_flatten()` and class method `tree_unflatten(metadata, children)`."""
    register_pytree_node(cls, methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]  # JAX's
    return cls


class Partial(functools.partial[Any]):
    """`functools.partial` that is a pytree: bound arguments are children, the function is metadata.

    If the function is itself a partial, the arguments bound in it are metadata and not children.
    """

    __module__ = "corejax.tree"

    def __new__(cls, func: Callable[..., object], *args: object, **kwargs: object) -> Partial:
        # functools.partial merges the bound arguments of another partial into its own, but not those of its method.
        return super().__new__(cls, func.__call__ if isinstance(func, functools.partial) else func, *args, **kwargs)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
