"""Registration of dataclasses and of classes with keys as nodes of pytrees, and functions on whole trees.

The names are those of `corejax.tree`, which has the functions that the kernel needs itself.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import methodcaller
from typing import Any, TypeVar

from corejax.extend import tree as pytrees

__corejax_registers_for_caller__ = True

T = TypeVar("T", bound=type)
Flatten = Callable[[Any], tuple[Iterable[Any], Hashable]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
Unflatten = Callable[[Any, Any], Any]
IsLeaf = Callable[[Any], bool]

_MISSING = object()


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: FlattenWithKeys, unflatten_func: Unflatten, flatten_func: Flatten | None = None
) -> None:
    """Register a class as a pytree node with keys for its children.

    Args:
        nodetype: the class. Its subclasses are not registered.
        flatten_with_keys: `node -> (((key, child), ...), metadata)`; keys are `GetAttrKey`, `DictKey`,
            `SequenceKey`, or anything with a `str`.
        unflatten_func: `(metadata, children) -> node`.
        flatten_func: `node -> (children, metadata)`, used if keys are not needed.

    Raises:
        ValueError: the class is a node already.
    """

    def flatten(node: object) -> tuple[Iterable[Any], Hashable]:
        children, metadata = flatten_with_keys(node)
        return [child for _, child in children], metadata

    pytrees.register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: T) -> T:
    """Register the decorated class as `register_pytree_node_class` does, with keys by `tree_flatten_with_keys()`."""
    register_pytree_with_keys(
        cls,
        methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]  # JAX's
        methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def _checked_fields(
    nodetype: type, data: Sequence[str] | None, meta: Sequence[str] | None, drop: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the data and meta fields, inferred if they are None, after a check against the constructor's fields."""
    name = nodetype.__qualname__
    if (data is None) != (meta is None):
        raise TypeError(f"register_dataclass({name}): give both data_fields and meta_fields, or neither")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data is None or meta is None:
        if not is_dataclass:
            raise TypeError(f"register_dataclass({name}): not a dataclass, so give data_fields, meta_fields")
        fields = [f for f in dataclasses.fields(nodetype) if f.name not in drop]
        data = [f.name for f in fields if not f.metadata.get("static", False)]
        meta = [f.name for f in fields if f.metadata.get("static", False)]
    if both := sorted({*data} & {*meta}):
        raise ValueError(f"register_dataclass({name}): both data and meta: {', '.join(both)}")
    if is_dataclass:
        init_fields = {f.name for f in dataclasses.fields(nodetype) if f.init} - {*drop}
        if missing := sorted(init_fields - {*data, *meta}):
            raise ValueError(
                f"register_dataclass({name}): neither data nor meta: {', '.join(missing)}; "
                "a field with a default may be listed in drop_fields"
            )
        if unexpected := sorted({*data, *meta} - init_fields):
            raise ValueError(
                f"register_dataclass({name}): {', '.join(unexpected)} cannot be passed to the constructor "
                "(no such field, a field with init=False, or one of drop_fields)"
            )
    return tuple(data), tuple(meta)


def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Register a dataclass as a pytree node; may be used as a decorator.

    Args:
        nodetype: a dataclass, or a class with a constructor that takes its attributes as keywords.
        data_fields: names of the fields that are children.
        meta_fields: names of the fields that are metadata: hashable, part of the structure. If both lists are
            left out, fields declared with `dataclasses.field(metadata=dict(static=True))` are metadata and the
            others are data.
        drop_fields: names of fields that are dropped; the constructor sets their defaults.

    Raises:
        ValueError: the fields differ from those of the dataclass, or the class is a node already.
        TypeError: one of the two lists is missing, or both are and the class is not a dataclass.
    """
    data, meta = _checked_fields(nodetype, data_fields, meta_fields, drop_fields)
    keys = tuple(map(pytrees.GetAttrKey, data))

    def flatten(node: object) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(node, name) for name in data]), tuple([getattr(node, name) for name in meta])

    def flatten_with_keys(node: object) -> tuple[Iterable[tuple[Any, Any]], tuple[Any, ...]]:
        children, metadata = flatten(node)
        return tuple(zip(keys, children, strict=True)), metadata

    def unflatten(metadata: tuple[object, ...], children: Iterable[object]) -> Any:
        return nodetype(**dict(zip(data, children, strict=True)), **dict(zip(meta, metadata, strict=True)))

    pytrees.register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def static(**kwargs: Any) -> Any:
    """Declare a field as `dataclasses.field` does, such that `register_dataclass` makes it metadata."""
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


def register_static(cls: T) -> T:
    """Register the decorated class as a node without leaves: its instances, hashable, are part of the structure."""
    pytrees.register_pytree_node(cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node))
    return cls


# -- functions on whole trees ----------------------------------------------------------------------------------


def tree_reduce(
    function: Callable[[Any, Any], object], tree: object, initializer: object = _MISSING, is_leaf: IsLeaf | None = None
) -> Any:
    """Reduce the leaves from left to right, as `functools.reduce` does."""
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, pytrees.tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(
    operation: Callable[[Any, Any], object], tree: object, *, identity: object = _MISSING, is_leaf: IsLeaf | None = None
) -> Any:
    """Reduce the leaves by an associative operation as a balanced tree, of depth log n.

    Raises:
        TypeError: the tree has no leaves and `identity` is missing.
    """
    values = pytrees.tree_leaves(tree, is_leaf)
    if not values and identity is _MISSING:
        raise TypeError("tree_reduce_associative of a tree without leaves needs an identity")
    if not values:
        return identity

    def reduced(lo: int, hi: int) -> Any:
        if hi - lo == 1:
            return values[lo]
        middle = (lo + hi) // 2
        return operation(reduced(lo, middle), reduced(middle, hi))

    return reduced(0, len(values))


def tree_all(tree: object, *, is_leaf: IsLeaf | None = None) -> bool:
    """Return True if all leaves are true."""
    return all(pytrees.tree_leaves(tree, is_leaf))


def tree_transpose(
    outer_treedef: pytrees.PyTreeDef, inner_treedef: pytrees.PyTreeDef | None, pytree_to_transpose: object
) -> Any:
    """Turn an outer tree of inner trees into an inner tree of outer trees.

    Args:
        outer_treedef: structure of the outer tree.
        inner_treedef: structure of the inner trees; None for that of the first.
        pytree_to_transpose: the tree, with inner trees in place of the leaves of the outer structure.

    Raises:
        TypeError: the tree is not composed of the two structures.
    """
    leaves, treedef = pytrees.tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = pytrees.tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    outer, inner = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(leaves) != outer * inner:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch: cannot transpose a tree of structure\n  {treedef}\nexpected\n  {expected}")
    return inner_treedef.unflatten(outer_treedef.unflatten(leaves[i::inner]) for i in range(inner))


def build_tree(treedef: pytrees.PyTreeDef, xs: object) -> Any:
    """Build a tree of structure `treedef` from `xs`, iterables that are nested as the nodes of the structure are.

    Raises:
        ValueError: an iterable in `xs` has another length than its node has children.
    """

    def leaves(part: pytrees.PyTreeDef, values: Any) -> Iterator[Any]:
        if pytrees.treedef_is_strict_leaf(part):
            yield values
            return
        for child, value in zip(part.children(), values or (), strict=True):
            yield from leaves(child, value)

    return treedef.unflatten(list(leaves(treedef, xs)))


def tree_broadcast(prefix_tree: object, full_tree: object, is_leaf: IsLeaf | None = None) -> Any:
    """Return a tree of the structure of `full_tree`, with the leaves of `prefix_tree` repeated for its subtrees.

    Raises:
        ValueError: `prefix_tree` is not a prefix of `full_tree`.
    """
    return pytrees.tree_structure(full_tree).unflatten(pytrees.broadcast_prefix(prefix_tree, full_tree, is_leaf))


def tree_leaves_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[pytrees.KeyPath, Any]]:
    """Return the `(path, leaf)` pairs of a tree; the arguments are as in `tree_flatten_with_path`."""
    return pytrees.tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def treedef_children(treedef: pytrees.PyTreeDef) -> list[pytrees.PyTreeDef]:
    """Return the structures of the root's children."""
    return treedef.children()


def treedef_is_leaf(treedef: pytrees.PyTreeDef) -> bool:
    """Return True if the structure is one node: a leaf or (as in JAX) an empty container."""
    return treedef.num_nodes == 1
