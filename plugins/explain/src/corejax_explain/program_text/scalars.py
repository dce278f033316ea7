"""NumPy scalars from text, exact to the bit."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from corejax.extend import dtypes

Scalar = Any  # a NumPy scalar; NumPy's annotations do not distinguish scalars from arrays

# A real number without sign, as `jaxpr_text` or Python prints it.
UNSIGNED = r"(?:nan\(0x[0-9a-fA-F]+\)|nan|inf|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
_COMPLEX = re.compile(rf"\(([+-]?{UNSIGNED})([+-]{UNSIGNED})j\)")
INT = re.compile(r"[+-]?\d+")


def scalar_from_text(text: str, dtype: np.dtype[Any]) -> Scalar:
    """Convert a text to a NumPy scalar of a dtype.

    Raises:
        ValueError: the text is not a value of that dtype; the message has the reason.
    """
    if (text in ("True", "False")) is not dtypes.is_bool(dtype):
        raise ValueError(f"{text} is not of dtype {dtype.name}: the values of dtype bool are `True` and `False`")
    if dtypes.is_bool(dtype):
        return np.bool_(text == "True")
    if dtypes.is_integer(dtype):
        return _int_from_text(text, dtype)
    parts = _COMPLEX.fullmatch(text)
    if not dtypes.is_complex(dtype):
        if parts:
            raise ValueError(f"{text} is complex, not {dtype.name}")
        return _real_from_text(text, dtype)
    half = dtypes.real_dtype_of(dtype)
    texts = parts.groups() if parts else (text, "0")
    bits = b"".join(_real_from_text(part, half).tobytes() for part in texts)
    return np.frombuffer(bits, dtype)[0]


def _int_from_text(text: str, dtype: np.dtype[Any]) -> Scalar:
    if not INT.fullmatch(text):
        raise ValueError(f"{text} is not an integer, as {dtype.name} needs")
    number, limits = int(text), dtypes.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise ValueError(f"{text} does not fit {dtype.name}, which holds {limits.min} to {limits.max}")
    return dtype.type(number)


def _real_from_text(text: str, dtype: np.dtype[Any]) -> Scalar:
    if "nan" in text:
        if "(" in text:
            bits = int(text.partition("(")[2].rstrip(")"), 16)
            if bits >> (8 * dtype.itemsize):
                raise ValueError(f"{text} has more bits than {dtype.name}")
            return np.frombuffer(bits.to_bytes(dtype.itemsize, sys.byteorder), dtype)[0]
        nan = np.full((), np.nan, dtype)
        value = (np.negative(nan) if text.startswith("-") else nan)[()]
    else:
        with np.errstate(over="ignore"):
            value = dtype.type(float(text))
    is_expected = np.isnan if "nan" in text else np.isinf if "inf" in text else np.isfinite
    if not is_expected(value):
        raise ValueError(f"{text} does not fit {dtype.name}")
    return value
