"""Booleans packed into bytes, eight in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, like, static_int, to_bool
from corejax_numpy.creation import asarray
from corejax_numpy.manipulation import moveaxis, ravel
from corejax_numpy.reductions import sum


def _bits(name: str, bitorder: str) -> Any:
    """The bits of a byte in their order."""
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
    """Whether elements differ from zero, as bits of bytes.

    Args:
        a: an array of booleans or integers.
        axis: the axis; None is the flattened array. It is continued with zeros to a multiple of 8.
        bitorder: "big": the first element is the highest bit; "little": the lowest.

    Raises:
        TypeError: the array is of another dtype.
        ValueError: there is no such axis or order.
    """
    x = array_argument("packbits", a)
    if not dtypes.is_bool(x.dtype) and not dtypes.is_integer(x.dtype):
        raise TypeError(f"packbits takes booleans or integers, got {x.aval.str_short()}")
    bits = _bits("packbits", bitorder)
    x, axis = _axis_last("packbits", lax.convert_element_type(to_bool(x), np.uint8), axis)
    if (rest := -x.shape[-1] % 8) != 0:
        x = lax.pad(x, like(x, 0), [(0, 0, 0)] * (x.ndim - 1) + [(0, rest, 0)])
    x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 8))
    x = lax.mul(x, lax.broadcast_in_dim(bits, x.shape, (x.ndim - 1,)))
    return moveaxis(sum(x, -1, np.uint8), -1, axis)


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """The bits of bytes as zeros and ones.

    Args:
        a: an array of uint8.
        axis: the axis; None is the flattened array.
        count: how many bits along it: the last ones are left out, or zeros put behind; negative: how many to leave out.
        bitorder: "big": the highest bit is first; "little": the lowest.

    Raises:
        TypeError: the array is of another dtype.
        ValueError: there is no such axis or order.
    """
    x = array_argument("unpackbits", a)
    if x.dtype != np.uint8:
        raise TypeError(f"unpackbits takes bytes (uint8), got {x.aval.str_short()}")
    bits = _bits("unpackbits", bitorder)
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
