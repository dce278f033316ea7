"""Functions on whole trees: map, reduce, transpose; trees against trees: prefixes, and what differs where."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from corejax.tree._paths import KeyPath, flatten_one_level_with_keys, is_leaf_node, keystr, tree_flatten_with_path
from corejax.tree._treedef import (
    IsLeaf,
    PyTreeDef,
    registered,
    tree_flatten,
    tree_leaves,
    tree_structure,
    treedef_is_strict_leaf,
)

_MISSING = object()


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The tree of `f(leaf, *others)`; the others are what `rest` has in the leaf's place (a subtree).

    Args:
        f: function of one argument for each tree.
        tree: the tree whose structure counts.
        *rest: trees of which its structure is a prefix.
        is_leaf: as in `tree_flatten`, for `tree`.

    Raises:
        ValueError: a tree of `rest` does not match; the message says where.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])  # of `map` a StopIteration of `f` would be the end
    others = [subtrees_like(treedef, tree, other, is_leaf, "tree.map: ") for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *others, strict=True)])


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """`tree_map` of `f(path, leaf, *others)`; arguments as in `tree_flatten_with_path`."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    ends = None if is_leaf_takes_path else is_leaf
    others = [subtrees_like(treedef, tree, other, ends, "tree.map: ") for other in rest]
    paths, leaves = zip(*pairs, strict=True) if pairs else ((), ())
    return treedef.unflatten([f(*xs) for xs in zip(paths, leaves, *others, strict=True)])


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf | None = None
) -> Any:
    """`functools.reduce` over the leaves."""
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _MISSING, is_leaf: IsLeaf | None = None
) -> Any:
    """Reduction of the leaves by an associative operation, as a balanced tree: depth log n.

    Raises:
        TypeError: there are no leaves, and no identity is given.
    """
    values = tree_leaves(tree, is_leaf)
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


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of structure `outer` of trees of structure `inner` turned inside out.

    Args:
        outer_treedef: structure of the outer tree.
        inner_treedef: structure of each of its leaves; None to take that of the first.
        pytree_to_transpose: the tree.

    Raises:
        TypeError: the tree is not so composed.
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    outer, inner = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(leaves) != outer * inner:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch: cannot transpose a tree of structure\n  {treedef}\nexpected\n  {expected}")
    return inner_treedef.unflatten(outer_treedef.unflatten(leaves[i::inner]) for i in range(inner))


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of structure `treedef` with the leaves of `xs`: iterables nested as the nodes are.

    Raises:
        ValueError: `xs` has another number of elements somewhere.
    """

    def leaves(part: PyTreeDef, values: Any) -> Iterator[Any]:
        if treedef_is_strict_leaf(part):
            yield values
            return
        for child, value in zip(part.children(), values or (), strict=True):
            yield from leaves(child, value)

    return treedef.unflatten(list(leaves(treedef, xs)))


# Trees against trees ---------------------------------------------------------------------------------


class _Leaf:
    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


def _describe(tree: Any, is_leaf: bool) -> str:
    """Return a node in words."""
    kind = type(tree)
    if tree is None or tree is _LEAF:
        return "None" if tree is None else "a leaf"
    if is_leaf:
        return f"a leaf of type {kind.__qualname__}"
    if isinstance(tree, dict):
        return f"{kind.__name__} with keys {list(tree)}"
    if kind in registered:
        return f"{kind.__qualname__} with metadata {flatten_one_level_with_keys(tree)[1]!r}"
    return f"{kind.__name__} of {len(tree)}"


def _differences(
    path: KeyPath, left: Any, right: Any, is_leaf: IsLeaf | None, prefix: bool
) -> Iterator[tuple[KeyPath, str]]:
    """Yield where two trees differ; with `prefix`, a leaf on the left stands for any subtree."""

    def ends(tree: Any) -> bool:
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


def _sentences(name: str, found: Iterator[tuple[KeyPath, str]]) -> list[str]:
    return [f"at {name + keystr(path) or 'the root'}: {text}" for path, text in found]


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None, name: str = "") -> list[str]:
    """Return why `prefix_tree` is no prefix of `full_tree`: a sentence for each place where they differ.

    One reads `at ['a'][0]: tuple of 2 against tuple of 3`.

    Args:
        prefix_tree: the tree whose leaves stand for subtrees.
        full_tree: the tree that it should be a prefix of.
        is_leaf: as in `tree_flatten`, for `prefix_tree`.
        name: put before each path.
    """
    return _sentences(name, _differences((), prefix_tree, full_tree, is_leaf, prefix=True))


def equality_errors(tree1: Any, tree2: Any, is_leaf: IsLeaf | None = None, name: str = "") -> list[str]:
    """Where the structures of two trees differ: sentences with key paths, empty if they are equal.

    Args:
        tree1: a pytree, or a `PyTreeDef`.
        tree2: as `tree1`.
        is_leaf: as in `tree_flatten`.
        name: put before each path.
    """
    left, right = (skeleton(tree) if isinstance(tree, PyTreeDef) else tree for tree in (tree1, tree2))
    return _sentences(name, _differences((), left, right, is_leaf, prefix=False))


def skeleton(treedef: PyTreeDef) -> Any:
    """A tree of this structure whose leaves print as `*`."""
    return treedef.unflatten([_LEAF] * treedef.num_leaves)


def flatten_axes(name: str, treedef: PyTreeDef, axes_tree: Any) -> list[Any]:
    """Leaves of a prefix tree such as vmap's `in_axes`, repeated for each leaf of `treedef`.

    Args:
        name: what the prefix tree is called, for messages.
        treedef: structure of the value that it applies to.
        axes_tree: a prefix of it. None is a leaf here.

    Raises:
        ValueError: it is no prefix; the message shows both and the path of the first mismatch.
    """
    out: list[Any] = []
    if not _add_axes(axes_tree, treedef, out):
        raise ValueError(_axes_error(name, treedef, axes_tree))
    return out


def _add_axes(axes: Any, treedef: PyTreeDef, out: list[Any]) -> bool:
    """Append the axis of each leaf of `treedef`; False on a mismatch."""
    if axes is None or isinstance(axes, int):
        out.extend([axes] * treedef.num_leaves)
        return True
    if isinstance(axes, tuple | list) and treedef._spec.type is type(axes) in (tuple, list):
        parts = treedef.children()
        return len(axes) == len(parts) and all(
            _add_axes(axis, part, out) for axis, part in zip(axes, parts, strict=True)
        )
    # One level only: everything but the root is a leaf, None too.
    children, root = tree_flatten(axes, lambda node: node is not axes)
    if treedef_is_strict_leaf(root):
        out.extend([axes] * treedef.num_leaves)
        return True
    if treedef_is_strict_leaf(treedef) or root._spec != treedef._spec.one_level():
        return False
    return all(_add_axes(child, part, out) for child, part in zip(children, treedef.children(), strict=True))


def _axes_error(name: str, treedef: PyTreeDef, axes_tree: Any) -> str:
    message = (
        f"{name} does not match the value it applies to, of which it must be a tree prefix\n"
        f"  {name}: {axes_tree!r}\n"
        f"  value: {str(treedef).removeprefix('PyTreeDef(').removesuffix(')')}"
    )
    try:
        errors = prefix_errors(axes_tree, skeleton(treedef), lambda node: node is None, name)
    except Exception:  # a registered class that cannot be rebuilt with placeholders for its leaves
        errors = []
    return f"{message}\nThe first mismatch is {errors[0]}." if errors else message


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Leaves of `prefix_tree`, each repeated for the leaves of the subtree of `full_tree` that it stands for.

    Raises:
        ValueError: `prefix_tree` is no prefix of `full_tree`; the message says where.
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    subtrees = subtrees_like(treedef, prefix_tree, full_tree, is_leaf)
    return [leaf for leaf, subtree in zip(leaves, subtrees, strict=True) for _ in tree_leaves(subtree)]


def subtrees_like(
    treedef: PyTreeDef, prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None, caller: str = ""
) -> list[Any]:
    """Return the subtree of `full_tree` for each leaf of `prefix_tree`, whose structure is `treedef`.

    Raises:
        ValueError: `prefix_tree` is no prefix; names the caller, and the first place that differs.
    """
    try:
        return treedef.flatten_up_to(full_tree)
    except ValueError as error:
        found = prefix_errors(prefix_tree, full_tree, is_leaf)
        text = f"tree structures do not match {found[0]}" if found else str(error)
        raise ValueError(caller + text) from None


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The leaves of `prefix_tree`, repeated where one stands for several, in the structure of `full_tree`.

    Raises:
        ValueError: `prefix_tree` is no prefix of `full_tree`.
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))
