"""`slice` and `pad`, with static bounds; each is the transpose of the other."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    UndefPrimal,
    as_array,
    deflinear,
    get_aval,
    impl_rules,
    is_undef_primal,
    move_batch_axis,
)
from corejax.extend.types import max_dim
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, canonical_axis, integer, ints, sequence
from corejax_lax_basic._base.prepared import Avals, part
from corejax_lax_basic._base.scalars import PYTHON_SCALARS, make_scalar
from corejax_lax_basic.conversion.convert import as_weak_as
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p
from corejax_lax_basic.shape.rearranging import squeeze_p

__all__ = ["index_in_dim", "pad", "pad_p", "slice", "slice_in_dim", "slice_p"]


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """Return the elements from `start_indices` to `limit_indices` (exclusive) in steps of `strides`.

    Args:
        operand: the array.
        start_indices: the first index along each axis.
        limit_indices: the index after the last one along each axis.
        strides: positive steps along each axis; None for 1.

    Raises:
        TypeError: the bounds do not lie inside the operand, or a stride is not positive.
    """
    starts, limits = ints(start_indices, "start_indices"), ints(limit_indices, "limit_indices")
    steps = None if strides is None else ints(strides, "strides")
    shape = get_aval(operand).shape
    if steps == (1,) * len(shape):
        steps = None
    if limits == shape and steps is None and len(starts) == len(shape) and all(start == 0 for start in starts):
        return as_array(operand)
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def _impl(x: Any, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> Any:
    steps = strides or (1,) * len(start_indices)
    return x[tuple(map(builtins.slice, start_indices, limit_indices, steps))]


def _prepared(avals: Avals, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> Any:
    steps = strides or (1,) * len(start_indices)
    return part(avals[0], tuple(map(builtins.slice, start_indices, limit_indices, steps)))


@takes("slice", 1)
def _abstract_eval(x: ShapedArray, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> ShapedArray:
    steps = (1,) * x.ndim if strides is None else strides
    where = f"slice: operand {x.str_short()}, start_indices {start_indices}, limit_indices {limit_indices}"
    where += "" if strides is None else f", strides {strides}"
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        raise TypeError(f"{where}: each of the operand's {x.ndim} axes needs an entry")
    for axis, (size, start, limit, step) in enumerate(zip(x.shape, start_indices, limit_indices, steps, strict=True)):
        if not 0 <= start <= limit <= size:
            raise TypeError(
                f"{where}: on axis {axis}, {start} to {limit} is not inside 0 to {size} "
                "(starts and limits count from the front)"
            )
        if step <= 0:
            raise TypeError(f"{where}: strides must be positive, axis {axis} has {step}")
    shape = tuple(-((a - b) // s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True))
    return ShapedArray(shape, x.dtype, x.weak_type)


def _transpose(ct: Any, x: UndefPrimal, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> list[Any]:
    shape, sizes = x.aval.shape, get_aval(ct).shape
    steps = strides or (1,) * len(shape)
    config = []
    for n, start, count, step in zip(shape, start_indices, sizes, steps, strict=True):
        config.append((start, n - start - _padded_size(count, 0, 0, step - 1), step - 1))
    zero = np.zeros((), get_aval(ct).dtype)[()]
    return [pad_p.bind(ct, zero, padding_config=tuple(config))]


def _vmap(
    axis_size: int, vals: Any, dims: Any, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None
) -> Any:
    d = dims[0]
    starts = (*start_indices[:d], 0, *start_indices[d:])
    limits = (*limit_indices[:d], axis_size, *limit_indices[d:])
    steps = None if strides is None else (*strides[:d], 1, *strides[d:])
    return slice_p.bind(vals[0], start_indices=starts, limit_indices=limits, strides=steps), d


slice_p = Primitive(
    "slice",
    linear_in=(0,),
    tags=("linear", "structural"),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Return a part of an array, with static bounds and strides.",
)
impl_rules.register(slice_p, _impl, prepared=_prepared)
deflinear(slice_p, _transpose)


# -- pad ---------------------------------------------------------------------------------------------------------

PaddingConfig = tuple[tuple[int, int, int], ...]


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """Pad an array with a value before, after and between its elements.

    Args:
        operand: the array.
        padding_value: a scalar of the operand's dtype.
        padding_config: `(low, high, interior)` for each axis; negative `low` and `high` drop elements.

    Raises:
        TypeError: dtypes differ, or the configuration is not made of triples of integers.
        ValueError: the padding value is not a scalar, or the configuration does not fit the operand.
    """
    config = tuple([ints(c, "padding_config") for c in sequence(padding_config, "padding_config")])
    if any(len(c) != 3 for c in config):
        raise TypeError(f"pad: padding_config must have (low, high, interior) for each axis, got {padding_config!r}")
    aval = get_aval(operand)
    if type(padding_value) in PYTHON_SCALARS:
        padding_value = make_scalar(padding_value, aval.dtype, aval.weak_type)
    return pad_p.bind(operand, padding_value, padding_config=config)


def _padded_size(size: int, low: int, high: int, interior: int) -> int:
    return low + size + (max_dim(size - 1, 0) * interior if interior else 0) + high


def pad_on_host(x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
    """Pad a NumPy array with a value before, after and between its elements."""
    shape = tuple(_padded_size(n, *c) for n, c in zip(x.shape, padding_config, strict=True))
    out = np.empty(shape, x.dtype)
    out[...] = value
    source, target = [], []
    for n, size, (low, _, interior) in zip(x.shape, shape, padding_config, strict=True):
        step = interior + 1
        first = -(low // step) if low < 0 else 0  # the first element that is not dropped
        last = min(n, max(0, -((low - size) // step)))  # the element after the last that is not dropped
        first = min(first, last)
        source.append(builtins.slice(first, last))
        end = low + (last - 1) * step + 1
        target.append(builtins.slice(low + first * step, end, step) if last > first else builtins.slice(0, 0))
    out[tuple(target)] = x[tuple(source)]
    return out


@takes("pad", 2)
def _pad_abstract_eval(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> ShapedArray:
    if x.dtype != value.dtype:
        raise TypeError(
            f"pad: operand {x.str_short()} and padding value {value.str_short()} differ in dtype; convert one of them"
        )
    if value.ndim:
        raise ValueError(f"pad: padding_value must be a scalar, got {value.str_short()}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            f"pad: operand {x.str_short()} has {x.ndim} axes, padding_config {padding_config} has {len(padding_config)}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"pad: interior padding in padding_config must be nonnegative, got {padding_config}")
    shape = tuple(_padded_size(n, *c) for n, c in zip(x.shape, padding_config, strict=True))
    if any(n < 0 for n in shape):
        raise ValueError(
            f"pad: Dimension size after padding is not at least 0: padding_config {padding_config} drops more of "
            f"operand {x.str_short()} than it has, the shape would be {shape}"
        )
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> list[Any]:
    zero = np.zeros((), get_aval(ct).dtype)[()]
    ct_x = pad_p.bind(ct, zero, padding_config=tuple((-low, -high, 0) for low, high, _ in padding_config))
    strides = tuple(interior + 1 for _, _, interior in padding_config)
    if any(s != 1 for s in strides):
        shape = get_aval(ct_x).shape
        ct_x = slice_p.bind(ct_x, start_indices=(0,) * len(shape), limit_indices=shape, strides=strides)
    ct_value = None
    if is_undef_primal(value):  # all cotangents but those that go to the operand
        ct_value = by_name.sub(_total(ct), _total(ct_x))
    return [ct_x if is_undef_primal(x) else None, ct_value]


def _total(x: Any) -> Any:
    return by_name.reduce_sum(x, tuple(range(get_aval(x).ndim)))


def _pad_vmap(axis_size: int, vals: Any, dims: Any, *, padding_config: PaddingConfig) -> Any:
    (x, value), (d, d_value) = vals, dims
    if d_value is None:
        config = (*padding_config[:d], (0, 0, 0), *padding_config[d:])
        return pad_p.bind(x, value, padding_config=config), d
    # One padding value for each element of the batch: pad with zeros, then select the values in the padding.
    x = move_batch_axis(axis_size, d, 0, x)
    config = ((0, 0, 0), *padding_config)
    mask = broadcast_in_dim_p.bind(np.False_, shape=get_aval(x).shape, broadcast_dimensions=())
    mask = pad_p.bind(mask, np.True_, padding_config=config)
    padded = pad_p.bind(x, np.zeros((), get_aval(x).dtype)[()], padding_config=config)
    spread = broadcast_in_dim_p.bind(value, shape=get_aval(padded).shape, broadcast_dimensions=(0,))
    return as_weak_as(by_name.select_n(mask, padded, spread), x, value), 0


pad_p = Primitive(
    "pad",
    linear_in=(0, 1),
    tags=("linear", "structural"),
    impl=pad_on_host,
    abstract_eval=_pad_abstract_eval,
    vmap=_pad_vmap,
    doc="Pad an array with a value before, after and between its elements.",
)
deflinear(pad_p, _pad_transpose)


# -- in terms of slice ----------------------------------------------------------------------------------------------


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """Slice along one axis, as `slice`; negative indices count from the end, None is the beginning or the end."""
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape), "slice_in_dim: axis")
    size = shape[axis]
    start = 0 if start_index is None else integer(start_index, "start_index")
    limit = size if limit_index is None else integer(limit_index, "limit_index")
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = integer(stride, "stride")
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """Return one element along an axis; the axis is kept with size 1 or dropped.

    Raises:
        IndexError: the index is out of bounds.
    """
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape), "index_in_dim: axis")
    index = canonical_index(index, axis, shape[axis])
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze_p.bind(out, dimensions=(axis,))


def canonical_index(index: Any, axis: int, size: int) -> int:
    """Return a static index counted from the front.

    Raises:
        IndexError: the index is out of bounds; the message names index, axis and size.
    """
    i = integer(index, "index")
    if not -size <= i < size:
        raise IndexError(f"index {i} out of bounds for axis {axis} with size {size}")
    return i + size if i < 0 else i
