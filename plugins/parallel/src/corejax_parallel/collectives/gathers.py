"""`all_gather` and `psum_scatter`, which are transposes of each other, and `all_to_all`, which is its own transpose.

For a named axis of size n, and the axis k of the operand (written first here):

    all_gather : a[s] -> a[n, *s], the named axis at k            tiled: a[m, *s] -> a[n*m, *s]
    all_gather_invariant : the same, with a type that marks the result as the same for all elements
    reduce_scatter : a[n, *s] -> a[s], a part of the sum          tiled: a[n*m, *s] -> a[m, *s]
    all_to_all : a[n, *s] -> a[n, *s], entry i along axis k goes to element i, where it is the entry of its source
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, deflinear, dtypes, find_primitive, vmap_rules
from corejax.extend.transforms import axis_size_of, collective_rules
from corejax.extend.types import as_dim
from corejax_lax_basic import lax
from corejax_parallel.collectives._axes import (
    Groups,
    axis_of,
    collective,
    define,
    groups_of,
    names_of,
    on_leaves,
    shape_with,
    size_of,
)
from corejax_parallel.types.refinement import with_vma
from corejax_parallel.types.vma import manual_axes, vary


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """Gather the values of all elements along named axes, for each element.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        axis_index_groups: groups of indices of the axis; values are gathered within each group.
        axis: position of the named axis in the result.
        tiled: whether to concatenate the values along `axis` instead of stacking them.
        to: "varying" or "invarying". With "invarying", the type of the result marks it as the same for all elements, if
            types track that (`shard_map` with `check_vma=True`). Its cotangent is then also the same for all elements,
            and each element takes its part.

    Returns:
        A pytree of arrays with an additional axis, or with a longer axis if `tiled` is set.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array.
        ValueError: the groups or the axis do not fit, or `to` is unknown.
    """
    names = names_of("all_gather", axis_name)
    groups = groups_of("all_gather", axis_index_groups, names)
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f'all_gather: to must be "varying" or "invarying", got {to!r}')

    def one(leaf: Any) -> Any:
        at = axis_of("all_gather", "axis", axis, leaf.ndim + (not tiled))
        if not names and not tiled:
            return lax.expand_dims(leaf, (at,))
        leaf = vary(leaf, names)
        for i, name in enumerate(reversed(names)):
            to_one = to == "invarying" and groups is None and manual_axes(name) is not None
            leaf = _along(all_gather_invariant_p if to_one else all_gather_p, leaf, name, groups, at, tiled or i > 0)
        return leaf

    return on_leaves("all_gather", one, x)


def _along(primitive: Primitive, x: Any, name: Any, groups: Groups, axis: int, tiled: bool) -> Any:
    return primitive.bind(x, axis_name=name, axis_index_groups=groups, axis=axis, size=_size(name, groups), tiled=tiled)


def _size(name: Any, groups: Groups) -> int:
    return axis_size_of(name) if groups is None else len(groups[0])


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sum along named axes, and give each element its part of the sum: `all_gather(psum_scatter(x))` is `psum(x)`.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        scatter_dimension: the axis of the operand that is divided among the elements. Its length equals the size of the
            named axis, and it is removed.
        axis_index_groups: groups of indices of the axis; values are summed and divided within each group.
        tiled: whether to keep `scatter_dimension`; its length is a multiple of the named axis's size, and is divided by
            the size.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array.
        ValueError: the groups, the axis or its length do not fit.
    """
    names = names_of("psum_scatter", axis_name)
    groups = groups_of("psum_scatter", axis_index_groups, names)
    count = size_of(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        at = axis_of("psum_scatter", "scatter_dimension", scatter_dimension, leaf.ndim)
        _check_length("psum_scatter", leaf, "scatter_dimension", at, names, count, tiled)
        if not names and not tiled:
            return lax.squeeze(leaf, (at,))
        leaf = vary(leaf, names)
        for i, name in enumerate(names):
            stays = tiled or i < len(names) - 1
            leaf = _along(reduce_scatter_p, leaf, name, groups, at, stays)
        return leaf

    return on_leaves("psum_scatter", one, x)


def _check_length(what: str, x: Any, argument: str, axis: int, names: Any, count: int, tiled: bool) -> None:
    length = x.shape[axis]
    if (length % count) if tiled else (length != count):
        wanted = f"a multiple of {count}" if tiled else f"{count}"
        raise ValueError(
            f"{what}: {argument}={axis} must have the length of the named axes {tuple(names)} (or their groups), "
            f"{wanted}, but the array is {x.aval.str_short(short_dtypes=False)}"
        )


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange an axis of the operand with a named axis: each element sends a part of its value to each other element.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        split_axis: the axis that is divided among the elements, part i to element i. Its length equals the size of the
            named axis, and it is removed.
        concat_axis: position of the new axis of received parts, in the order of their sources.
        axis_index_groups: groups of indices of the axis; parts are exchanged within each group.
        tiled: whether to keep both axes: the length of `split_axis` is divided by the size of the named axis, and that
            of `concat_axis` is multiplied by it.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array.
        ValueError: the groups, the axes or a length do not fit.
    """
    names = names_of("all_to_all", axis_name)
    groups = groups_of("all_to_all", axis_index_groups, names)
    sizes = [_size(name, groups) for name in names]
    count = size_of(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        split = axis_of("all_to_all", "split_axis", split_axis, leaf.ndim)
        concat = axis_of("all_to_all", "concat_axis", concat_axis, leaf.ndim)
        _check_length("all_to_all", leaf, "split_axis", split, names, count, tiled)
        shape = leaf.shape
        rest = (shape[split] // count,) if tiled else ()
        leaf = lax.reshape(vary(leaf, names), (*shape[:split], *sizes, *rest, *shape[split + 1 :]))
        for i, name in enumerate(names):
            leaf = all_to_all_p.bind(leaf, axis_name=name, axis_index_groups=groups, axis=split + i)
        leaf = lax.reshape(leaf, (*shape[:split], count, *rest, *shape[split + 1 :]))
        order = [d for d in range(leaf.ndim) if d != split]
        order.insert(concat, split)
        leaf = lax.transpose(leaf, order)
        if not tiled:
            return leaf
        kept = list(leaf.shape)
        kept[concat : concat + 2] = [kept[concat] * kept[concat + 1]]
        return lax.reshape(leaf, tuple(kept))

    return on_leaves("all_to_all", one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange an axis of the operand with a named axis, in place: `all_to_all` with equal axes.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        axis: the axis to exchange; its length equals the size of the named axis.
        axis_index_groups: groups of indices of the axis; values are exchanged within each group.

    Raises:
        NameError, TypeError, ValueError: see `all_to_all`.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


# -- primitives and rules ----------------------------------------------------------------------------------------


def _gathered_type(
    x: ShapedArray, *, axis_name: Any, axis_index_groups: Groups, axis: int, size: int, tiled: bool
) -> ShapedArray:
    _check_axis("all_gather", x, axis, x.ndim if tiled else x.ndim + 1)
    shape = list(x.shape)
    shape[axis : axis + 1 if tiled else axis] = [shape[axis] * size if tiled else size]
    return x.update(shape=tuple(shape))


def _invariant_type(x: ShapedArray, **params: Any) -> ShapedArray:
    return with_vma(_gathered_type(x, **params), x.vma.difference((params["axis_name"],)))


def _scattered_type(
    x: ShapedArray, *, axis_name: Any, axis_index_groups: Groups, axis: int, size: int, tiled: bool
) -> ShapedArray:
    _check_axis("reduce_scatter", x, axis, x.ndim)
    if dtypes.is_bool(x.dtype):
        raise TypeError(f"reduce_scatter does not take {x.str_short(short_dtypes=False)}")
    if x.shape[axis] % size if tiled else x.shape[axis] != size:
        wanted = f"a multiple of {size}" if tiled else str(size)
        raise ValueError(f"reduce_scatter: axis {axis} of {x.str_short(short_dtypes=False)} has size {wanted}")
    return shape_with(x, axis, x.shape[axis] // size if tiled else None)


def _exchanged_type(x: ShapedArray, *, axis_name: Any, axis_index_groups: Groups, axis: int) -> ShapedArray:
    _check_axis("all_to_all", x, axis, x.ndim)
    return x


def _check_axis(what: str, x: ShapedArray, axis: int, count: int) -> None:
    if not 0 <= axis < count:
        raise ValueError(f"{what}: axis={axis} is not in 0 to {count - 1}, of {x.str_short(short_dtypes=False)}")


all_gather_p = define("all_gather", _gathered_type)
all_gather_invariant_p = define("all_gather_invariant", _invariant_type)
reduce_scatter_p = define("reduce_scatter", _scattered_type)
all_to_all_p = define("all_to_all", _exchanged_type)
deflinear(all_gather_p, lambda ct, x, **params: [reduce_scatter_p.bind(ct, **params)])


def _own_part(ct: Any, x: Any, *, axis_name: Any, axis: int, size: int, tiled: bool, **params: Any) -> list[Any]:
    """Return an element's part of the common cotangent; if types do not track the axis, its part of their sum."""
    if manual_axes(axis_name) is None:
        return [reduce_scatter_p.bind(ct, axis_name=axis_name, axis=axis, size=size, tiled=tiled, **params)]
    axis_index_p = find_primitive("axis_index")
    assert axis_index_p is not None
    here = vary(axis_index_p.bind(axis_name=axis_name), (axis_name,))
    if not tiled:
        return [lax.dynamic_index_in_dim(ct, here, axis, keepdims=False)]
    length = ct.shape[axis] // size
    return [lax.dynamic_slice_in_dim(ct, lax.mul(here, np.int32(length)), length, axis)]


deflinear(all_gather_invariant_p, _own_part)
deflinear(reduce_scatter_p, lambda ct, x, **params: [all_gather_p.bind(ct, **params)])
deflinear(all_to_all_p, lambda ct, x, **params: [all_to_all_p.bind(ct, **params)])


def _all_gather(x: Any, *, axis: int, size: int, tiled: bool) -> Any:
    """Gather stacked values: each element gets the same result."""
    moved = lax.transpose(x, [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])
    if tiled:
        shape = list(x.shape[1:])
        shape[axis] *= size
        moved = lax.reshape(moved, tuple(shape))
    return lax.broadcast(moved, (size,))


def _reduce_scatter(x: Any, *, axis: int, size: int, tiled: bool) -> Any:
    total = lax.reduce_sum(x, (0,))
    if tiled:
        shape = total.shape
        total = lax.reshape(total, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    return lax.transpose(total, [axis, *(d for d in range(total.ndim) if d != axis)])


def _all_to_all(x: Any, *, axis: int) -> Any:
    order = list(range(x.ndim))
    order[0], order[axis + 1] = order[axis + 1], order[0]
    return lax.transpose(x, order)


collective_rules[reduce_scatter_p] = collective(_reduce_scatter)
collective_rules[all_to_all_p] = collective(_all_to_all)
_gather_in_groups = collective(_all_gather)


@collective_rules.register(all_gather_invariant_p)
@collective_rules.register(all_gather_p)
def _gather_over_axis(name: Any, axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
    out, dim = _gather_in_groups(name, axis_size, vals, dims, **params)
    if params["axis_index_groups"] is not None:
        return out, dim
    return lax.index_in_dim(out, 0, 0, keepdims=False), None  # all elements are equal, so the result is not mapped


def _batched(primitive: Primitive) -> None:
    """Register a vmap rule that moves the batch axis to the front and shifts the parameter `axis`."""

    @vmap_rules.register(primitive)
    def _rule(axis_size: int, vals: Any, dims: Any, *, axis: int, **params: Any) -> tuple[Any, int]:
        (x,), (dim,) = vals, dims
        order = [dim, *(d for d in range(x.ndim) if d != dim)]
        return primitive.bind(lax.transpose(x, order), axis=as_dim(axis) + 1, **params), 0


for _primitive in (all_gather_p, all_gather_invariant_p, reduce_scatter_p, all_to_all_p):
    _batched(_primitive)
