"""Create arrays from bytes and strings, and read and write NumPy's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from corejax.extend import Array
from corejax_lax_basic import lax
from corejax_numpy.arguments import canonical_dtype
from corejax_numpy.creation import array


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """Create an array from an object with the buffer interface, as a copy.

    Args:
        buffer: `bytes`, `bytearray`, `memoryview`, or a NumPy array.
        dtype: dtype of the data; `float` and `int` are 64 bits wide in the buffer, and of the default width in the
            result.
        count: the number of elements to read; -1, the default, reads all.
        offset: the byte at which to start, 0 by default.

    Raises:
        TypeError: the object does not have the buffer interface.
        ValueError: the buffer is too small, or its size is not a multiple of the element size.
    """
    if isinstance(buffer, Array):
        raise TypeError("frombuffer: an Array is not a buffer; use asarray, or the bytes of a NumPy array")
    try:
        numbers = np.frombuffer(buffer, _numpy_dtype(dtype), count, offset)
    except ValueError as error:
        size = memoryview(buffer).nbytes
        raise ValueError(f"frombuffer: {error}; {size} bytes, offset {offset}, count {count}") from None
    return _as_array(numbers, dtype)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """Create an array from numbers in a string.

    Args:
        string: the string.
        dtype: dtype of the numbers; by default the default floating dtype.
        count: the number of elements to read; -1, the default, reads all.
        sep: the separator between the numbers.

    Raises:
        TypeError: `string` is not a string.
        ValueError: the string contains something other than numbers, or `sep` is empty.
    """
    if not isinstance(string, str):
        raise TypeError(f"fromstring takes a string, got {type(string).__name__}; for bytes use frombuffer")
    if not sep:
        raise ValueError("fromstring: `sep` must not be empty; for bytes use frombuffer")
    try:
        numbers = np.fromstring(string, _numpy_dtype(dtype), count, sep=sep)
    except ValueError as error:
        raise ValueError(f"fromstring: {error}: {string[:60]!r} with {sep!r} between the numbers") from None
    return _as_array(numbers, dtype)


def _numpy_dtype(dtype: Any) -> Any:
    return dtype.dtype if hasattr(dtype, "dtype") and not isinstance(dtype, type) else np.dtype(dtype)


def _as_array(numbers: np.ndarray, dtype: Any) -> Any:
    return array(numbers, canonical_dtype(dtype))


def _unsupported(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}: reading changes the file or the iterator, and transformed functions must not have side effects; "
            f"use corejax.numpy.asarray(numpy.{name}(...)) outside them"
        )

    doc = f"""Raise NotImplementedError; use `asarray(numpy.{name}(...))` instead.

    Raises:
        NotImplementedError: always.
    """
    lax.named(function, name, doc)
    return function


fromfile = _unsupported("fromfile")
fromiter = _unsupported("fromiter")


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format `.npy`; see `numpy.save`."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several named arrays to one file in NumPy's format `.npz`; see `numpy.savez`."""
    arrays = [np.asarray(x) for x in args]
    named: dict[str, Any] = {name: np.asarray(x) for name, x in kwds.items()}
    if duplicates := sorted(set(named) & {f"arr_{i}" for i in range(len(arrays))}):
        raise ValueError(f"savez: arrays without names are saved as arr_0 and so on, got {duplicates} as names")
    np.savez(file, *arrays, **named)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read a file that `save` or `savez` wrote; see `numpy.load`.

    Returns:
        An array; for a `.npz` file NumPy's mapping from names to NumPy arrays. NumPy's format has no name for
        bfloat16, so elements of two bytes without a type are read as bfloat16.
    """
    data = np.load(file, *args, **kwargs)
    if not isinstance(data, np.ndarray):
        return data
    return array(data.view(ml_dtypes.bfloat16) if data.dtype == np.dtype("V2") else data)
