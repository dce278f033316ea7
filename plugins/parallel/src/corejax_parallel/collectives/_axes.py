"""Names of axes as users write them, groups of indices along an axis, and batches that are cut into groups."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, as_array, impl_rules, move_batch_axis, tree, vmap_rules
from corejax.extend.transforms import axis_size_of, batch_flat, unbound_axis
from corejax.extend.types import as_dim
from corejax_lax_basic import lax

__corejax_registers_for_caller__ = True  # a collective's provenance is its own line

Groups = tuple[tuple[int, ...], ...] | None


def names_of(what: str, axis_name: Any) -> tuple[Any, ...]:
    """The names, each of which is bound.

    Args:
        what: the function, for messages.
        axis_name: a name, or a tuple or list of names.

    Raises:
        NameError: a name is not bound.
        ValueError: a name is there twice.
    """
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for name in names:
        axis_size_of(name, what)
    if len(set(names)) != len(names):
        raise ValueError(f"{what}: each name is given once, got {names}")
    return names


def size_of(names: Sequence[Any]) -> int:
    """Number of elements along the axes together."""
    return math.prod(axis_size_of(name) for name in names)


def groups_of(what: str, axis_index_groups: Any, names: Sequence[Any]) -> Groups:
    """Groups of indices of one axis as tuples.

    Raises:
        TypeError: they are no sequences of integers.
        ValueError: they do not have each index once, are not of one size, or there are several axes.
    """
    if axis_index_groups is None:
        return None
    if len(names) != 1:
        raise ValueError(f"{what}: axis_index_groups are of one axis, got them with the axes {tuple(names)}")
    try:
        groups = tuple([tuple([as_dim(i) for i in group]) for group in axis_index_groups])
    except TypeError:
        raise TypeError(
            f"{what}: axis_index_groups is a sequence of sequences of integers, got {axis_index_groups!r}"
        ) from None
    size = axis_size_of(names[0])
    if sorted(i for group in groups for i in group) != list(range(size)):
        raise ValueError(
            f"{what}: axis_index_groups has each index of the axis {names[0]!r}, 0 to {size - 1}, once, got "
            f"{[list(group) for group in groups]}"
        )
    if len({len(group) for group in groups}) != 1:
        sizes = [len(group) for group in groups]
        raise ValueError(f"{what}: the groups of axis_index_groups have one size, got sizes {sizes}")
    return groups


def on_leaves(what: str, operate: Callable[[Any], Any], x: Any) -> Any:
    """`operate` on each array of a pytree.

    Raises:
        TypeError: a leaf is no array.
    """

    def on_leaf(leaf: Any) -> Any:
        try:
            return operate(as_array(leaf))
        except TypeError as error:
            if getattr(leaf, "dtype", None) is not None or isinstance(leaf, bool | int | float | complex):
                raise
            raise TypeError(f"{what}: x is a pytree of arrays, got a leaf {leaf!r}: {error}") from None

    return tree.tree_map(on_leaf, x)


def axis_of(what: str, argument: str, axis: Any, ndim: int) -> int:
    """An axis of an array, negative ones counted from the end.

    Raises:
        ValueError: there is no such axis.
    """
    found = as_dim(axis)
    if not -ndim <= found < ndim:
        raise ValueError(f"{what}: {argument}={axis} is no axis of an array of {ndim} dimensions")
    return found % ndim


def define(name: str, type_rule: Callable[..., ShapedArray]) -> Primitive:
    """A primitive along named axes that are bound wherever it is evaluated, or it is an error."""
    primitive = Primitive(name, abstract_eval=type_rule, tags=("collective",))

    @impl_rules.register(primitive)
    def _unbound(*operands: Any, axis_name: Any, **params: Any) -> Any:
        first = axis_name[0] if isinstance(axis_name, tuple) and axis_name else axis_name
        raise unbound_axis(first, name, ())

    return primitive


def elementwise_along_others(primitive: Primitive) -> None:
    """Batched along another axis, it is the same."""

    @vmap_rules.register(primitive)
    def _batched(axis_size: int, vals: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return primitive.bind(*vals, **params), next(iter(dims), None)


Stacked = Callable[[Any], Any]
"""A collective as a function of what all elements have: the first axis of operand and result is the named one."""


def collective(stacked: Callable[..., Any]) -> Callable[..., tuple[Any, int]]:
    """The collective rule of a primitive of one operand over one axis, from what it does to all elements together.

    Args:
        stacked: `(x, **params) -> out`; the first axis of `x` and of `out` is the named one.
    """

    def rule(name: Any, axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        x = move_batch_axis(axis_size, dims[0], 0, vals[0])
        groups = params.pop("axis_index_groups", None)
        del params["axis_name"]
        return by_groups(functools.partial(stacked, **params), groups, x), 0

    return rule


def by_groups(stacked: Stacked, groups: Groups, x: Any) -> Any:
    """`stacked` within each group of elements."""
    if groups is None:
        return stacked(x)
    order = np.asarray([i for group in groups for i in group])
    shape = x.shape[1:]
    parts = lax.reshape(take(x, order), (len(groups), len(groups[0]), *shape))
    (out,), (dim,) = batch_flat(lambda part: [stacked(part)], len(groups), [parts], [0], axis_name=None)
    out = move_batch_axis(len(groups), dim, 0, out)
    return take(lax.reshape(out, (order.size, *out.shape[2:])), np.argsort(order))


def take(x: Any, order: np.ndarray) -> Any:
    """Elements of the first axis in an order that is known."""
    if np.array_equal(order, np.arange(x.shape[0])):
        return x
    parts = [lax.slice_in_dim(x, int(i), int(i) + 1) for i in order]
    return lax.concatenate(parts, 0) if parts else x


def shape_with(aval: ShapedArray, axis: int, size: int | None) -> ShapedArray:
    """The type with another size of one axis, or without the axis (None)."""
    shape = list(aval.shape)
    shape[axis : axis + 1] = [] if size is None else [size]
    return aval.update(shape=tuple(shape))
