"""The functions of `jax.tree_util` that make structures: jaxlib's own pytrees, as in JAX.

C++ flattens trees, and hashes and compares their structures, which libraries do at every call. corejax's own functions
flatten by corejax's registry; its node types are registered with jaxlib as well. The other functions of `corejax.tree`
take structures of either kind.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from corejax.extend import tree as pytrees
from corejax.ref import Ref
from corejax_xla_backend.pytrees import KEY_TYPES, PyTreeDef, registry, treedef_tuple

__all__ = ["PyTreeDef"]

IsLeaf = Callable[[Any], bool]
SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey = KEY_TYPES

default_registry = registry
# Structures are pickled with their registry, by its name.
default_registry.__module__, default_registry.__name__ = "jax.tree_util", "default_registry"

# -- node types --------------------------------------------------------------------------------------------------------

_JAX_KEYS = {getattr(pytrees, kind.__name__): kind for kind in KEY_TYPES}


def _register(kind: type, functions: Any) -> None:
    """Register a node type of corejax with jaxlib, which keeps the first registration and cannot drop it."""
    # References are leaves in JAX; to corejax they are nodes without leaves, which its transformations rely on.
    if functions is None or kind is Ref:
        return
    with_keys = functions.flatten_with_keys and functools.partial(_with_jax_keys, functions.flatten_with_keys)
    with suppress(ValueError):  # registered before
        registry.register_node(kind, functions.flatten, functions.unflatten, with_keys)


def _with_jax_keys(flatten_with_keys: Callable[[Any], Any], node: Any) -> Any:
    """Flatten a node with jaxlib's keys in place of corejax's."""
    pairs, metadata = flatten_with_keys(node)
    return [(_JAX_KEYS[type(k)](k.content) if type(k) in _JAX_KEYS else k, x) for k, x in pairs], metadata


def _flatten_ordered_dict(node: Any) -> Any:
    return [(DictKey(key), value) for key, value in node.items()], tuple(node)


def _flatten_default_dict(node: Any) -> Any:
    keys = tuple(sorted(node))
    return [(DictKey(key), node[key]) for key in keys], (node.default_factory, keys)


def _register_dict(kind: type, flatten_with_keys: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> None:
    def flatten(node: Any) -> Any:
        pairs, metadata = flatten_with_keys(node)
        return [value for _, value in pairs], metadata

    with suppress(ValueError):
        registry.register_node(kind, flatten, unflatten, flatten_with_keys)


_register_dict(OrderedDict, _flatten_ordered_dict, lambda keys, values: OrderedDict(zip(keys, values, strict=True)))
_register_dict(
    defaultdict, _flatten_default_dict, lambda data, values: defaultdict(data[0], zip(data[1], values, strict=True))
)
for _kind, _functions in pytrees.node_types.items():
    _register(_kind, _functions)
pytrees.node_types_changed.connect(_register)


class NodeType(NamedTuple):
    """How nodes of a type are taken apart and built, in the order of JAX's entries of its registry."""

    to_iter: Callable[[Any], tuple[list[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


def flatten_one_level(tree: Any) -> Any:
    """Return the children and the metadata of a node.

    Raises:
        ValueError: `tree` is a leaf.
    """
    return _node(tree, registry.flatten_one_level(tree))


def flatten_one_level_with_keys(tree: Any) -> Any:
    """Return the `(key, child)` pairs and the metadata of a node.

    Raises:
        ValueError: `tree` is a leaf.
    """
    return _node(tree, registry.flatten_one_level_with_keys(tree))


def _node(tree: Any, parts: Any) -> Any:
    if parts is None:
        raise ValueError(f"cannot flatten {tree!r}: instances of {type(tree).__qualname__} are leaves")
    return parts


def _children(node: Any) -> tuple[list[Any], Any]:
    """Return the children of a node, and the structure that builds a node from them."""
    return tree_flatten(node, lambda x: x is not node)


class NodeTypes:
    """`kind in _registry`: whether objects of a type are nodes of pytrees; `_registry[kind]`: their functions."""

    def __getitem__(self, kind: Any) -> NodeType:
        if kind not in self:
            raise KeyError(kind)
        return NodeType(_children, pytrees.tree_unflatten)

    def __contains__(self, kind: Any) -> bool:
        return kind not in (Ref, deque) and pytrees.is_tree_node(kind)  # these are leaves in JAX


# -- functions ---------------------------------------------------------------------------------------------------------


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Any]:
    """Return the leaves of a tree and its structure."""
    flat: tuple[list[Any], Any] = registry.flatten(tree, is_leaf)
    return flat


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of a tree."""
    leaves: list[Any] = registry.flatten(tree, is_leaf)[0]
    return leaves


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Return the structure of a tree."""
    return registry.flatten(tree, is_leaf)[1]


def of_structure(structure: pytrees.PyTreeDef) -> Any:
    """Return jaxlib's structure for one of corejax's."""
    return tree_structure(structure.unflatten(range(structure.num_leaves)))


def _subtrees(treedef: Any, tree: Any, other: Any, is_leaf: IsLeaf | None) -> list[Any]:
    """Return the subtrees of a tree at the places of another one's leaves.

    Raises:
        ValueError: the structures differ; the message names the place.
    """
    try:
        subtrees: list[Any] = treedef.flatten_up_to(other)
        return subtrees
    except ValueError as error:
        differences = pytrees.prefix_errors(tree, other, is_leaf)
        raise ValueError(f"the structures of trees differ {differences[0] if differences else error}") from None


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply a function to the leaves of a tree, and the subtrees of others at the same places."""
    leaves, treedef = registry.flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])  # `map` would end early if `f` raised StopIteration
    others = [_subtrees(treedef, tree, other, is_leaf) for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *others, strict=True)])


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the `(path, leaf)` pairs of a tree, and its structure."""
    ends = is_leaf if is_leaf is None or is_leaf_takes_path else lambda path, node: is_leaf(node)
    flat: tuple[list[tuple[Any, Any]], Any] = registry.flatten_with_path(tree, ends)
    return flat


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[Any, Any]]:
    """Return the `(path, leaf)` pairs of a tree."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply `f(path, leaf, *subtrees)` as `tree_map` does."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_subtrees(treedef, tree, other, None if is_leaf_takes_path else is_leaf) for other in rest]
    return treedef.unflatten([f(*pair, *xs) for pair, *xs in zip(pairs, *others, strict=True)])


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Return True if all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


_MISSING = object()


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf | None = None
) -> Any:
    """Reduce the leaves from left to right, as `functools.reduce` does."""
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of a prefix tree, each repeated for every leaf of its subtree in a full tree."""
    leaves, treedef = registry.flatten(prefix_tree, is_leaf)
    subtrees = _subtrees(treedef, prefix_tree, full_tree, is_leaf)
    return [leaf for leaf, subtree in zip(leaves, subtrees, strict=True) for _ in tree_leaves(subtree)]


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Return a tree of the structure of a full tree, with the leaves of a prefix tree."""
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Return True if all elements are leaves."""
    structures = [tree_structure(x, is_leaf) for x in iterable]
    return all(structure.num_leaves == structure.num_nodes == 1 for structure in structures)


functions = {
    name.removeprefix("tree_"): function for name, function in globals().items() if name.startswith("tree_")
}  # fmt: skip
"""The functions of `jax.tree` that this module defines, by name."""


def treedefs_tuple(treedefs: Iterable[Any]) -> Any:
    """Return the structure of a tuple of trees with these structures."""
    return treedef_tuple(registry, list(treedefs))


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Return the text of a key path; see `corejax.tree.keystr`."""
    return separator.join(map(_simple if simple else str, keys))


def _simple(key: Any) -> str:
    return str(getattr(key, key.__match_args__[0]) if type(key) in KEY_TYPES else key)
