"""`iota`: arrays of indices along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defzero, dtypes, impl_rules
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_shape, integer
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.requested_dtypes import requested_dtype

__all__ = ["broadcasted_iota", "iota", "iota_p"]


def iota(dtype: Any, size: int) -> Any:
    """Return the vector `0, 1, ..., size - 1` of a dtype."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Any:
    """Return an array in which each element is its index along one axis.

    Args:
        dtype: a numeric dtype.
        shape: shape of the array.
        dimension: the axis, counted from the front.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the dtype is bool, or `shape` is not made of concrete integers.
        ValueError: the shape does not have the axis.
    """
    shape = canonical_shape(shape)
    axis = integer(dimension, "iota: dimension")
    if not 0 <= axis < len(shape):
        raise ValueError(f"iota: dimension {axis} must be between 0 and the number of axes of shape {shape}")
    if dtype is None:
        raise ValueError("iota: dtype must be specified, got None")
    out = iota_p.bind(dtype=requested_dtype(dtype), shape=shape, dimension=axis)
    return place("broadcasted_iota", out, out_sharding)


def _iota_impl(*, dtype: Any, shape: tuple[int, ...], dimension: int) -> Any:
    with np.errstate(all="ignore"):
        line = np.arange(shape[dimension]).astype(dtype)
    if len(shape) == 1:
        return line
    unit = [1] * len(shape)
    unit[dimension] = shape[dimension]
    return np.broadcast_to(line.reshape(unit), shape)


@takes("iota", 0)
def _iota_abstract_eval(*, dtype: Any, shape: tuple[int, ...], dimension: int) -> ShapedArray:
    if dtypes.is_bool(dtype):
        raise TypeError("iota: the dtype must be numeric, got bool")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota: dimension {dimension} is not an axis of shape {shape}")
    return ShapedArray(shape, dtype)


def _iota_vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    return iota_p.bind(**params), None


iota_p = Primitive(
    "iota",
    tags=("cheap", "exact"),
    abstract_eval=_iota_abstract_eval,
    vmap=_iota_vmap,
    doc="Return an array in which each element is its index along one axis.",
)
# Only vectors are compiled: NumPy's loop for them is not vectorised. Other arrays are views of a vector.
impl_rules.register(iota_p, _iota_impl, large=lambda avals, *, dtype, shape, dimension: len(shape) == 1)
defzero(iota_p)
