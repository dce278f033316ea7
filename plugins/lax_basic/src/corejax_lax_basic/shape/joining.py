"""Joining arrays along an axis and splitting them: `concatenate`, `stack`, `split` and `unstack`."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    deflinear,
    get_aval,
    impl_rules,
    is_undef_primal,
    move_batch_axis,
)
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, canonical_axis, integer, ints, sequence
from corejax_lax_basic._base.derivatives import linear_in
from corejax_lax_basic._base.prepared import Avals, parts
from corejax_lax_basic.shape.slicing import slice_p

__all__ = ["concatenate", "concatenate_p", "split", "split_p", "stack", "stack_p", "unstack", "unstack_p"]


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Join arrays along an existing axis.

    Args:
        operands: arrays of one dtype whose shapes differ at most in the axis `dimension`.
        dimension: the axis to join along.

    Raises:
        ValueError: `operands` is empty.
        TypeError: dtypes, ranks or other axes' sizes differ, or the axis does not exist.
    """
    operands = sequence(operands, "concatenate: operands")
    if not operands:
        raise ValueError("concatenate needs at least one operand, got none")
    if len(operands) == 1:
        canonical_axis(dimension, get_aval(operands[0]).ndim, "concatenate: dimension")
        return as_array(operands[0])
    return concatenate_p.bind(*operands, dimension=integer(dimension, "concatenate: dimension"))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Split an array into consecutive parts along an axis.

    Args:
        operand: the array.
        sizes: sizes of the parts along the axis; they add up to the size of the axis.
        axis: the axis to split; negative ones count from the end.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the sizes are negative or do not add up, or the operand does not have the axis.
    """
    along = canonical_axis(axis, get_aval(operand).ndim, "split: axis")
    parts: list[Any] = split_p.bind(operand, sizes=ints(sizes, "sizes"), axis=along)
    return parts


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Split an array into its slices along an axis; the slices do not have the axis.

    Raises:
        ValueError: the array does not have the axis.
    """
    return tuple(unstack_p.bind(x, axis=canonical_axis(axis, get_aval(x).ndim, "unstack: axis")))


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Join arrays of one shape and dtype along a new axis.

    Raises:
        TypeError: dtypes or shapes differ.
        ValueError: `operands` is empty, or the result does not have the axis.
    """
    operands = sequence(operands, "stack: operands")
    if not operands:
        raise ValueError("stack needs at least one operand, got none")
    return stack_p.bind(*operands, axis=canonical_axis(axis, get_aval(operands[0]).ndim + 1, "stack: axis"))


# -- concatenate -------------------------------------------------------------------------------------------------


@takes("concatenate", 1, at_least=True)
def _concatenate_abstract_eval(*avals: ShapedArray, dimension: int) -> ShapedArray:
    first = avals[0]
    shown = ", ".join(a.str_short() for a in avals[:8]) + (", ..." if len(avals) > 8 else "")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate: dimension {dimension} is not an axis of the operands {shown}")
    for i, aval in enumerate(avals):
        if aval.dtype != first.dtype:
            raise TypeError(
                f"concatenate: operands must have the same dtype; operand 0 is {first.str_short()}, "
                f"operand {i} is {aval.str_short()}"
            )
        if aval.ndim != first.ndim or any(
            a != b for d, (a, b) in enumerate(zip(aval.shape, first.shape, strict=True)) if d != dimension
        ):
            raise TypeError(
                f"concatenate: shapes may differ in dimension {dimension} only; operand 0 is {first.str_short()}, "
                f"operand {i} is {aval.str_short()}"
            )
    size = sum(a.shape[dimension] for a in avals)
    shape = (*first.shape[:dimension], size, *first.shape[dimension + 1 :])
    return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    shape = get_aval(ct).shape
    cts: list[Any] = []
    start = 0
    for x in operands:
        size = (x.aval if is_undef_primal(x) else get_aval(x)).shape[dimension]
        if is_undef_primal(x):
            begin, end = [0] * len(shape), list(shape)
            begin[dimension], end[dimension] = start, start + size
            cts.append(slice_p.bind(ct, start_indices=tuple(begin), limit_indices=tuple(end), strides=None))
        else:
            cts.append(None)
        start += size
    return cts


def _concatenate_vmap(axis_size: int, vals: Any, dims: Any, *, dimension: int) -> Any:
    moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
    return concatenate_p.bind(*moved, dimension=dimension + 1), 0


def _concatenate_prepared(avals: Avals, *, dimension: int) -> HostCode:
    operands = "".join(f"{{{i}}}, " for i in range(len(avals)))
    return HostCode(f"{{out}} = {{concatenate}}(({operands}), {dimension})", concatenate=np.concatenate)


concatenate_p = Primitive(
    "concatenate",
    tags=("linear", "structural"),
    abstract_eval=_concatenate_abstract_eval,
    vmap=_concatenate_vmap,
    doc="Join arrays along an axis.",
)
impl_rules.register(
    concatenate_p, lambda *xs, dimension: np.concatenate(xs, axis=dimension), prepared=_concatenate_prepared
)
deflinear(concatenate_p, _concatenate_transpose)


# -- split -------------------------------------------------------------------------------------------------------


def _split_impl(x: Any, *, sizes: Ints, axis: int) -> list[Any]:
    return [x[key] for key in _keys_of_parts(sizes, axis)]


def _keys_of_parts(sizes: Ints, axis: int) -> list[Any]:
    whole = (builtins.slice(None),) * axis
    ends = [0, *itertools.accumulate(sizes)]
    return [(*whole, builtins.slice(a, b)) for a, b in itertools.pairwise(ends)]


@takes("split", 1)
def _split_abstract_eval(x: ShapedArray, *, sizes: Ints, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"split: axis {axis} is not an axis of {x.str_short()}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"split: Sizes passed to split must be nonnegative, got {sizes}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"split: Sum of sizes {sum(sizes)} must be equal to the size of axis {axis} of {x.str_short()}, "
            f"{x.shape[axis]}; got sizes {sizes}"
        )
    return [x.update(shape=(*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes]


def _split_transpose(cts: Any, x: Any, *, sizes: Ints, axis: int) -> list[Any]:
    return [concatenate(cts, axis)]


def _split_vmap(axis_size: int, vals: Any, dims: Any, *, sizes: Ints, axis: int) -> Any:
    (x,), (d,) = vals, dims
    return split_p.bind(x, sizes=sizes, axis=axis + (axis >= d)), [d] * len(sizes)


split_p = Primitive(
    "split",
    multiple_results=True,
    linear_in=(0,),
    tags=("linear", "structural"),
    abstract_eval=_split_abstract_eval,
    vmap=_split_vmap,
    transpose=_split_transpose,
    doc="Split an array into consecutive parts of the given sizes along an axis.",
)


# -- unstack -----------------------------------------------------------------------------------------------------


def _unstack_impl(x: Any, *, axis: int) -> list[Any]:
    return list(np.moveaxis(x, axis, 0))


def _unstack_prepared(avals: Avals, *, axis: int) -> HostCode:
    whole = (builtins.slice(None),) * axis
    return parts([(*whole, i, ...) for i in range(avals[0].shape[axis])])


@takes("unstack", 1)
def _unstack_abstract_eval(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"unstack: axis {axis} is not an axis of {x.str_short()}")
    return [x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))] * x.shape[axis]


def _unstack_transpose(cts: Any, x: Any, *, axis: int) -> list[Any]:
    return [stack(cts, axis) if cts else None]


def _unstack_vmap(axis_size: int, vals: Any, dims: Any, *, axis: int) -> Any:
    (x,), (d,) = vals, dims
    outs = unstack_p.bind(x, axis=axis + (axis >= d))
    return outs, [d - (d > axis)] * len(outs)


unstack_p = Primitive(
    "unstack",
    multiple_results=True,
    linear_in=(0,),
    tags=("linear", "structural"),
    abstract_eval=_unstack_abstract_eval,
    vmap=_unstack_vmap,
    transpose=_unstack_transpose,
    doc="Split an array into its slices along an axis; the slices do not have the axis.",
)


impl_rules.register(split_p, _split_impl, prepared=lambda avals, *, sizes, axis: parts(_keys_of_parts(sizes, axis)))
impl_rules.register(unstack_p, _unstack_impl, prepared=_unstack_prepared)
linear_in(split_p)
linear_in(unstack_p)


# -- stack -------------------------------------------------------------------------------------------------------


@takes("stack", 1, at_least=True)
def _stack_abstract_eval(*avals: ShapedArray, axis: int) -> ShapedArray:
    first = avals[0]
    for i, aval in enumerate(avals):
        if (aval.shape, aval.dtype) != (first.shape, first.dtype):
            raise TypeError(
                f"stack: operands must have the same shape and dtype; operand 0 is {first.str_short()}, "
                f"operand {i} is {aval.str_short()}"
            )
    if not 0 <= axis <= first.ndim:
        raise ValueError(f"stack: axis {axis} is not an axis of the result, which has {first.ndim + 1}")
    shape = (*first.shape[:axis], len(avals), *first.shape[axis:])
    return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))


def _stack_transpose(ct: Any, *operands: Any, axis: int) -> list[Any]:
    parts = unstack(ct, axis)
    return [part if is_undef_primal(x) else None for part, x in zip(parts, operands, strict=True)]


def _stack_vmap(axis_size: int, vals: Any, dims: Any, *, axis: int) -> Any:
    moved = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
    return stack_p.bind(*moved, axis=axis + 1), 0


def _stack_prepared(avals: Avals, *, axis: int) -> HostCode:
    operands = "".join(f"{{{i}}}[{{key}}], " for i in range(len(avals)))
    key = (*(builtins.slice(None),) * axis, None, ...)  # inserts the axis, as `np.stack` does
    return HostCode(f"{{out}} = {{concatenate}}(({operands}), {axis})", concatenate=np.concatenate, key=key)


stack_p = Primitive(
    "stack",
    tags=("linear", "structural"),
    abstract_eval=_stack_abstract_eval,
    vmap=_stack_vmap,
    doc="Join arrays along a new axis.",
)
impl_rules.register(stack_p, lambda *xs, axis: np.stack(xs, axis), prepared=_stack_prepared)
deflinear(stack_p, _stack_transpose)
