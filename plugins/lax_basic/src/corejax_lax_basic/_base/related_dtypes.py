"""Dtypes that go with a dtype, and what it is beside its kind: `corejax.dtypes.issubdtype` and its kin."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from corejax.extend import config, dtypes

DType = np.dtype[Any]


def default_uint_dtype(bits: int | None = None) -> DType:
    """uint32 or uint64, by `bits` or else by the setting."""
    return dtypes.DEFAULTS["u"][bits or config.default_dtype_bits]


def default_complex_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `complex`: complex64 or complex128, by `bits` or else the setting."""
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
    ).type  # None: a float, as NumPy's


@functools.lru_cache(maxsize=1024)
def issubdtype(d: Any, category: Any) -> bool:
    """`numpy.issubdtype`, with bfloat16 under `numpy.floating`, int4 under `numpy.signedinteger`, and so on.

    Args:
        d: a dtype, its name, or a scalar type (abstract ones such as `numpy.integer` too).
        category: as `d`.
    """
    left, right = _scalar_type(d), _scalar_type(category)
    if left.__module__.partition(".")[0] == "ml_dtypes":
        return right is left or right in _ANCESTORS[dtypes.KINDS[np.dtype(left)]]
    return bool(np.issubdtype(left, right))


def complex_dtype_of(d: Any) -> DType:
    """complex128 of 64-bit types, complex64 of narrower ones; a complex dtype is its own."""
    d = dtypes.dtype(d)
    return d if dtypes.KINDS[d] == "c" else dtypes.DEFAULTS["c"][64 if d in dtypes.WIDE else 32]


def inexact_dtype_of(d: Any) -> DType:
    """Dtype of `sin(x)`: an inexact dtype is its own; float64 of 64-bit integers, float32 of narrower ones and bool."""
    found = dtypes.dtype(d)
    if dtypes.KINDS[found] in "fc":
        return found
    return dtypes.canonicalize_dtype(dtypes.DEFAULTS["f"][64 if found in dtypes.WIDE else 32])


def itemsize_bits(d: Any) -> int:
    """How many bits one element takes; a boolean takes 8.

    Raises:
        TypeError: it names no dtype of numbers.
    """
    found = dtypes.dtype(d)
    if dtypes.is_bool(found):
        return 8
    bits = (dtypes.iinfo if dtypes.is_integer(found) else dtypes.finfo)(found).bits
    return 2 * int(bits) if dtypes.is_complex(found) else int(bits)


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of the kind of a dtype, or of what has one: bool, int, float or complex.

    Raises:
        TypeError: it is no dtype of numbers, and has none.
    """
    found = dtypes.dtype(x)
    if dtypes.is_bool(found):
        return bool
    return int if dtypes.is_integer(found) else complex if dtypes.is_complex(found) else float
