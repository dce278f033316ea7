"""Dtypes derived from a dtype, and predicates of dtypes: `corejax.dtypes.issubdtype` and similar functions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from corejax.extend import config, dtypes

DType = np.dtype[Any]


def default_float_dtype(bits: int | None = None) -> DType:
    """Return the dtype of a Python `float`: float32 or float64, for `bits` or by default the setting's width."""
    return dtypes.DEFAULTS["f"][bits or config.default_dtype_bits]


def default_int_dtype(bits: int | None = None) -> DType:
    """Return the dtype of a Python `int`: int32 or int64, for `bits` or by default the setting's width."""
    return dtypes.DEFAULTS["i"][bits or config.default_dtype_bits]


def default_uint_dtype(bits: int | None = None) -> DType:
    """Return uint32 or uint64, by `bits` or, if that is None, by the setting."""
    return dtypes.DEFAULTS["u"][bits or config.default_dtype_bits]


def default_complex_dtype(bits: int | None = None) -> DType:
    """Return the dtype of a Python `complex`: complex64 or complex128, by `bits` or, if it is None, the setting."""
    return dtypes.DEFAULTS["c"][bits or config.default_dtype_bits]


_ANCESTORS: dict[str, tuple[type, ...]] = {
    "i": (np.signedinteger, np.integer, np.number, np.generic),
    "u": (np.unsignedinteger, np.integer, np.number, np.generic),
    "f": (np.floating, np.inexact, np.number, np.generic),
}


def _scalar_type(d: Any) -> type:
    if isinstance(d, type) and issubclass(d, np.generic):
        return d
    return np.dtype(
        d if isinstance(d, type | str | np.dtype | None) else dtypes.dtype(d)
    ).type  # None is float64, as in NumPy


@functools.lru_cache(maxsize=1024)
def issubdtype(d: Any, category: Any) -> bool:
    """Return `numpy.issubdtype`, with bfloat16 under `numpy.floating`, int4 under `numpy.signedinteger`, and so on.

    Args:
        d: a dtype, its name, or a scalar type, which may be abstract such as `numpy.integer`.
        category: as `d`.
    """
    left, right = _scalar_type(d), _scalar_type(category)
    if left.__module__.partition(".")[0] == "ml_dtypes":
        return right is left or right in _ANCESTORS[dtypes.KINDS[np.dtype(left)]]
    return bool(np.issubdtype(left, right))


def complex_dtype_of(d: Any) -> DType:
    """Return complex128 for 64-bit types and complex64 for narrower ones; a complex dtype is returned unchanged."""
    d = dtypes.dtype(d)
    return d if dtypes.KINDS[d] == "c" else dtypes.DEFAULTS["c"][64 if d in dtypes.WIDE else 32]


def inexact_dtype_of(d: Any) -> DType:
    """Return the dtype of `sin(x)`: float64 for 64-bit integers, float32 for others and bool; inexact dtypes stay."""
    dtype = dtypes.dtype(d)
    if dtypes.KINDS[dtype] in "fc":
        return dtype
    return dtypes.canonicalize_dtype(dtypes.DEFAULTS["f"][64 if dtype in dtypes.WIDE else 32])


def itemsize_bits(d: Any) -> int:
    """Return the number of bits of one element; a boolean has 8.

    Raises:
        TypeError: `d` names no numeric dtype.
    """
    dtype = dtypes.dtype(d)
    if dtypes.is_bool(dtype):
        return 8
    bits = (dtypes.iinfo if dtypes.is_integer(dtype) else dtypes.finfo)(dtype).bits
    return 2 * int(bits) if dtypes.is_complex(dtype) else int(bits)


def scalar_type_of(x: Any) -> type:
    """Return Python's type for the kind of a dtype, or of a value's dtype: bool, int, float or complex.

    Raises:
        TypeError: `x` is no numeric dtype, and has none.
    """
    dtype = dtypes.dtype(x)
    if dtypes.is_bool(dtype):
        return bool
    return int if dtypes.is_integer(dtype) else complex if dtypes.is_complex(dtype) else float
