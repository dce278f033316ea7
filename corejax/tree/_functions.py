"""Map of trees, and comparisons of trees (prefixes, differences)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from corejax.tree._kinds import node_types
from corejax.tree._paths import KeyPath, flatten_one_level_with_keys, is_leaf_node, keystr, tree_flatten_with_path
from corejax.tree._treedef import IsLeaf, PyTreeDef, tree_flatten, tree_leaves, treedef_is_strict_leaf


def tree_map(f: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf | None = None) -> Any:
    """Apply a function to each leaf of a tree, and return the results as a tree of the same structure.

    Args:
        f: function of a leaf of `tree` and the subtree at the same place of each tree in `rest`.
        tree: the tree that determines the structure of the result.
        *rest: further trees, each with the structure of `tree` as a prefix.
        is_leaf: as in `tree_flatten`, for `tree`.

    Raises:
        ValueError: a tree of `rest` does not match; the message names the place.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])  # `map` would end early if `f` raised StopIteration
    others = [subtrees_like(treedef, tree, other, is_leaf, "tree.map: ") for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *others, strict=True)])


def tree_map_with_path(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply `f(path, leaf, *subtrees)` as `tree_map` does; the other arguments are as in `tree_flatten_with_path`."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    ends = None if is_leaf_takes_path else is_leaf
    others = [subtrees_like(treedef, tree, other, ends, "tree.map: ") for other in rest]
    paths, leaves = zip(*pairs, strict=True) if pairs else ((), ())
    return treedef.unflatten([f(*xs) for xs in zip(paths, leaves, *others, strict=True)])


# Comparisons of trees --------------------------------------------------------------------------------


class _Leaf:
    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


def _describe(tree: Any, is_leaf: bool) -> str:
    """Describe a node for a message: its type, and its length, keys or metadata."""
    kind = type(tree)
    if tree is None or tree is _LEAF:
        return "None" if tree is None else "a leaf"
    if is_leaf:
        return f"a leaf of type {kind.__qualname__}"
    if isinstance(tree, dict):
        return f"{kind.__name__} with keys {list(tree)}"
    if kind in node_types:
        return f"{kind.__qualname__} with metadata {flatten_one_level_with_keys(tree)[1]!r}"
    return f"{kind.__name__} of {len(tree)}"


def _differences(
    path: KeyPath, left: object, right: object, is_leaf: IsLeaf | None, prefix: bool
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the places at which two trees differ; if `prefix`, a leaf on the left matches any subtree."""

    def ends(tree: object) -> bool:
        return (is_leaf is not None and bool(is_leaf(tree))) or is_leaf_node(tree)

    if ends(left):
        if prefix or ends(right):
            return
    elif type(left) is type(right) and (prefix or not ends(right)):
        (left_children, left_data), (right_children, right_data) = map(flatten_one_level_with_keys, (left, right))
        if left_data == right_data and [key for key, _ in left_children] == [key for key, _ in right_children]:
            for (key, a), (_, b) in zip(left_children, right_children, strict=True):
                yield from _differences((*path, key), a, b, is_leaf, prefix)
            return
    yield path, f"{_describe(left, ends(left))} against {_describe(right, ends(right))}"


def _sentences(name: str, differences: Iterator[tuple[KeyPath, str]]) -> list[str]:
    return [f"at {name + keystr(path) or 'the root'}: {text}" for path, text in differences]


def prefix_errors(prefix_tree: object, full_tree: object, is_leaf: IsLeaf | None = None, name: str = "") -> list[str]:
    """Return a sentence for each place at which `prefix_tree` is not a prefix of `full_tree`.

    Example: `at ['a'][0]: tuple of 2 against tuple of 3`.

    Args:
        prefix_tree: the tree with leaves that stand for subtrees.
        full_tree: the tree that it should be a prefix of.
        is_leaf: as in `tree_flatten`, for `prefix_tree`.
        name: put before each path.
    """
    return _sentences(name, _differences((), prefix_tree, full_tree, is_leaf, prefix=True))


def equality_errors(tree1: object, tree2: object, is_leaf: IsLeaf | None = None, name: str = "") -> list[str]:
    """Return a sentence with the key path for each difference in the structures of two trees; none if they are equal.

    Args:
        tree1: a pytree, or a `PyTreeDef`.
        tree2: as `tree1`.
        is_leaf: as in `tree_flatten`.
        name: put before each path.
    """
    left, right = (skeleton(tree) if isinstance(tree, PyTreeDef) else tree for tree in (tree1, tree2))
    return _sentences(name, _differences((), left, right, is_leaf, prefix=False))


def skeleton(treedef: PyTreeDef) -> Any:
    """Return a tree of this structure with leaves that print as `*`."""
    return treedef.unflatten([_LEAF] * treedef.num_leaves)


def flatten_axes(name: str, treedef: PyTreeDef, axes_tree: object) -> list[Any]:
    """Return the leaves of a prefix tree such as vmap's `in_axes`, one for each leaf of `treedef`.

    Args:
        name: name of the prefix tree, for messages.
        treedef: structure of the value that the prefix tree applies to.
        axes_tree: the prefix tree. None is a leaf here.

    Raises:
        ValueError: it is not a prefix; the message shows both trees and the path of the first mismatch.
    """
    out: list[Any] = []
    if not _add_axes(axes_tree, treedef, out):
        raise ValueError(_axes_error(name, treedef, axes_tree))
    return out


def _add_axes(axes: object, treedef: PyTreeDef, out: list[Any]) -> bool:
    """Append the axis of each leaf of `treedef` to `out`; return False on a mismatch."""
    if axes is None or isinstance(axes, int):
        out.extend([axes] * treedef.num_leaves)
        return True
    if isinstance(axes, tuple | list) and treedef._spec.type is type(axes) in (tuple, list):
        parts = treedef.children()
        return len(axes) == len(parts) and all(
            _add_axes(axis, part, out) for axis, part in zip(axes, parts, strict=True)
        )
    # Flatten one level only: every node below the root counts as a leaf, and so does None.
    children, root = tree_flatten(axes, lambda node: node is not axes)
    if treedef_is_strict_leaf(root):
        out.extend([axes] * treedef.num_leaves)
        return True
    if treedef_is_strict_leaf(treedef) or root._spec != treedef._spec.one_level():
        return False
    return all(_add_axes(child, part, out) for child, part in zip(children, treedef.children(), strict=True))


def _axes_error(name: str, treedef: PyTreeDef, axes_tree: object) -> str:
    message = (
        f"{name} does not match the value it applies to; it must be a tree prefix of that value\n"
        f"  {name}: {axes_tree!r}\n"
        f"  value: {str(treedef).removeprefix('PyTreeDef(').removesuffix(')')}"
    )
    try:
        errors = prefix_errors(axes_tree, skeleton(treedef), lambda node: node is None, name)
    except Exception:  # a registered class that cannot be rebuilt with placeholders for its leaves
        errors = []
    return f"{message}\nThe first mismatch is {errors[0]}." if errors else message


def broadcast_prefix(prefix_tree: object, full_tree: object, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of `prefix_tree`, each repeated for every leaf of its subtree in `full_tree`.

    Raises:
        ValueError: `prefix_tree` is not a prefix of `full_tree`; the message names the place.
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    subtrees = subtrees_like(treedef, prefix_tree, full_tree, is_leaf)
    return [leaf for leaf, subtree in zip(leaves, subtrees, strict=True) for _ in tree_leaves(subtree)]


def subtrees_like(
    treedef: PyTreeDef, prefix_tree: object, full_tree: object, is_leaf: IsLeaf | None, caller: str = ""
) -> list[Any]:
    """Return the subtree of `full_tree` for each leaf of `prefix_tree`, which has the structure `treedef`.

    Raises:
        ValueError: `prefix_tree` is not a prefix; the message names the caller and the first difference.
    """
    try:
        return treedef.flatten_up_to(full_tree)
    except ValueError as error:
        errors = prefix_errors(prefix_tree, full_tree, is_leaf)
        text = f"tree structures do not match {errors[0]}" if errors else str(error)
        raise ValueError(caller + text) from None
