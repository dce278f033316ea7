"""The structure of a pytree as JSON: written, read back without the classes, and held against another tree.

node = number of a leaf | null
     | ["dict", [[key, node], ...]] | ["list", [node, ...]] | ["tuple", [node, ...]]
     | ["Name of a class", [[key, node], ...]]
key  = text, number, true, false, null | {"tuple": [key, ...]} | {"repr": text}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import tree

_PLAIN = (str, int, float, bool, type(None))
_KEYS = (tree.DictKey, tree.SequenceKey, tree.GetAttrKey, tree.FlattenedIndexKey)
_SEQUENCES: dict[Any, str] = {list: "list", tuple: "tuple"}


def encode(value: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """A tree's structure, and its leaves with their paths as text; leaf number i of the structure is element i."""
    leaves: list[tuple[str, Any]] = []
    return _encode((), value, leaves), leaves


def _encode(path: tuple[Any, ...], value: Any, leaves: list[tuple[str, Any]]) -> Any:
    if value is None:
        return None
    if is_leaf(value):
        leaves.append((path_text(path), value))
        return len(leaves) - 1
    pairs = tree.flatten_one_level_with_keys(value)[0]
    nodes = [(key, _encode((*path, key), child, leaves)) for key, child in pairs]
    if type(value) in _SEQUENCES:
        return [_SEQUENCES[type(value)], [node for _, node in nodes]]
    name = "dict" if isinstance(value, dict) else type(value).__qualname__
    return [name, [[encoded_key(key), node] for key, node in nodes]]


def is_leaf(value: Any) -> bool:
    """Whether a value is a leaf of pytrees (None is not)."""
    if tree.is_tree_node(type(value)):
        return False
    return not isinstance(value, tuple) or tree.treedef_is_leaf(tree.tree_structure(value))  # namedtuples are nodes


def path_text(path: Sequence[Any]) -> str:
    """A path for messages and the index: `['layers'][0].w`; that of a tree that is a leaf is empty."""
    return tree.keystr(tuple(path))


def encoded_key(key: Any) -> Any:
    """What a key of a path holds, as JSON."""
    return _encoded(key.content if isinstance(key, _KEYS) else key)


def _encoded(value: Any) -> Any:
    if type(value) in _PLAIN and value == value:
        return value
    return {"tuple": [_encoded(x) for x in value]} if type(value) is tuple else {"repr": repr(value)}


def _decoded(key: Any) -> Any:
    if not isinstance(key, dict):
        return key
    return tuple(_decoded(x) for x in key["tuple"]) if "tuple" in key else key["repr"]


def _children(node: Any) -> list[tuple[Any, Any]]:
    """Encoded keys and nodes of an inner node."""
    if node is None:
        return []
    name, content = node
    return list(enumerate(content)) if name in ("list", "tuple") else [(key, child) for key, child in content]


def decode(node: Any, leaf: Callable[[int], Any]) -> Any:
    """The tree of a structure, of dicts, lists and tuples: nodes of classes are dicts, or lists if they name nothing.

    Args:
        node: the structure.
        leaf: gives the value of the leaf of a number; called in order.
    """
    if node is None:
        return None
    if type(node) is int:
        return leaf(node)
    name, _ = node
    children = [(_decoded(key), decode(child, leaf)) for key, child in _children(node)]
    if name == "tuple":
        return tuple(child for _, child in children)
    if name == "list" or (name != "dict" and children and all(type(key) is int for key, _ in children)):
        return [child for _, child in children]
    return dict(children)


def match(node: Any, like: Any, partial: bool) -> tuple[list[tuple[int, str, Any]], list[str]]:
    """A structure held against a tree, node by node, by the keys of their children.

    Args:
        node: the structure.
        like: the tree.
        partial: whether the tree may have less.

    Returns:
        Number, path and leaf for each leaf of the tree, in its order; and what differs, in words.
    """
    found: list[tuple[int, str, Any]] = []
    differences: list[str] = []
    _match((), node, like, partial, found, differences)
    return found, differences


def _match(
    path: tuple[Any, ...], node: Any, like: Any, partial: bool, found: list[Any], differences: list[str]
) -> None:
    where = path_text(path) or "the root"
    theirs_is_leaf = like is not None and is_leaf(like)
    if type(node) is int and theirs_is_leaf:
        found.append((node, path_text(path), like))
        return
    if type(node) is int or theirs_is_leaf:
        if not (partial and like is None):
            differences.append(
                f"at {where} the checkpoint has {_described(node)}, and like has {_described_like(like)}"
            )
        return
    ours = {json.dumps(key): (key, child) for key, child in _children(node)}
    theirs = [] if like is None else tree.flatten_one_level_with_keys(like)[0]
    by_key = {json.dumps(encoded_key(key)): key for key, _ in theirs}
    for text, (key, child) in ours.items():
        if text not in by_key and not partial:
            differences.append(
                f"at {where} the checkpoint has {_described(child)} under {_decoded(key)!r}, and like has none"
            )
    for key, child in theirs:
        text = json.dumps(encoded_key(key))
        if text in ours:
            _match((*path, key), ours[text][1], child, partial, found, differences)
        elif child is not None:
            differences.append(
                f"at {path_text((*path, key))} like has {_described_like(child)}, and the checkpoint has none"
            )


def _described(node: Any) -> str:
    if node is None:
        return "None"
    if type(node) is int:
        return "a leaf"
    name, content = node
    return f"a {name} of {len(content)}" if name in ("list", "tuple") else f"a {name} with {_keys(_children(node))}"


def _described_like(like: Any) -> str:
    if like is None:
        return "None"
    if is_leaf(like):
        return "a leaf"
    kind, pairs = type(like), tree.flatten_one_level_with_keys(like)[0]
    if kind in _SEQUENCES:
        return f"a {kind.__name__} of {len(like)}"
    return f"a {kind.__qualname__} with {_keys([(encoded_key(key), None) for key, _ in pairs])}"


def _keys(pairs: Sequence[tuple[Any, Any]]) -> str:
    shown = ", ".join(repr(_decoded(key)) for key, _ in pairs[:6])
    return f"{shown}{', ...' if len(pairs) > 6 else ''}" if pairs else "nothing in it"
