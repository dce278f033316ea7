"""`all_gather` and `psum_scatter`, each the other's transpose, and `all_to_all`, its own.

Of one named axis of size n, at the axis k of the operand:

    all_gather : a[s] -> a[n, *s], the named axis at k            tiled: a[m, *s] -> a[n*m, *s]
    all_gather_invariant : the same, of a type that says that it is one value for all elements
    reduce_scatter : a[n, *s] -> a[s], the sum's part             tiled: a[n*m, *s] -> a[m, *s]
    all_to_all : a[n, *s] -> a[n, *s], element i of axis k goes to index i and arrives as the index that it is from
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
    """What all elements of named axes have, for each of them.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names, the first one outermost.
        axis_index_groups: of indices of the axis: gathered within each group.
        axis: where the named axis goes, in the result.
        tiled: whether parts are concatenated along `axis` instead of stacked.
        to: "varying"; or "invarying", for a result whose type says that it is one value for all elements, where types
            tell (`shard_map` with `check_vma=True`): its cotangent then is one too, of which each takes its part.

    Returns:
        A pytree of arrays with one more axis, or a longer one.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array.
        ValueError: the groups or the axis do not fit.
    """
    names = names_of("all_gather", axis_name)
    groups = groups_of("all_gather", axis_index_groups, names)
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f'all_gather: to is "varying" or "invarying", got {to!r}')

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
    """The sum along named axes, of which each element gets its part: `all_gather(psum_scatter(x))` is `psum(x)`.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names, the first one outermost.
        scatter_dimension: the axis of the operand that is shared out: as long as the named one, and gone from the
            result.
        axis_index_groups: of indices of the axis: summed and shared out within each group.
        tiled: whether `scatter_dimension` stays, and its length is a multiple of the named axis's, by which it is
            divided.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array.
        ValueError: the groups or the axis do not fit, or the length.
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
            f"{what}: {argument}={axis} has to be as long as the named axes {tuple(names)} (or their groups) are, "
            f"{wanted}, and the array is {x.aval.str_short(short_dtypes=False)}"
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
    """An axis of the operand becomes the named one, and the named one an axis of the result.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names, the first one outermost.
        split_axis: the axis that is shared out, part i to index i. As long as the named axis, and gone from the result.
        concat_axis: where the axis of what has arrived goes, by index that it is from.
        axis_index_groups: of indices of the axis: exchanged within each group.
        tiled: whether both axes stay: `split_axis` is divided by the named axis's length, `concat_axis` is multiplied.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array.
        ValueError: the groups or the axes do not fit, or the length.
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
    """An axis of the operand and the named one, exchanged: `all_to_all` with both axes the same.

    Args:
        x: a pytree of arrays.
        axis_name, axis_index_groups: as of `all_to_all`.
        axis: as long as the named axis.

    Raises:
        NameError, TypeError, ValueError: as of `all_to_all`.
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


def _one_type(x: ShapedArray, **params: Any) -> ShapedArray:
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
all_gather_invariant_p = define("all_gather_invariant", _one_type)
reduce_scatter_p = define("reduce_scatter", _scattered_type)
all_to_all_p = define("all_to_all", _exchanged_type)
deflinear(all_gather_p, lambda ct, x, **params: [reduce_scatter_p.bind(ct, **params)])


def _own_part(ct: Any, x: Any, *, axis_name: Any, axis: int, size: int, tiled: bool, **params: Any) -> list[Any]:
    """Of the one cotangent; where no types tell that it is one, of the sum of all elements'."""
    if manual_axes(axis_name) is None:
        given = {"axis_name": axis_name, "axis": axis, "size": size, "tiled": tiled}
        return [reduce_scatter_p.bind(ct, **given, **params)]
    here = vary(find_primitive("axis_index").bind(axis_name=axis_name), (axis_name,))
    if not tiled:
        return [lax.dynamic_index_in_dim(ct, here, axis, keepdims=False)]
    length = ct.shape[axis] // size
    return [lax.dynamic_slice_in_dim(ct, lax.mul(here, np.int32(length)), length, axis)]


deflinear(all_gather_invariant_p, _own_part)
deflinear(reduce_scatter_p, lambda ct, x, **params: [all_gather_p.bind(ct, **params)])
deflinear(all_to_all_p, lambda ct, x, **params: [all_to_all_p.bind(ct, **params)])


def _all_gather(x: Any, *, axis: int, size: int, tiled: bool) -> Any:
    """Of what all have: the same for each."""
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
    return lax.index_in_dim(out, 0, 0, keepdims=False), None  # the same for every element


def _batched(primitive: Primitive) -> None:
    """Batched along another axis: that comes first."""

    @vmap_rules.register(primitive)
    def _rule(axis_size: int, vals: Any, dims: Any, *, axis: int, **params: Any) -> tuple[Any, int]:
        (x,), (dim,) = vals, dims
        order = [dim, *(d for d in range(x.ndim) if d != dim)]
        return primitive.bind(lax.transpose(x, order), axis=as_dim(axis) + 1, **params), 0


for _primitive in (all_gather_p, all_gather_invariant_p, reduce_scatter_p, all_to_all_p):
    _batched(_primitive)
