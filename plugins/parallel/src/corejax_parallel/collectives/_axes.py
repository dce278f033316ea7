"""Arguments of collectives: names of axes, groups of indices along an axis, and helpers to define their rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, as_array, get_aval, impl_rules, move_batch_axis, tree, vmap_rules
from corejax.extend.transforms import axis_size_of, batch_flat, unbound_axis
from corejax.extend.types import ValueType, as_dim
from corejax_lax_basic import lax

__corejax_registers_for_caller__ = True  # the provenance of a rule is the line that calls a helper here

Groups = tuple[tuple[int, ...], ...] | None


def names_of(what: str, axis_name: Any) -> tuple[Any, ...]:
    """Return the names of bound axes as a tuple.

    Args:
        what: name of the function, for messages.
        axis_name: a name, or a tuple or list of names.

    Raises:
        NameError: a name is not bound.
        ValueError: a name occurs twice.
    """
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for name in names:
        axis_size_of(name, what)
    if len(set(names)) != len(names):
        raise ValueError(f"{what}: each name must be given once, got {names}")
    return names


def size_of(names: Sequence[Any]) -> int:
    """Return the product of the sizes of the axes."""
    return math.prod(axis_size_of(name) for name in names)


def groups_of(what: str, axis_index_groups: Any, names: Sequence[Any]) -> Groups:
    """Return groups of indices of a single axis as tuples.

    Raises:
        TypeError: the groups are not sequences of integers.
        ValueError: an index is missing or occurs twice, groups differ in size, or there are several axes.
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
    """Apply `operate` to each array of a pytree.

    Raises:
        TypeError: a leaf is not an array; values of a value type have to be passed as the arrays that store them.
    """

    def on_leaf(leaf: Any) -> Any:
        try:
            array = as_array(leaf)
            if isinstance(aval := get_aval(array), ValueType):
                raise TypeError(
                    f"{what} takes arrays, and x has a leaf of type {aval.str_short()}: apply it to the arrays that "
                    "store the value (corejax.lax.unpack), and make a value of the results (corejax.lax.pack)"
                )
            return operate(array)
        except TypeError as error:
            if getattr(leaf, "dtype", None) is not None or isinstance(leaf, bool | int | float | complex):
                raise
            raise TypeError(f"{what}: x is a pytree of arrays, got a leaf {leaf!r}: {error}") from None

    return tree.tree_map(on_leaf, x)


def axis_of(what: str, argument: str, axis: Any, ndim: int) -> int:
    """Return an axis as a nonnegative integer; negative axes count from the end.

    Raises:
        ValueError: the array does not have the axis.
    """
    number: int = as_dim(axis)
    if not -ndim <= number < ndim:
        raise ValueError(f"{what}: {argument}={axis} is no axis of an array of {ndim} dimensions")
    return number % ndim


def define(name: str, type_rule: Callable[..., ShapedArray]) -> Primitive:
    """Define a primitive along named axes; evaluating it without bound axes raises NameError."""
    primitive = Primitive(name, abstract_eval=type_rule, tags=("collective",))

    @impl_rules.register(primitive)
    def _unbound(*operands: Any, axis_name: Any, **params: Any) -> Any:
        first = axis_name[0] if isinstance(axis_name, tuple) and axis_name else axis_name
        raise unbound_axis(first, name, ())

    return primitive


def elementwise_along_others(primitive: Primitive) -> None:
    """Register a vmap rule that binds the primitive to the batches: other axes do not change it."""

    @vmap_rules.register(primitive)
    def _batched(axis_size: int, vals: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return primitive.bind(*vals, **params), next(iter(dims), None)


Stacked = Callable[[Any], Any]
"""A collective as a function of the stacked values of all elements: the first axis of operand and result is the named
axis."""


def collective(stacked: Callable[..., Any]) -> Callable[..., tuple[Any, int]]:
    """Return the collective rule of a primitive with one operand and one axis.

    Args:
        stacked: `(x, **params) -> out`, the collective on stacked values: the first axis of `x` and `out` is the named
            axis.
    """

    def rule(name: Any, axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        x = move_batch_axis(axis_size, dims[0], 0, vals[0])
        groups = params.pop("axis_index_groups", None)
        del params["axis_name"]
        return by_groups(functools.partial(stacked, **params), groups, x), 0

    return rule


def by_groups(stacked: Stacked, groups: Groups, x: Any) -> Any:
    """Apply a collective on stacked values within each group of elements."""
    if groups is None:
        return stacked(x)
    order = np.asarray([i for group in groups for i in group])
    shape = x.shape[1:]
    parts = lax.reshape(take(x, order), (len(groups), len(groups[0]), *shape))
    (out,), (dim,) = batch_flat(lambda part: [stacked(part)], len(groups), [parts], [0], axis_name=None)
    out = move_batch_axis(len(groups), dim, 0, out)
    return take(lax.reshape(out, (order.size, *out.shape[2:])), np.argsort(order))


def take(x: Any, order: np.ndarray[Any, Any]) -> Any:
    """Reorder the first axis by a constant permutation."""
    if np.array_equal(order, np.arange(x.shape[0])):
        return x
    parts = [lax.slice_in_dim(x, int(i), int(i) + 1) for i in order]
    return lax.concatenate(parts, 0) if parts else x


def shape_with(aval: ShapedArray, axis: int, size: int | None) -> ShapedArray:
    """Return the type with another size of an axis, or without the axis for None."""
    shape = list(aval.shape)
    shape[axis : axis + 1] = [] if size is None else [size]
    return aval.update(shape=tuple(shape))
