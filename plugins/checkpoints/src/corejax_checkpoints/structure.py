"""The structure of a pytree as JSON: encode it, decode it without the classes, and compare it with another tree.

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
    """Return a tree's structure, and its leaves with their paths as text; the structure has the leaves' indices."""
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
    """Return whether a value is a leaf of a pytree (None is not)."""
    if tree.is_tree_node(type(value)):
        return False
    # Named tuples are nodes without being registered.
    return not isinstance(value, tuple) or tree.treedef_is_leaf(tree.tree_structure(value))


def path_text(path: Sequence[Any]) -> str:
    """Return a path as text, such as `['layers'][0].w`; empty if the tree is a single leaf."""
    return tree.keystr(tuple(path))


def encoded_key(key: Any) -> Any:
    """Return the content of a path's key as JSON."""
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
    """Return the encoded keys and the child nodes of an inner node."""
    if node is None:
        return []
    name, content = node
    return list(enumerate(content)) if name in ("list", "tuple") else [(key, child) for key, child in content]


def decode(node: Any, leaf: Callable[[int], Any]) -> Any:
    """Return the tree of a structure, made of dicts, lists and tuples.

    Nodes of other classes become dicts, or lists if their keys are integers.

    Args:
        node: the structure.
        leaf: function from the index of a leaf to its value; called in order.
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
    """Compare a structure with a tree, node by node, by the keys of their children.

    Args:
        node: the structure.
        like: the tree.
        partial: whether the tree may lack leaves of the structure.

    Returns:
        The index, path and leaf for each leaf of the tree, in order; and descriptions of the differences.
    """
    matches: list[tuple[int, str, Any]] = []
    differences: list[str] = []
    _match((), node, like, partial, matches, differences)
    return matches, differences


def _match(
    path: tuple[Any, ...], node: Any, like: Any, partial: bool, matches: list[Any], differences: list[str]
) -> None:
    place = path_text(path) or "the root"
    like_is_leaf = like is not None and is_leaf(like)
    if type(node) is int and like_is_leaf:
        matches.append((node, path_text(path), like))
        return
    if type(node) is int or like_is_leaf:
        if not (partial and like is None):
            differences.append(
                f"at {place} the checkpoint has {_described(node)}, but like has {_described_like(like)}"
            )
        return
    saved = {json.dumps(key): (key, child) for key, child in _children(node)}
    pairs = [] if like is None else tree.flatten_one_level_with_keys(like)[0]
    by_key = {json.dumps(encoded_key(key)): key for key, _ in pairs}
    for text, (key, child) in saved.items():
        if text not in by_key and not partial:
            differences.append(
                f"at {place} the checkpoint has {_described(child)} under {_decoded(key)!r}, but like has none"
            )
    for key, child in pairs:
        text = json.dumps(encoded_key(key))
        if text in saved:
            _match((*path, key), saved[text][1], child, partial, matches, differences)
        elif child is not None:
            differences.append(
                f"at {path_text((*path, key))} like has {_described_like(child)}, but the checkpoint has none"
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
