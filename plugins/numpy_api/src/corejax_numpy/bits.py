"""The bytes of arrays taken for elements of another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import canonical_dtype


def view(x: Any, dtype: Any = None, type: None = None) -> Any:
    """The bytes of `x` as elements of a dtype; `x` itself for None.

    Returns:
        An array of the shape of `x`, but for the last axis where the widths differ.

    Raises:
        NotImplementedError: `type` is given: arrays have one class.
        ValueError: the widths differ, and `x` has no axis, or its last one has no whole number of items.
        TypeError: a dtype is a complex one whose parts have another width than the other dtype's elements.
    """
    if type is not None:
        raise NotImplementedError(f"view: arrays have one class, type is None, got {type!r}")
    dtype = canonical_dtype(dtype)
    if dtype is None or dtype == x.dtype:
        return x
    old, new = _bits(x.dtype), _bits(dtype)
    if old != new and (not x.ndim or x.shape[-1] * old % new):
        raise ValueError(
            f"view: {x.aval.str_short()} has no last axis whose bytes are a whole number of items of {dtype.name}"
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
    if old > new:  # a new last axis has the parts of an item
        parts = lax.bitcast_convert_type(x, dtype)
        return lax.reshape(parts, (*x.shape[:-1], x.shape[-1] * old // new))
    groups = lax.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    return lax.bitcast_convert_type(groups, dtype)


def _bits(dtype: Any) -> int:
    """Bits of one element."""
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).bits)
    return int(dtypes.finfo(dtype).bits) if dtypes.is_float(dtype) else dtype.itemsize * 8


def _paired(x: Any) -> Any:
    """Pairs along the last axis as complex numbers."""
    pairs = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
    real, imag = (lax.index_in_dim(pairs, i, pairs.ndim - 1, keepdims=False) for i in (0, 1))
    return lax.complex(real, imag)


def byteswap(x: Any) -> Any:
    """The elements with their bytes in reverse order; those of one byte or less as they are."""
    if x.dtype.itemsize == 1:
        return x
    if dtypes.is_complex(x.dtype):
        return lax.complex(byteswap(lax.real(x)), byteswap(lax.imag(x)))
    parts = lax.bitcast_convert_type(x, np.uint8)
    return lax.bitcast_convert_type(lax.rev(parts, (x.ndim,)), x.dtype)
