"""Functions on whole trees: map, reduce, transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from corejax.tree._paths import tree_flatten_with_path
from corejax.tree._prefix import subtrees_like
from corejax.tree._treedef import (
    IsLeaf,
    PyTreeDef,
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
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: IsLeaf | None = None,
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
