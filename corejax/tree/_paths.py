"""Key paths, which tell the place of a leaf in a tree."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, ClassVar

from corejax.tree._kinds import NAMESPACE, node_types
from corejax.tree._optree import optree
from corejax.tree._treedef import PyTreeDef, sorted_keys, tree_flatten, tree_structure, tree_unflatten


class _Key:
    """An immutable key with one attribute. Dataclasses would double the import time of `corejax.tree`."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str]]
    _text: ClassVar[str] = "[{!r}]"

    def __init__(self, content: object) -> None:
        object.__setattr__(self, self.__match_args__[0], content)

    @property
    def content(self) -> Any:
        """The value of the one attribute."""
        return getattr(self, self.__match_args__[0])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return self.content == other.content if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.content))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.content,))

    def __str__(self) -> str:
        return self._text.format(self.content)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self.content!r})"


class SequenceKey(_Key):
    """Element `idx` of a tuple or list."""

    __slots__ = __match_args__ = ("idx",)

    def __init__(self, idx: int) -> None:
        super().__init__(idx)


class DictKey(_Key):
    """The value of `key` in a dict."""

    __slots__ = __match_args__ = ("key",)

    def __init__(self, key: object) -> None:
        super().__init__(key)


class GetAttrKey(_Key):
    """Attribute `name`."""

    __slots__ = __match_args__ = ("name",)
    _text = ".{}"

    def __init__(self, name: str) -> None:
        super().__init__(name)


class FlattenedIndexKey(_Key):
    """Child number `key` of a node of a registered class without keys."""

    __slots__ = __match_args__ = ("key",)
    _text = "[<flat index {}>]"

    def __init__(self, key: int) -> None:
        super().__init__(key)


for _class in (SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey):
    _class.__module__ = "corejax.tree"

KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def _simple(key: KeyEntry) -> str:
    return str(key.content if isinstance(key, _Key) else key)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Return the text of a key path: `['a'][0].x`, or `a/0/x` with `simple=True, separator='/'`."""
    return separator.join(map(_simple if simple else str, keys))


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """Return the children and the metadata of a node.

    Raises:
        ValueError: `tree` is a leaf.
    """
    entry = node_types.get(type(tree))
    if entry is not None:
        children, metadata = entry.flatten(tree)
        return list(children), metadata
    if is_leaf_node(tree):
        raise ValueError(f"cannot flatten {tree!r}: instances of {type(tree).__qualname__} are leaves")
    children, metadata, *_ = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return list(children), metadata


def unflatten_one_level(kind: type, metadata: object, children: Iterable[object]) -> Any:
    """Build a node of a registered class from its metadata and children.

    Raises:
        ValueError: the class is not registered.
    """
    entry = node_types.get(kind)
    if entry is None:
        raise ValueError(f"cannot unflatten {kind.__qualname__}: it is not registered as a pytree node")
    return entry.unflatten(metadata, children)


def flatten_one_level_with_keys(tree: object) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """Return the `(key, child)` pairs and the metadata of a node.

    Raises:
        ValueError: `tree` is a leaf.
    """
    entry = node_types.get(type(tree))
    if entry is not None and entry.flatten_with_keys is not None:
        pairs, metadata = entry.flatten_with_keys(tree)
        return list(pairs), metadata
    children, metadata = flatten_one_level(tree)
    return list(zip(_keys(tree, len(children)), children, strict=True)), metadata


def is_leaf_node(tree: Any) -> bool:
    """Return True if `tree` is a leaf (None is not)."""
    return optree.tree_is_leaf(tree, namespace=NAMESPACE)


def _keys(node: Any, count: int) -> Iterable[KeyEntry]:
    """Return the keys of the children of a node without a `flatten_with_keys` function."""
    kind = type(node)
    if kind is dict or kind is defaultdict:
        return map(DictKey, sorted_keys(node))
    if kind is OrderedDict:
        return map(DictKey, node)
    if kind is tuple or kind is list or kind is deque:
        return map(SequenceKey, range(count))
    if kind not in node_types and optree.is_namedtuple(node):
        return map(GetAttrKey, node._fields)
    if kind not in node_types and optree.is_structseq(node):
        return map(GetAttrKey, optree.structseq_fields(node))
    return map(FlattenedIndexKey, range(count))


def _visit(
    tree: object, path: KeyPath, is_leaf: Callable[[KeyPath, Any], bool] | None, decisions: list[bool]
) -> Iterator[tuple[KeyPath, Any]]:
    """Yield leaves with their paths; append each result of `is_leaf` to `decisions`, in the order of the visits."""
    if is_leaf is not None:
        decisions.append(bool(is_leaf(path, tree)))
    if (is_leaf is not None and decisions[-1]) or is_leaf_node(tree):
        yield path, tree
        return
    for key, child in flatten_one_level_with_keys(tree)[0]:
        yield from _visit(child, (*path, key), is_leaf, decisions)


def _paths_of(tree: object, treedef: PyTreeDef) -> list[KeyPath]:
    """Return the paths of a tree's leaves. They are cached in its treedef if the structure determines them."""
    if treedef._paths is not None:
        return treedef._paths
    paths = [path for path, _ in _visit(tree, (), None, [])]
    # Registered nodes may choose keys freely. A treedef does not distinguish the keys `1` and `True` of a dict.
    is_fixed = all(type(key) is not DictKey or type(key.content) is str for key in chain(*paths))
    if is_fixed and type(treedef) is PyTreeDef:
        treedef._paths = paths
    return paths


def tree_flatten_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return the `(path, leaf)` pairs and the structure of a tree.

    Args:
        tree: a pytree.
        is_leaf: as in `tree_flatten`; `(path, node) -> bool` if `is_leaf_takes_path`.
        is_leaf_takes_path: whether `is_leaf` is called with the path and the node.
    """
    if is_leaf is None:
        leaves, treedef = tree_flatten(tree)
        return list(zip(_paths_of(tree, treedef), leaves, strict=True)), treedef
    predicate = is_leaf if is_leaf_takes_path else lambda path, node: is_leaf(node)
    decisions: list[bool] = []
    pairs = list(_visit(tree, (), predicate, decisions))
    # Flattening visits the same nodes in the same order, so `is_leaf` need not be called again.
    decided = iter(decisions)
    return pairs, tree_structure(tree, lambda node: next(decided))


def leaf_names(treedef: PyTreeDef, base: str = "") -> list[str]:
    """Return the key path of each leaf for messages, `[0]['w']`; leaf numbers if a node's class accepts only arrays."""
    try:
        numbered = tree_unflatten(treedef, range(treedef.num_leaves))
        return [base + keystr(path) for path, _ in tree_flatten_with_path(numbered)[0]]
    except Exception:  # raised by the user's class
        return [base + keystr((FlattenedIndexKey(i),)) for i in range(treedef.num_leaves)]
