"""`psum`, `pmean`, `pmax`, `pmin`: reductions along named axes, with the same result for every element of a group.

psum, pmax, pmin : a[s] -> a[s], for each element
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    deflinear,
    dtypes,
    get_aval,
    jvp_rules,
    move_batch_axis,
    tree,
)
from corejax.extend.transforms import axis_size_of, collective_rules
from corejax.extend.types import ValueType
from corejax_lax_basic import lax
from corejax_parallel.collectives._axes import (
    Groups,
    by_groups,
    define,
    elementwise_along_others,
    groups_of,
    names_of,
    on_leaves,
    size_of,
)
from corejax_parallel.types.refinement import with_vma
from corejax_parallel.types.vma import manual_axes


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sum along named axes.

    Args:
        x: a pytree of arrays; booleans are converted to int32. The sum of a Python number is a Python number:
            `psum(1, name)` is the size of the axis.
        axis_name: a name that `vmap`, `pmap` or `shard_map` binds, or a tuple of names. An integer that is not a name
            is an axis of the arrays, which is summed first.
        axis_index_groups: groups of indices of the axis, of equal size, with each index once; the sum is taken within
            each group.

    Returns:
        A pytree of arrays of the same shapes and dtypes, equal for all elements.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array.
        ValueError: the groups do not fit the axis, or an array does not have an axis.
    """
    positions, axis_name = _positions(axis_name)
    names = names_of("psum", axis_name)
    groups = groups_of("psum", axis_index_groups, names)
    count = size_of(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex) and not positions:
            return leaf * count
        x = as_array(leaf)
        if dtypes.is_bool(x.dtype):
            x = lax.convert_element_type(x, np.int32)
        x = _over_positions("psum", lax.reduce_sum, x, positions)
        return psum_p.bind(x, axis_name=names, axis_index_groups=groups) if names else x

    leaves, treedef = tree.tree_flatten(x)
    try:
        return tree.tree_unflatten(treedef, [of_parts(one, leaf) for leaf in leaves])
    except TypeError as error:
        raise TypeError(f"psum: x is a pytree of arrays: {error}") from None


def of_parts(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a linear function of an array, or of each part of a value whose type is its own tangent type."""
    aval = get_aval(x)
    if isinstance(aval, ValueType) and aval.tangent_type() is aval:
        return lax.pack(aval, *map(fun, lax.unpack(x)))
    return fun(x)


def _positions(axis_name: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Split names into integers that are not bound, which are axes of arrays, and bound names."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    positions = tuple([n for n in names if type(n) is int and not _is_bound(n)])
    return positions, tuple([n for n in names if type(n) is not int or n not in positions]) if positions else names


def _is_bound(name: Any) -> bool:
    try:
        axis_size_of(name)
    except NameError:
        return False
    return True


def _over_positions(what: str, reduce: Callable[..., Any], x: Any, positions: tuple[int, ...]) -> Any:
    if not positions:
        return x
    for axis in positions:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"{what}: axis {axis} is out of bounds for {x.aval.str_short(short_dtypes=False)}")
    return reduce(x, tuple([axis % x.ndim for axis in positions]))


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Take the mean along named axes.

    Args:
        x: a pytree of arrays; integers are converted to floating-point numbers.
        axis_name: a bound name, or a tuple of names.
        axis_index_groups: groups of indices of the axis; the mean is taken within each group.

    Raises:
        NameError, TypeError, ValueError: see `psum`.
    """
    names = names_of("pmean", axis_name)
    count = psum(1, names, axis_index_groups=axis_index_groups)
    return tree.tree_map(
        lambda leaf: of_parts(lambda x: lax.div(*_quotient_operands(x, count)), leaf),
        psum(x, names, axis_index_groups=axis_index_groups),
    )


def _quotient_operands(total: Any, count: int) -> tuple[Any, Any]:
    total = as_array(total)
    if not dtypes.is_inexact(total.dtype):
        total = lax.convert_element_type(total, dtypes.default_float_dtype())
    return total, lax.full_like(total, count)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Take the maximum along named axes, NaN if any element is NaN.

    The derivative is the mean of the derivatives of the elements that equal the maximum.

    Args:
        x: a pytree of arrays of real numbers.
        axis_name: a bound name, or a tuple of names.
        axis_index_groups: groups of indices of the axis; the maximum is taken within each group.

    Raises:
        NameError, TypeError, ValueError: see `psum`.
    """
    return _extreme("pmax", pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Take the minimum along named axes, NaN if any element is NaN.

    The derivative is the mean of the derivatives of the elements that equal the minimum.

    Args:
        x: a pytree of arrays of real numbers.
        axis_name: a bound name, or a tuple of names.
        axis_index_groups: groups of indices of the axis; the minimum is taken within each group.

    Raises:
        NameError, TypeError, ValueError: see `psum`.
    """
    return _extreme("pmin", pmin_p, x, axis_name, axis_index_groups)


def _extreme(what: str, primitive: Primitive, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    positions, axis_name = _positions(axis_name)
    names = names_of(what, axis_name)
    groups = groups_of(what, axis_index_groups, names)
    reduce = lax.reduce_max if what == "pmax" else lax.reduce_min

    def one(leaf: Any) -> Any:
        if dtypes.is_complex(leaf.dtype):
            raise TypeError(f"{what}: complex numbers have no order, got {leaf.aval.str_short(short_dtypes=False)}")
        leaf = _over_positions(what, reduce, leaf, positions)
        return primitive.bind(leaf, axis_name=names, axis_index_groups=groups) if names else leaf

    return on_leaves(what, one, x)


# -- primitives and rules ----------------------------------------------------------------------------------------


def _reduction(
    name: str, reduce: Callable[..., Any], unmapped: Callable[[Any, int], Any], refuses: Callable[[Any], bool]
) -> Primitive:
    """Define a primitive that reduces along named axes.

    Args:
        name: name of the primitive.
        reduce: `(x, axes) -> reduced x`.
        unmapped: `(x, count) -> result` for `count` elements that are all `x`.
        refuses: whether a dtype is not supported.
    """

    def same_type(x: ShapedArray, *, axis_name: Any, axis_index_groups: Groups) -> ShapedArray:
        if refuses(x.dtype):
            raise TypeError(f"{name} does not take {x.str_short(short_dtypes=False)}")
        return x if axis_index_groups is not None else with_vma(x, x.vma.difference(axis_name))

    primitive = define(name, same_type)
    elementwise_along_others(primitive)

    @collective_rules.register(primitive)
    def _over_axis(
        this: Any, axis_size: int, vals: Any, dims: Any, *, axis_name: tuple[Any, ...], axis_index_groups: Groups
    ) -> Any:
        (x,), (dim,) = vals, dims
        rest = tuple([n for n in axis_name if n != this])
        if dim is None:
            count = axis_size if axis_index_groups is None else len(axis_index_groups[0])
            out, dim_out = unmapped(x, count), None
        elif axis_index_groups is None:
            out, dim_out = reduce(x, (dim,)), None
        else:
            moved = move_batch_axis(axis_size, dim, 0, x)
            out = by_groups(lambda part: lax.broadcast(reduce(part, (0,)), (part.shape[0],)), axis_index_groups, moved)
            dim_out = 0
        if rest:
            out = primitive.bind(out, axis_name=rest, axis_index_groups=None)
        return out, dim_out

    return primitive


def _times(x: Any, count: int) -> Any:
    return lax.mul(x, lax.full_like(x, count))


psum_p = _reduction("psum", lax.reduce_sum, _times, dtypes.is_bool)


def _psum_transpose(ct: Any, x: Any, *, axis_name: tuple[Any, ...], axis_index_groups: Groups) -> list[Any]:
    """Transpose a sum along named axes.

    The cotangent of each element is the sum of the cotangents of all elements. Along axes that types track, the sum is
    a single value with a single cotangent, which is the cotangent of each element.
    """
    tracked = [name for name in axis_name if manual_axes(name) is not None]
    rest = tuple([name for name in axis_name if name not in tracked])
    for name in tracked:
        if name not in x.aval.vma:  # the operand is the same for all elements, and counts once for each
            ct = _times(ct, axis_size_of(name) if axis_index_groups is None else len(axis_index_groups[0]))
        elif axis_index_groups is not None:
            ct = psum_p.bind(ct, axis_name=(name,), axis_index_groups=axis_index_groups)
    return [psum_p.bind(ct, axis_name=rest, axis_index_groups=axis_index_groups) if rest else ct]


deflinear(psum_p, _psum_transpose)
pmax_p = _reduction("pmax", lax.reduce_max, lambda x, count: x, dtypes.is_complex)
pmin_p = _reduction("pmin", lax.reduce_min, lambda x, count: x, dtypes.is_complex)


def _extreme_jvp(primitive: Primitive) -> None:
    @jvp_rules.register(primitive)
    def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = primitive.bind(x, **params)
        chosen = lax.convert_element_type(lax.eq(x, out), t.dtype)
        total = psum_p.bind(lax.mul(t, chosen), **params)
        return out, lax.div(total, psum_p.bind(chosen, **params))


_extreme_jvp(pmax_p)
_extreme_jvp(pmin_p)
