"""Checks of indices out of bounds, whatever the primitive's mode for such indices.

A window is out of bounds if any part of it is. Indices count from the front, as the public functions have already
converted negative ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Primitive, dtypes, get_aval, host_value
from corejax_checkify.failures import OOBError
from corejax_checkify.interpreter import Checks, for_primitive
from corejax_checkify.state import constant
from corejax_lax_basic import lax

Ints = Sequence[int]


def _check(checks: Checks, name: str, shape: Ints, axes: Ints, sizes: Ints, indices: Any) -> None:
    """Add a failure that occurs if a window is not inside its operand.

    Args:
        checks: the `Checks` to which the failure is added.
        name: name of the primitive.
        shape: shape of its operand.
        axes: axes of the operand, one for each component of an index.
        sizes: sizes of the windows along these axes.
        indices: start indices of the windows; the last axis has the components.
    """
    aval = get_aval(indices)
    if not aval.size:
        return
    info = dtypes.iinfo(aval.dtype)
    # A bound that does not fit into the dtype is above all indices.
    last = np.array([min(shape[a] - n, int(info.max)) for a, n in zip(axes, sizes, strict=True)], aval.dtype)
    if type(indices) is Array and not _outside(host_value(indices), last):
        return  # constant indices, all in bounds
    bound = lax.broadcast_in_dim(last, aval.shape, (aval.ndim - 1,))
    outside = lax.gt(indices, bound)
    if not dtypes.is_unsigned(aval.dtype):
        outside = lax.bitwise_or(outside, lax.lt(indices, lax.zeros_like_array(indices)))
    flat = lax.reshape(outside, (aval.size,))
    first = lax.argmax(flat, 0, np.int32)
    index = lax.dynamic_index_in_dim(
        lax.reshape(indices, (aval.size,)), first, 0, keepdims=False, allow_negative_indices=False
    )
    component = lax.rem(first, constant(len(axes), np.int32))
    fails = lax.reduce_or(flat, (0,))
    checks.add(fails, OOBError, name, tuple(shape), tuple(axes), payload=[index, component])


def _outside(indices: Any, last: Any) -> bool:
    return bool(np.any(indices < 0) or np.any(indices > last))


def _check_starts(checks: Checks, name: str, shape: Ints, sizes: Ints, starts: Sequence[Any]) -> None:
    """Add a failure as `_check`, for a window with one start operand per axis."""
    moving = [i for i, x in enumerate(starts) if not _is_inside(x, shape[i] - sizes[i])]
    for dtype in dict.fromkeys(get_aval(starts[i]).dtype for i in moving):
        axes = [i for i in moving if get_aval(starts[i]).dtype == dtype]
        indices = lax.concatenate([lax.reshape(starts[i], (1,)) for i in axes], 0)
        _check(checks, name, shape, axes, [sizes[i] for i in axes], indices)


def _is_inside(start: Any, last: int) -> bool:
    """Return whether a start index is a constant and in bounds."""
    return type(start) is Array and 0 <= int(host_value(start)) <= last


def _dynamic_slice(primitive: Primitive, checks: Checks, operand: Any, *starts: Any, slice_sizes: Ints) -> Any:
    if checks.on(OOBError):
        _check_starts(checks, primitive.name, get_aval(operand).shape, slice_sizes, starts)
    return primitive.bind(operand, *starts, slice_sizes=slice_sizes)


def _dynamic_update_slice(primitive: Primitive, checks: Checks, operand: Any, update: Any, *starts: Any) -> Any:
    if checks.on(OOBError):
        _check_starts(checks, primitive.name, get_aval(operand).shape, get_aval(update).shape, starts)
    return primitive.bind(operand, update, *starts)


def _gather(primitive: Primitive, checks: Checks, operand: Any, indices: Any, **params: Any) -> Any:
    if checks.on(OOBError):
        axes = params["dimension_numbers"].start_index_map
        sizes = [params["slice_sizes"][a] for a in axes]
        _check(checks, primitive.name, get_aval(operand).shape, axes, sizes, indices)
    return primitive.bind(operand, indices, **params)


def _scatter(primitive: Primitive, checks: Checks, operand: Any, indices: Any, *updates: Any, **params: Any) -> Any:
    checks.keeps_checks(primitive, params)
    if checks.on(OOBError):
        numbers, shape = params["dimension_numbers"], get_aval(operand).shape
        update_shape = params["update_shape"] if not updates else get_aval(updates[0]).shape
        axes = numbers.scatter_dims_to_operand_dims
        windows = _window_sizes(len(shape), update_shape, numbers)
        _check(checks, primitive.name, shape, axes, [windows[a] for a in axes], indices)
    out = primitive.bind(operand, indices, *updates, **params)
    if primitive.name not in ("scatter", "scatter-min", "scatter-max"):
        checks.no_nan(primitive.name, [out])
    return out


def _window_sizes(ndim: int, update_shape: Ints, numbers: Any) -> list[int]:
    """Return the sizes of the windows that a scatter writes, along all axes of its operand."""
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter(update_shape[d] for d in numbers.update_window_dims)
    return [1 if axis in dropped else next(sizes) for axis in range(ndim)]


for_primitive("dynamic_slice", _dynamic_slice)
for_primitive("dynamic_update_slice", _dynamic_update_slice)
for_primitive("gather", _gather)
for _name in ["scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub", "scatter_apply"]:
    for_primitive(_name, _scatter)
