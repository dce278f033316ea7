"""Primitives that make arrays out of several or of none: `concatenate`, `pad`, `iota`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    deflinear,
    defzero,
    dtypes,
    get_aval,
    is_undef_primal,
    jvp_rules,
    move_batch_axis,
)
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axis, canonical_shape, ints
from corejax_lax_basic.conversion.convert import as_weak_as
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p

# -- concatenate -------------------------------------------------------------------------------------------------


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays joined along an existing axis.

    Args:
        operands: arrays of one dtype whose shapes differ at most in that axis.
        dimension: the axis.

    Raises:
        ValueError: there is no operand.
        TypeError: dtypes, ranks or other axes' sizes differ, or the axis does not exist.
    """
    operands = list(operands)
    if not operands:
        raise ValueError("concatenate needs at least one operand, got none")
    if len(operands) == 1:
        canonical_axis(dimension, get_aval(operands[0]).ndim, "concatenate: dimension")
        return as_array(operands[0])
    return concatenate_p.bind(*operands, dimension=ints((dimension,))[0])


@takes("concatenate", 1, at_least=True)
def _concatenate_abstract_eval(*avals: ShapedArray, dimension: int) -> ShapedArray:
    first = avals[0]
    shown = ", ".join(a.str_short() for a in avals[:8]) + (", ..." if len(avals) > 8 else "")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate: dimension {dimension} is not an axis of the operands {shown}")
    for i, aval in enumerate(avals):
        if aval.dtype != first.dtype:
            raise TypeError(
                f"concatenate: operands have one dtype; operand 0 is {first.str_short()}, "
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
    from corejax_lax_basic.shape.slicing import slice_p

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


concatenate_p = Primitive(
    "concatenate",
    tags=("linear", "structural"),
    impl=lambda *xs, dimension: np.concatenate(xs, axis=dimension),
    abstract_eval=_concatenate_abstract_eval,
    vmap=_concatenate_vmap,
    doc="Arrays joined along an axis.",
)
deflinear(concatenate_p, _concatenate_transpose)


# -- pad ---------------------------------------------------------------------------------------------------------

PaddingConfig = tuple[tuple[int, int, int], ...]


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """An array with a value put before, behind and between its elements.

    Args:
        operand: the array.
        padding_value: a scalar of the operand's dtype.
        padding_config: for each axis `(low, high, interior)`; negative `low` and `high` drop elements.

    Raises:
        TypeError: dtypes differ, the padding value is not a scalar, or the configuration does not fit.
    """
    config = tuple((lo, hi, interior) for lo, hi, interior in map(ints, padding_config))
    aval = get_aval(operand)
    if type(padding_value) in (bool, int, float, complex):
        from corejax_lax_basic._promotion import make_scalar

        padding_value = make_scalar(padding_value, aval.dtype, aval.weak_type)
    return pad_p.bind(operand, padding_value, padding_config=config)


def _padded_size(size: int, low: int, high: int, interior: int) -> int:
    return low + size + max(size - 1, 0) * interior + high


def _pad_impl(x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
    shape = tuple(_padded_size(n, *c) for n, c in zip(x.shape, padding_config, strict=True))
    out = np.empty(shape, x.dtype)
    out[...] = value
    source, target = [], []
    for n, size, (low, _, interior) in zip(x.shape, shape, padding_config, strict=True):
        step = interior + 1
        first = -(low // step) if low < 0 else 0  # the first element that is not cut off
        last = min(n, max(0, -((low - size) // step)))  # and the one behind the last
        first = min(first, last)
        source.append(slice(first, last))
        end = low + (last - 1) * step + 1
        target.append(slice(low + first * step, end, step) if last > first else slice(0, 0))
    out[tuple(target)] = x[tuple(source)]
    return out


@takes("pad", 2)
def _pad_abstract_eval(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> ShapedArray:
    if x.dtype != value.dtype:
        raise TypeError(
            f"pad: operand {x.str_short()} and padding value {value.str_short()} differ in dtype; convert one of them"
        )
    if value.ndim:
        raise TypeError(f"pad: the padding value is a scalar, got {value.str_short()}")
    if len(padding_config) != x.ndim:
        raise TypeError(
            f"pad: operand {x.str_short()} has {x.ndim} axes, padding_config {padding_config} has {len(padding_config)}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"pad: interior padding is not negative, got padding_config {padding_config}")
    shape = tuple(_padded_size(n, *c) for n, c in zip(x.shape, padding_config, strict=True))
    if any(n < 0 for n in shape):
        raise ValueError(
            f"pad: padding_config {padding_config} drops more of operand {x.str_short()} than there is: "
            f"the shape would be {shape}"
        )
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> list[Any]:
    from corejax_lax_basic.elementwise.arithmetic import sub_p
    from corejax_lax_basic.reductions.reduce import reduce_sum_p
    from corejax_lax_basic.shape.slicing import slice_p

    zero = np.zeros((), get_aval(ct).dtype)[()]
    ct_x = pad_p.bind(ct, zero, padding_config=tuple((-low, -high, 0) for low, high, _ in padding_config))
    strides = tuple(interior + 1 for _, _, interior in padding_config)
    if any(s != 1 for s in strides):
        shape = get_aval(ct_x).shape
        ct_x = slice_p.bind(ct_x, start_indices=(0,) * len(shape), limit_indices=shape, strides=strides)
    ct_value = None
    if is_undef_primal(value):  # what reached the result and did not come from the operand
        ct_value = sub_p.bind(_total(reduce_sum_p, ct), _total(reduce_sum_p, ct_x))
    return [ct_x if is_undef_primal(x) else None, ct_value]


def _total(reduce_sum_p: Primitive, x: Any) -> Any:
    return reduce_sum_p.bind(x, axes=tuple(range(get_aval(x).ndim)))


def _pad_vmap(axis_size: int, vals: Any, dims: Any, *, padding_config: PaddingConfig) -> Any:
    (x, value), (d, d_value) = vals, dims
    if d_value is None:
        config = (*padding_config[:d], (0, 0, 0), *padding_config[d:])
        return pad_p.bind(x, value, padding_config=config), d
    from corejax_lax_basic.elementwise.select import select_n_p

    # One padding value for each element of the batch: pad with anything, then put the values where padding went.
    x = move_batch_axis(axis_size, d, 0, x)
    config = ((0, 0, 0), *padding_config)
    mask = broadcast_in_dim_p.bind(np.False_, shape=get_aval(x).shape, broadcast_dimensions=())
    mask = pad_p.bind(mask, np.True_, padding_config=config)
    padded = pad_p.bind(x, np.zeros((), get_aval(x).dtype)[()], padding_config=config)
    spread = broadcast_in_dim_p.bind(value, shape=get_aval(padded).shape, broadcast_dimensions=(0,))
    return as_weak_as(select_n_p.bind(mask, padded, spread), x, value), 0


def _pad_jvp(primals: Any, tangents: Any, *, padding_config: PaddingConfig) -> Any:
    out = pad_p.bind(*primals, padding_config=padding_config)
    x_dot, value_dot = tangents
    if x_dot is None and value_dot is None:
        return out, None
    x = primals[0]
    zero = np.zeros((), get_aval(x).dtype)[()]
    if x_dot is None:
        x_dot = broadcast_in_dim_p.bind(zero, shape=get_aval(x).shape, broadcast_dimensions=())
    return out, pad_p.bind(x_dot, zero if value_dot is None else value_dot, padding_config=padding_config)


pad_p = Primitive(
    "pad",
    linear_in=(0, 1),
    tags=("linear", "structural"),
    impl=_pad_impl,
    abstract_eval=_pad_abstract_eval,
    vmap=_pad_vmap,
    transpose=_pad_transpose,
    doc="An array with a value put before, behind and between its elements.",
)
jvp_rules.register(pad_p, _pad_jvp, symbolic_zeros=True)


# -- iota --------------------------------------------------------------------------------------------------------


def iota(dtype: Any, size: int) -> Any:
    """`0, 1, ..., size - 1`: a vector of a dtype."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """An array whose elements are their index along one axis.

    Args:
        dtype: dtype of the result, a number.
        shape: its shape.
        dimension: the axis.

    Raises:
        TypeError: the dtype is bool, or `shape` is not made of concrete integers.
        ValueError: there is no such axis.
    """
    shape = canonical_shape(shape)
    axis = canonical_axis(dimension, len(shape), "iota: dimension")
    return iota_p.bind(dtype=dtypes.canonicalize_dtype(dtype), shape=shape, dimension=axis)


def _iota_impl(*, dtype: Any, shape: tuple[int, ...], dimension: int) -> Any:
    with np.errstate(all="ignore"):
        line = np.arange(shape[dimension]).astype(dtype)
    unit = [1] * len(shape)
    unit[dimension] = shape[dimension]
    return np.broadcast_to(line.reshape(unit), shape)


@takes("iota", 0)
def _iota_abstract_eval(*, dtype: Any, shape: tuple[int, ...], dimension: int) -> ShapedArray:
    if dtypes.is_bool(dtype):
        raise TypeError("iota: the dtype is a number's, got bool")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} is not an axis of shape {shape}")
    return ShapedArray(shape, dtype)


def _iota_vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    return iota_p.bind(**params), None


iota_p = Primitive(
    "iota",
    impl=_iota_impl,
    abstract_eval=_iota_abstract_eval,
    vmap=_iota_vmap,
    doc="An array whose elements are their index along one axis.",
)
defzero(iota_p)
