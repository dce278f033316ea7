"""Kinds of dtypes, their limits, and dtypes of a kind that go with one."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from corejax.dtypes._names import DEFAULTS, KINDS, WIDE, DType, canonicalize_dtype, dtype


def _kind_of(d: Any) -> str:
    try:
        return KINDS[d]
    except (KeyError, TypeError):
        return KINDS[dtype(d)]


def is_bool(d: Any) -> bool:
    """Whether the dtype is bool."""
    return _kind_of(d) == "b"


def is_integer(d: Any) -> bool:
    """Whether the dtype is a signed or unsigned integer (bool is not)."""
    return _kind_of(d) in "iu"


def is_unsigned(d: Any) -> bool:
    """Whether the dtype is an unsigned integer (bool is not)."""
    return _kind_of(d) == "u"


def is_float(d: Any) -> bool:
    """Whether the dtype is a real floating type, bfloat16 and the 8-bit ones included."""
    return _kind_of(d) == "f"


def is_complex(d: Any) -> bool:
    """Whether the dtype is complex."""
    return _kind_of(d) == "c"


def is_inexact(d: Any) -> bool:
    """Whether the dtype is floating or complex: whether values of it have tangents."""
    return _kind_of(d) in "fc"


_ANCESTORS: dict[str, tuple[type, ...]] = {
    "i": (np.signedinteger, np.integer, np.number, np.generic),
    "u": (np.unsignedinteger, np.integer, np.number, np.generic),
    "f": (np.floating, np.inexact, np.number, np.generic),
}


def _scalar_type(d: Any) -> type:
    if isinstance(d, type) and issubclass(d, np.generic):
        return d
    return np.dtype(d if isinstance(d, type | str | np.dtype | None) else dtype(d)).type  # None: a float, as NumPy's


@functools.lru_cache(maxsize=1024)
def issubdtype(d: Any, category: Any) -> bool:
    """`numpy.issubdtype`, with bfloat16 under `numpy.floating`, int4 under `numpy.signedinteger`, and so on.

    Args:
        d: a dtype, its name, or a scalar type (abstract ones such as `numpy.integer` too).
        category: as `d`.
    """
    left, right = _scalar_type(d), _scalar_type(category)
    if left.__module__.partition(".")[0] == "ml_dtypes":
        return right is left or right in _ANCESTORS[KINDS[np.dtype(left)]]
    return bool(np.issubdtype(left, right))


def finfo(d: Any) -> Any:
    """Limits of a floating or complex dtype, as `numpy.finfo`; bfloat16 and the 8-bit types included.

    Raises:
        TypeError: the dtype is not inexact.
    """
    if not is_inexact(d):
        raise TypeError(f"finfo is of floating and complex dtypes; {dtype(d).name} is not one (see iinfo)")
    return _finfo(real_dtype_of(d))


def iinfo(d: Any) -> Any:
    """Limits of an integer dtype, as `numpy.iinfo`; 1-, 2- and 4-bit types included.

    Raises:
        TypeError: the dtype is not an integer.
    """
    if not is_integer(d):
        raise TypeError(f"iinfo is of integer dtypes; {dtype(d).name} is not one (see finfo)")
    return _iinfo(dtype(d))


_finfo = functools.cache(ml_dtypes.finfo)
_iinfo = functools.cache(ml_dtypes.iinfo)


def real_dtype_of(d: Any) -> DType:
    """float32 of complex64, float64 of complex128; a real dtype is its own."""
    d = dtype(d)
    return DEFAULTS["f"][d.itemsize * 4] if KINDS[d] == "c" else d


def complex_dtype_of(d: Any) -> DType:
    """complex128 of 64-bit types, complex64 of narrower ones; a complex dtype is its own."""
    d = dtype(d)
    return d if KINDS[d] == "c" else DEFAULTS["c"][64 if d in WIDE else 32]


def inexact_dtype_of(d: Any) -> DType:
    """Dtype of `sin(x)`: an inexact dtype is its own; float64 of 64-bit integers, float32 of narrower ones and bool."""
    found = dtype(d)
    if KINDS[found] in "fc":
        return found
    return canonicalize_dtype(DEFAULTS["f"][64 if found in WIDE else 32])


def itemsize_bits(d: Any) -> int:
    """How many bits one element takes; a boolean takes 8.

    Raises:
        TypeError: it names no dtype of numbers.
    """
    found = dtype(d)
    if is_bool(found):
        return 8
    bits = (iinfo if is_integer(found) else finfo)(found).bits
    return 2 * int(bits) if is_complex(found) else int(bits)


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of the kind of a dtype, or of what has one: bool, int, float or complex.

    Raises:
        TypeError: it is no dtype of numbers, and has none.
    """
    found = dtype(x)
    if is_bool(found):
        return bool
    return int if is_integer(found) else complex if is_complex(found) else float
