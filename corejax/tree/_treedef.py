"""Flattening: `tree -> (leaves, treedef)` and back, by optree.

`PyTreeDef` wraps optree's spec. Treedefs of built-in containers are interned: equal ones are the same object, so caches
keyed by them hash and compare in C. Treedefs with registered nodes are not interned, since this would exchange equal
metadata of different nodes (`1` for `True`, an object for another one that is equal to it).

As in JAX, and unlike in optree, unflattening returns dicts in the order of their sorted keys. Otherwise equal treedefs
could rebuild dicts in different orders, and a function cached by treedef would depend on which one it was traced with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from corejax.tree._kinds import NAMESPACE, leaf_types, node_types
from corejax.tree._optree import optree

IsLeaf = Callable[[Any], bool]


def _hash_of(spec: optree.PyTreeSpec) -> int:
    """Hash a spec with its metadata, which optree's hash ignores: changed metadata must not hit old cache entries."""
    contents: list[tuple[type, Any]] = []

    def collect(kind: type, data: object, children: object) -> None:
        if kind in node_types:
            contents.append((kind, data))

    spec.walk([None] * spec.num_leaves, collect, None)
    try:
        return hash((spec, *contents))
    except TypeError:
        return hash((spec, *[(kind, metadata_content(kind, data)) for kind, data in contents]))


def metadata_content(node: type, data: Any) -> Any:
    """Return a hashable value by which the metadata of a node are hashed.

    It is the metadata if they are hashable, else the present content of containers, dataclasses and one-element arrays,
    copied into tuples and frozensets.

    Raises:
        TypeError: the metadata contain an unhashable object of another type.
    """
    try:
        hash(data)
        return data
    except TypeError:
        pass
    if isinstance(data, list | tuple | deque):
        return tuple([metadata_content(node, x) for x in data])
    if isinstance(data, Mapping):  # includes mappingproxy, the read-only view of a dict
        return frozenset([(key, metadata_content(node, x)) for key, x in data.items()])
    if isinstance(data, set):
        return frozenset(data)
    if isinstance(data, slice):
        return tuple([metadata_content(node, x) for x in (data.start, data.stop, data.step)])
    if type(data) in leaf_types and data.size == 1:  # `==` of larger arrays has no truth value
        with contextlib.suppress(TypeError):  # a tracer has no value
            return data.item()
    if dataclasses.is_dataclass(data):
        return tuple([metadata_content(node, getattr(data, f.name)) for f in dataclasses.fields(data) if f.compare])
    raise TypeError(
        f"unhashable type: {type(data).__name__!r}, in the metadata of pytree node {node.__qualname__}, which are part "
        "of the cache keys of compiled programs. Make arrays children of the node, and give a class of your own "
        "__eq__ and __hash__, or make it a dataclass"
    )


class PyTreeDef:
    """The structure of a pytree, without its leaves. Immutable, hashable, comparable.

    The hash is computed once, so later changes of a registered node's metadata do not change it.

    Attributes:
        num_leaves: number of leaves.
        num_nodes: number of nodes, leaves included.
    """

    __module__ = "corejax.tree"
    __slots__ = ("__weakref__", "_hash", "_paths", "_spec", "num_leaves", "num_nodes")

    def __init__(self, spec: optree.PyTreeSpec) -> None:
        self._spec = spec
        self._hash: int | None = None
        self._paths: list[Any] | None = None  # key paths of the leaves; filled by `_paths_of`
        self.num_leaves: int = spec.num_leaves
        self.num_nodes: int = spec.num_nodes

    def unflatten(self, leaves: Iterable[object]) -> Any:
        """Return the tree with these leaves; raises ValueError if their number differs."""
        return self._spec.unflatten(leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of a tree, one for each leaf of this structure.

        Raises:
            ValueError: this structure is not a prefix of the tree's.
        """
        return self._spec.flatten_up_to(tree)

    def children(self) -> list[PyTreeDef]:
        """Return the structures of the root's children; an empty list for a leaf."""
        return [from_spec(child) for child in self._spec.children()]

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with every leaf replaced by `inner`."""
        return from_spec(self._spec.compose(inner._spec))

    def node_data(self) -> tuple[type, Any] | None:
        """Return `(type, metadata)` of the root; None for a leaf. The metadata of a dict are its keys."""
        if treedef_is_strict_leaf(self):
            return None
        root: Any = self._spec.one_level()
        data: tuple[type, Any] = root.walk([None] * root.num_leaves, lambda kind, data, _: (kind, data), None)
        return data

    def __repr__(self) -> str:
        text = repr(self._spec).removeprefix("PyTreeSpec(").removesuffix(")")
        text = text.removesuffix(f", namespace={NAMESPACE!r}").replace("CustomTreeNode(", "CustomNode(")
        return f"PyTreeDef({text})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_spec, (self._spec,))

    def __copy__(self) -> PyTreeDef:
        return self

    def __deepcopy__(self, memo: object) -> PyTreeDef:
        return self


class _CustomTreeDef(PyTreeDef):
    """A structure with registered nodes: not interned, compared by structure."""

    __slots__ = ()

    def unflatten(self, leaves: Iterable[object]) -> Any:
        """Return the tree with these leaves, dicts in the order of their sorted keys."""
        return self._spec.traverse(leaves, f_node=_with_sorted_keys)

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, PyTreeDef) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = _hash_of(self._spec)
        return self._hash


def sorted_keys(d: dict[Any, Any]) -> list[Any]:
    """Return the keys of a dict in the order in which its values are flattened."""
    try:
        return sorted(d)
    except TypeError:  # keys of types that do not compare
        return optree.utils.total_order_sorted(d)


def _with_sorted_keys(node: Any) -> Any:
    kind = type(node)
    if kind is not dict and kind is not defaultdict:
        return node
    keys = sorted_keys(node)
    if keys == list(node):
        return node
    items = {key: node[key] for key in keys}
    return items if kind is dict else defaultdict(node.default_factory, items)


# Interning ------------------------------------------------------------------------------------------

_spec_of: Callable[[Any], optree.PyTreeSpec] = optree.tree_structure
_interned: weakref.WeakValueDictionary[optree.PyTreeSpec, PyTreeDef] = weakref.WeakValueDictionary()
# Keeps recent treedefs alive, so that a loop that drops its treedefs does not rebuild them in each iteration.
_recent: deque[PyTreeDef] = deque(maxlen=512)
_lock = threading.RLock()


def _treedef(spec: optree.PyTreeSpec) -> PyTreeDef:
    """Return the treedef of a spec that flattening made; such a spec has a namespace iff it has registered nodes."""
    if spec.namespace:
        return _CustomTreeDef(spec)
    try:
        treedef = _interned.get(spec)
    except TypeError:  # a node of optree's global registry has unhashable metadata
        return _CustomTreeDef(spec)
    return _intern(spec) if treedef is None else treedef


def _intern(spec: optree.PyTreeSpec) -> PyTreeDef:
    ordered = PyTreeDef(_spec_of(spec.traverse([0] * spec.num_leaves, _with_sorted_keys)))
    with _lock:
        treedef = _interned.setdefault(ordered._spec, ordered)
    _recent.append(treedef)
    return treedef


def from_spec(spec: optree.PyTreeSpec) -> PyTreeDef:
    """Return the treedef of any spec; a part of another spec may have a namespace without registered nodes."""

    def has_registered(kind: type, data: object, children: Any) -> bool:
        return kind in node_types or any(children)

    if spec.namespace and not spec.walk([False] * spec.num_leaves, has_registered, None):
        spec = _spec_of(spec.unflatten([0] * spec.num_leaves))
    return _treedef(spec)


# Flattening -----------------------------------------------------------------------------------------

_are_leaf_types = leaf_types.issuperset
_leaf_def = _treedef(_spec_of(0))


@functools.lru_cache(256)
def _tuple_def(count: int) -> PyTreeDef:
    """Return the treedef of a tuple of leaves."""
    return _treedef(_spec_of((0,) * count))


@functools.lru_cache(256)
def _call_def(count: int) -> PyTreeDef:
    """Return the treedef of `(args, {})` with `count` leaves as arguments."""
    return _treedef(_spec_of(((0,) * count, {})))


_flatten = optree.tree_flatten


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Flatten a pytree into its leaves and its structure.

    Args:
        tree: nested tuples, lists, dicts (values in the order of sorted keys), OrderedDicts, defaultdicts,
            namedtuples, None (a node without leaves), and registered classes; anything else is a leaf.
        is_leaf: called on each node before its children are visited; if it returns True, the node is a leaf.

    Returns:
        The leaves, from left to right, and the treedef; `treedef.unflatten(leaves)` rebuilds the tree.
    """
    if is_leaf is None:
        # A fast path without optree: one leaf, a tuple of leaves, or `(args, {})`, the structure of most calls.
        kind = type(tree)
        if kind in leaf_types:
            return [tree], _leaf_def
        if kind is tuple:
            if _are_leaf_types(map(type, tree)):
                return list(tree), _tuple_def(len(tree))
            if len(tree) == 2:
                args, kwargs = tree
                if type(args) is tuple and type(kwargs) is dict and not kwargs and _are_leaf_types(map(type, args)):
                    return list(args), _call_def(len(args))
    leaves, spec = _flatten(tree, is_leaf, namespace=NAMESPACE)
    return leaves, _treedef(spec)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[object]) -> Any:
    """Build a tree from its structure and its leaves.

    Raises:
        TypeError: `treedef` is not a `PyTreeDef`.
        ValueError: the number of leaves differs from that of the treedef.
    """
    try:
        unflatten = treedef.unflatten
    except AttributeError:
        raise TypeError(
            f"tree.unflatten takes a PyTreeDef and then the leaves, got {treedef!r} of type {type(treedef).__name__}"
        ) from None
    return unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of a pytree, from left to right."""
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def tree_structure(tree: object, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """Return the structure of a pytree."""
    return tree_flatten(tree, is_leaf)[1]


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Return True if all elements are leaves."""
    return optree.all_leaves(iterable, is_leaf, namespace=NAMESPACE)


_BUILTIN_NODES = frozenset({tuple, list, dict, type(None), OrderedDict, defaultdict, deque})


def is_tree_node(typ: type) -> bool:
    """Return True if a class is built-in or registered as a node; False for namedtuples, nodes without registration."""
    return typ in _BUILTIN_NODES or typ in node_types


def is_registered_node(typ: type) -> bool:
    """Return True if a class is registered as a node; its flatten function, in Python, then runs for each node."""
    return typ in node_types


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees with these structures."""
    return _treedef(optree.treespec_tuple([t._spec for t in treedefs]))  # it takes the namespace of the parts


def treedef_is_strict_leaf(treedef: PyTreeDef) -> bool:
    """Return True if the structure is a leaf."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1
