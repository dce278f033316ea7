"""The bits of elements: packing into bytes, byte order, and reinterpretation as another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, canonical_dtype, like, static_int, to_bool
from corejax_numpy.creation import asarray
from corejax_numpy.manipulation import moveaxis, ravel
from corejax_numpy.reductions import sum


def view(x: Any, dtype: Any = None, type: None = None) -> Any:
    """Reinterpret the bytes of `x` as elements of another dtype; None returns `x` unchanged.

    Args:
        x: the array.
        dtype: the new dtype.
        type: not supported; must be None.

    Returns:
        An array of the shape of `x`; the size of the last axis changes if the widths differ.

    Raises:
        NotImplementedError: `type` is given; arrays have only one class.
        ValueError: the widths differ, and `x` is a scalar, or its last axis does not hold a whole number of new
            elements.
        TypeError: a dtype is complex, and its parts differ in width from the elements of the other dtype.
    """
    if type is not None:
        raise NotImplementedError(f"view: arrays have only one class, so type must be None, got {type!r}")
    dtype = canonical_dtype(dtype)
    if dtype is None or dtype == x.dtype:
        return x
    old, new = _bits(x.dtype), _bits(dtype)
    if old != new and (not x.ndim or x.shape[-1] * old % new):
        raise ValueError(
            f"view: the last axis of {x.aval.str_short()} does not hold a whole number of {dtype.name} items"
        )
    if dtypes.is_bool(x.dtype):
        x = lax.convert_element_type(x, np.uint8)
    if dtypes.is_complex(x.dtype):
        parts = [lax.expand_dims(part(x), (x.ndim,)) for part in (lax.real, lax.imag)]
        pairs = lax.concatenate(parts, x.ndim)
        return view(lax.reshape(pairs, (*x.shape[:-1], -1) if x.ndim else (2,)), dtype)
    if dtypes.is_complex(dtype):
        return _paired(view(x, dtypes.real_dtype_of(dtype)))
    if dtypes.is_bool(dtype):
        return lax.ne(view(x, np.uint8), lax.make_scalar(0, np.dtype(np.uint8)))
    if old == new:
        return lax.bitcast_convert_type(x, dtype)
    if old > new:  # the bitcast splits each item along a new last axis
        parts = lax.bitcast_convert_type(x, dtype)
        return lax.reshape(parts, (*x.shape[:-1], x.shape[-1] * old // new))
    groups = lax.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    return lax.bitcast_convert_type(groups, dtype)


def _bits(dtype: Any) -> int:
    """Return the number of bits of an element."""
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).bits)
    return int(dtypes.finfo(dtype).bits) if dtypes.is_float(dtype) else dtype.itemsize * 8


def _paired(x: Any) -> Any:
    """Return pairs along the last axis as complex numbers."""
    pairs = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
    real, imag = (lax.index_in_dim(pairs, i, pairs.ndim - 1, keepdims=False) for i in (0, 1))
    return lax.complex(real, imag)


def byteswap(x: Any) -> Any:
    """Reverse the bytes of each element; elements of one byte or less are returned unchanged."""
    if x.dtype.itemsize == 1:
        return x
    if dtypes.is_complex(x.dtype):
        return lax.complex(byteswap(lax.real(x)), byteswap(lax.imag(x)))
    parts = lax.bitcast_convert_type(x, np.uint8)
    return lax.bitcast_convert_type(lax.rev(parts, (x.ndim,)), x.dtype)


def _powers(name: str, bitorder: str) -> Any:
    """Return the bits of a byte in their order."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder is 'big' or 'little', got {bitorder!r}")
    bits = np.left_shift(1, np.arange(8)).astype(np.uint8)
    return asarray(bits[::-1] if bitorder == "big" else bits)


def _axis_last(name: str, x: Any, axis: int | None) -> tuple[Any, int]:
    if axis is None:
        return ravel(x), 0
    axis = canonical_axis(axis, x.ndim, name=name)
    return moveaxis(x, axis, -1), axis


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Pack elements into bytes: each element becomes one bit, which is set if the element differs from zero.

    Args:
        a: an array of booleans or integers.
        axis: the axis to pack, padded with zeros to a multiple of 8; None, the default, flattens the array first.
        bitorder: "big" (the default) stores the first element in the highest bit, "little" in the lowest.

    Raises:
        TypeError: the array has another dtype.
        ValueError: the axis does not exist, or the bit order is unknown.
    """
    x = array_argument("packbits", a)
    if not dtypes.is_bool(x.dtype) and not dtypes.is_integer(x.dtype):
        raise TypeError(f"packbits takes booleans or integers, got {x.aval.str_short()}")
    bits = _powers("packbits", bitorder)
    x, axis = _axis_last("packbits", lax.convert_element_type(to_bool(x), np.uint8), axis)
    if (rest := -x.shape[-1] % 8) != 0:
        x = lax.pad(x, like(x, 0), [(0, 0, 0)] * (x.ndim - 1) + [(0, rest, 0)])
    x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 8))
    x = lax.mul(x, lax.broadcast_in_dim(bits, x.shape, (x.ndim - 1,)))
    return moveaxis(sum(x, -1, np.uint8), -1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """Unpack bytes into bits, as zeros and ones of dtype uint8.

    Args:
        a: an array of uint8.
        axis: the axis to unpack; None, the default, flattens the array first.
        count: the number of bits along the axis: further bits are dropped, and missing ones are zeros. A negative
            number is that of the bits to drop. By default all bits are returned.
        bitorder: "big" (the default) returns the highest bit first, "little" the lowest.

    Raises:
        TypeError: the array has another dtype.
        ValueError: the axis does not exist, or the bit order is unknown.
    """
    x = array_argument("unpackbits", a)
    if x.dtype != np.uint8:
        raise TypeError(f"unpackbits takes bytes (uint8), got {x.aval.str_short()}")
    bits = _powers("unpackbits", bitorder)
    x, axis = _axis_last("unpackbits", x, axis)
    spread = (*x.shape, 8)
    x = lax.broadcast_in_dim(x, spread, tuple(range(x.ndim)))
    x = lax.bitwise_and(x, lax.broadcast_in_dim(bits, spread, (len(spread) - 1,)))
    x = lax.convert_element_type(lax.ne(x, like(x, 0)), np.uint8)
    x = lax.reshape(x, (*spread[:-2], spread[-2] * 8))
    if count is not None:
        size, count = x.shape[-1], static_int("unpackbits", count, "count")
        count = max(size + count, 0) if count < 0 else count
        change = [(0, 0, 0)] * (x.ndim - 1) + [(0, count - size, 0)]
        x = lax.pad(x, like(x, 0), change)
    return moveaxis(x, -1, axis)
