"""Python scalars, and arrays of rank 0 with their values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, config, dtypes
from corejax.extend.messages import called_function
from corejax.extend.transforms import structural
from corejax.extend.types import SymbolicDim

__all__ = ["beyond", "fill_scalar", "is_python_scalar", "make_scalar"]

PYTHON_SCALARS = frozenset({bool, int, float, complex})


def is_python_scalar(x: Any) -> bool:
    """Return whether a value is exactly a `bool`, `int`, `float` or `complex`."""
    return type(x) in PYTHON_SCALARS


def is_array(x: Any) -> bool:
    """Return whether a value is an array or a tracer."""
    return type(x) is Array or isinstance(x, Tracer)


@functools.cache
def scalar_maker(dtype: np.dtype[Any], weak: bool = False) -> Callable[[Any], Array]:
    """Return a function from Python scalars to rank-0 arrays of one type.

    It raises OverflowError for an integer that does not fit; a float that does not fit becomes infinite. Under
    `config.x64_compat` numbers wrap, or become the closest integer, as in JAX.
    """
    if dtypes.is_extended(dtype):
        raise dtypes.no_numbers(dtype, called_function() or "full")
    aval = ShapedArray((), dtype, weak)
    limit = float(dtypes.finfo(dtype).max) if dtypes.is_float(dtype) else 0.0

    def make(value: Any) -> Array:
        try:
            return Array(np.array(value, dtype), aval)
        except OverflowError:
            return Array(_wrapped(value, dtype), aval)

    def make_float(value: Any) -> Array:
        if type(value) is not complex and -limit <= value <= limit:
            return Array(np.array(value, dtype), aval)
        return make_silently(value)

    def make_silently(value: Any) -> Array:
        try:
            with np.errstate(all="ignore"):
                return Array(np.array(value, dtype), aval)
        except (OverflowError, TypeError):  # an integer beyond 64-bit floats; a complex number
            raise _out_of_bounds(value, dtype) from None

    def make_narrow(value: Any) -> Array:  # NumPy does not check the range of ml_dtypes' integers
        if not info.min <= value <= info.max:
            value = _wrapped(value, dtype)
        return Array(np.array(value, dtype), aval)

    if dtypes.is_integer(dtype) and dtypes.iinfo(dtype).bits < 8:
        info = dtypes.iinfo(dtype)
        return make_narrow
    return make_float if dtypes.is_float(dtype) else make_silently if dtypes.is_complex(dtype) else make


def _wrapped(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an integer modulo the range of a dtype, and an infinite float as the closest integer.

    Raises:
        OverflowError: the setting `x64_compat` is off, or the default integer dtype does not hold the integer, either.
    """
    info, default = dtypes.iinfo(dtype), dtypes.iinfo(dtypes.scalar_dtype(int))
    if not config.x64_compat or (type(value) is int and not default.min <= value <= default.max):
        raise _out_of_bounds(value, dtype) from None
    if type(value) is int:
        value = (value - info.min) % (info.max - info.min + 1) + info.min
    return np.array(min(max(value, info.min), info.max), dtype)


def _out_of_bounds(value: Any, dtype: np.dtype[Any]) -> Exception:
    called = called_function()
    start = f"{called}: " if called else ""
    if isinstance(value, complex):
        return TypeError(f"{start}the complex number {value} cannot be converted to {dtype.name}")
    shown = f"integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) >= 2**128 else value
    return OverflowError(f"{start}Python number {shown} is out of bounds for {dtype.name}")


def beyond(value: Any, dtype: np.dtype[Any]) -> int:
    """Return 1 if a Python integer exceeds all numbers of an integer dtype, -1 if it is below them, and 0 otherwise."""
    if type(value) is not int or not dtypes.is_integer(dtype):
        return 0
    info = dtypes.iinfo(dtype)
    least: int = info.min
    greatest: int = info.max
    return (value > greatest) - (value < least)


def make_scalar(value: Any, dtype: np.dtype[Any], weak: bool = False) -> Array:
    """Return a Python scalar, or the symbolic size of an axis, as a rank-0 array.

    Raises:
        OverflowError: the dtype does not hold the integer.
    """
    if isinstance(value, SymbolicDim):
        return structural.astype(value.__corejax_array__(), dtype)  # type: ignore[return-value]  # tracers are Arrays
    return scalar_maker(dtype, weak)(value)


def fill_scalar(value: Any, dtype: np.dtype[Any], weak: bool = False) -> Array:
    """Return a scalar to fill an array with: as `make_scalar`, and also 0 of an extended dtype.

    Raises:
        OverflowError: the dtype does not hold the integer.
        TypeError: the dtype is extended, and the number is not 0.
    """
    if dtypes.is_extended(dtype) and type(value) is int and value == 0:
        return Array(np.zeros((), dtype), ShapedArray((), dtype))
    return make_scalar(value, dtype, weak)
