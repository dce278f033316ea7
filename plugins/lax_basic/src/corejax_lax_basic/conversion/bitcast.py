"""bitcast_convert_type: the same bits as elements of another dtype.

bitcast_convert_type : a[*s] -> b[*s], a[*s] -> b[*s,n] if b is narrower, a[*s,n] -> b[*s] if b is wider
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    defzero,
    dtypes,
    get_aval,
    impl_rules,
    move_batch_axis,
    vmap_rules,
)
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.related_dtypes import itemsize_bits
from corejax_lax_basic._base.requested_dtypes import requested_dtype

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["bitcast_convert_type", "bitcast_convert_type_p"]


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """Return the bits of `operand` as elements of another dtype (StableHLO `bitcast_convert`).

    Args:
        operand: integer or floating-point array, or an array of any dtype that already is `new_dtype`.
        new_dtype: an integer or floating-point dtype. A narrower one adds a last axis, which holds the parts of each
            element, lowest bits first; a wider one removes the last axis, whose size has to match.

    Returns:
        Array of dtype `new_dtype`, strongly typed. The derivative is zero.

    Raises:
        TypeError: a dtype is boolean or complex, and the dtypes differ.
        ValueError: the last axis does not make up elements of the wider dtype, or `new_dtype` is None.
    """
    if new_dtype is None:
        raise ValueError("bitcast_convert_type: dtype must be specified, got None")
    dtype = requested_dtype(new_dtype)
    aval = get_aval(operand)
    if aval.dtype == dtype and not aval.weak_type:
        return as_array(operand)
    return bitcast_convert_type_p.bind(operand, new_dtype=dtype)


def _prepared(avals: Avals, *, new_dtype: np.dtype[Any]) -> HostCode | None:
    [x] = avals
    same = x.dtype.itemsize == new_dtype.itemsize and {x.dtype.kind, new_dtype.kind} <= set("iuf")
    return HostCode("{out} = {0}.view({dtype})", dtype=new_dtype) if same else None


def _impl(x: Any, *, new_dtype: np.dtype[Any]) -> Any:
    if x.dtype == new_dtype:
        return x
    old, new = itemsize_bits(x.dtype), itemsize_bits(new_dtype)
    x = np.ascontiguousarray(x).reshape(x.shape)
    if old >= 8 and new >= 8:
        if old == new:
            return x.view(new_dtype)
        return x[..., None].view(new_dtype) if old > new else x.view(new_dtype).reshape(x.shape[:-1])
    parts = _parts(x, old, min(old, new))
    if new >= 8:
        return _bytes(parts, old).view(new_dtype).reshape(x.shape[:-1])
    if old > new:
        return parts.view(new_dtype)
    if old == new:
        return parts.reshape(x.shape).view(new_dtype)
    return _joined(parts.reshape(x.shape), old).view(new_dtype).reshape(x.shape[:-1])


def _parts(x: Any, old: int, width: int) -> Any:
    """Split each element into numbers of `width` < 8 bits along a new last axis, lowest first; a byte for each."""
    octets = x[..., None].view(np.uint8)
    steps = np.arange(0, min(old, 8), width, dtype=np.uint8)
    return ((octets[..., None] >> steps) & np.uint8(2**width - 1)).reshape(*x.shape, -1)


def _joined(parts: Any, width: int) -> Any:
    """Join numbers of `width` bits along the last axis, lowest first, to one byte."""
    steps = np.arange(parts.shape[-1], dtype=np.uint8) * np.uint8(width)
    return np.bitwise_or.reduce(parts << steps, axis=-1, keepdims=True).astype(np.uint8)


def _bytes(parts: Any, width: int) -> Any:
    """Join numbers as `_joined`, eight bits at a time."""
    shape = parts.shape[:-2]
    flat = parts.reshape(*shape, -1, 8 // width)
    return np.ascontiguousarray(_joined(flat, width)[..., 0])


@takes("bitcast_convert_type", 1)
def _abstract_eval(x: ShapedArray, *, new_dtype: np.dtype[Any]) -> ShapedArray:
    if x.dtype == new_dtype:
        return x.strip_weak_type()
    for dtype in (x.dtype, new_dtype):
        if dtypes.is_bool(dtype) or dtypes.is_complex(dtype):
            raise TypeError(
                f"bitcast_convert_type takes integers and floating-point numbers, got {x.dtype.name} and "
                f"{new_dtype.name}; "
                "for booleans use x.astype, for complex numbers take lax.real and lax.imag"
            )
    old, new = itemsize_bits(x.dtype), itemsize_bits(new_dtype)
    if old >= new and old % new == 0:
        return ShapedArray(x.shape if old == new else (*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] * old != new:
        raise ValueError(
            f"bitcast_convert_type: {new_dtype.name} has {new} bits and {x.dtype.name} {old}: the last axis has to "
            f"be of size {new / old:g}, got an operand of shape {x.shape}"
        )
    return ShapedArray(x.shape[:-1], new_dtype)


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    abstract_eval=_abstract_eval,
    doc="Return the same bits as elements of another dtype; a last axis is added or removed if their number changes.",
)
impl_rules.register(bitcast_convert_type_p, _impl, prepared=_prepared)
defzero(bitcast_convert_type_p)


@vmap_rules.register(bitcast_convert_type_p)
def _vmap(axis_size: int, vals: Any, dims: Any, *, new_dtype: np.dtype[Any]) -> Any:
    x = move_batch_axis(axis_size, dims[0], 0, vals[0])  # not last, where an axis may be added or removed
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), 0
