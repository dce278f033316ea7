"""Arrays out of bytes and text, and in NumPy's files."""

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
    """The numbers in an object with the buffer interface, as a copy.

    Args:
        buffer: `bytes`, `bytearray`, `memoryview`, an array.
        dtype: what is in it; `float` and `int` are 64 bits wide there and of the default width in the result.
        count: how many numbers; -1 is all of them.
        offset: at which byte they begin.

    Raises:
        TypeError: it is no buffer.
        ValueError: there are fewer bytes, or they are no whole numbers.
    """
    if isinstance(buffer, Array):
        raise TypeError("frombuffer: an Array is no buffer; use asarray, or bytes of a NumPy array")
    try:
        found = np.frombuffer(buffer, _numpy_dtype(dtype), count, offset)
    except ValueError as error:
        size = memoryview(buffer).nbytes
        raise ValueError(f"frombuffer: {error}; {size} bytes, offset {offset}, count {count}") from None
    return _held(found, dtype)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """The numbers in a text.

    Args:
        string: the text.
        dtype: dtype of the numbers.
        count: how many; -1 is all of them.
        sep: what is between them.

    Raises:
        ValueError: the text has something else in it; `sep` is empty.
    """
    if not isinstance(string, str):
        raise TypeError(f"fromstring takes a text, got {type(string).__name__}; of bytes use frombuffer")
    if not sep:
        raise ValueError("fromstring: `sep` is what separates the numbers, got ''; of bytes use frombuffer")
    try:
        found = np.fromstring(string, _numpy_dtype(dtype), count, sep=sep)
    except ValueError as error:
        raise ValueError(f"fromstring: {error}: {string[:60]!r} with {sep!r} between the numbers") from None
    return _held(found, dtype)


def _numpy_dtype(dtype: Any) -> Any:
    return dtype.dtype if hasattr(dtype, "dtype") and not isinstance(dtype, type) else np.dtype(dtype)


def _held(found: np.ndarray, dtype: Any) -> Any:
    return array(found, canonical_dtype(dtype))


def _not_here(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}: reading changes the file or the iterator, which functions that are transformed may not do; "
            f"use corejax.numpy.asarray(numpy.{name}(...)) outside of them"
        )

    doc = f"""Refused: see `numpy.{name}`, and `asarray` of its result.

    Raises:
        NotImplementedError: always.
    """
    return lax.named(function, name, doc)


fromfile = _not_here("fromfile")
fromiter = _not_here("fromiter")


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file, in NumPy's format `.npy`; see `numpy.save`."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to one file, in NumPy's format `.npz`, by their names; see `numpy.savez`."""
    arrays = [np.asarray(x) for x in args]
    named = {name: np.asarray(x) for name, x in kwds.items()}
    if unnamed := sorted(set(named) & {f"arr_{i}" for i in range(len(arrays))}):
        raise ValueError(f"savez: arrays without names are called arr_0 and so on, got {unnamed} as names too")
    np.savez(file, **{f"arr_{i}": x for i, x in enumerate(arrays)}, **named)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read what `save` or `savez` wrote; see `numpy.load`.

    Returns:
        An array; of a `.npz` file NumPy's mapping from names to NumPy arrays. NumPy's format has no name for
        bfloat16: two bytes of no known type are read as that.
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return array(found.view(ml_dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)
