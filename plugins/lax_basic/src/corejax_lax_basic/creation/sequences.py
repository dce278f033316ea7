"""Arrays from nested sequences of numbers and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, as_array, dtypes, get_aval, is_array_like
from corejax.extend.messages import called_function
from corejax.extend.types import array_method
from corejax_lax_basic._base.promotion import result_type
from corejax_lax_basic._promotion import as_operand, convert_operand
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.joining import concatenate

__all__ = ["from_sequence"]


def from_sequence(sequence: Sequence[Any], dtype: np.dtype[Any] | None = None, *, name: str = "array") -> Any:
    """Return an array with the elements of nested lists and tuples, or of a range.

    Args:
        sequence: a sequence of numbers, of arrays of one shape, or of such sequences.
        dtype: dtype of the result; None for what promotion gives, with the default width for Python's numbers.
        name: the function that error messages name.

    Raises:
        TypeError: an element is no number and no array, or cannot be converted to the dtype.
        ValueError: the elements of a sequence have several shapes.
        OverflowError: the dtype does not hold a Python int.
    """
    if type(sequence) is range:
        sequence = list(sequence)
    leaves = list(_leaves(sequence))
    if any(map(_stands_for, {*map(type, leaves)})):
        return from_sequence(_with_arrays(sequence), dtype, name=name)
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(f"{name}: {x!r} of type {type(x).__name__} is not a number or an array of numbers")
    if dtype is None:
        dtype = result_type(*leaves) if leaves else dtypes.default_float_dtype()
        dtype = dtypes.canonicalize_dtype(dtype)
    if dtypes.is_extended(dtype) or any(isinstance(x, Tracer) for x in leaves):
        return _stacked(name, sequence, dtype)
    return _from_numbers(name, _to_numpy(sequence), dtype)


def _leaves(sequence: Sequence[Any]) -> Iterator[Any]:
    for x in sequence:
        if isinstance(x, list | tuple):
            yield from _leaves(x)
        else:
            yield x


def _with_arrays(sequence: Sequence[Any]) -> list[Any]:
    """Return nested sequences with arrays in place of objects that represent one, such as symbolic sizes."""
    return [
        _with_arrays(x) if isinstance(x, list | tuple) else as_array(x) if _stands_for(type(x)) else x for x in sequence
    ]


def _stands_for(kind: type) -> bool:
    return array_method(kind) is not None


def _to_numpy(sequence: Sequence[Any]) -> list[Any]:
    """Return nested sequences with NumPy arrays in place of arrays, for NumPy to stack."""
    return [_to_numpy(x) if isinstance(x, list | tuple) else np.asarray(x) if type(x) is Array else x for x in sequence]


def _from_numbers(name: str, sequence: list[Any], dtype: np.dtype[Any]) -> Array:
    """Return nested lists of numbers as an array, converted on the host."""
    try:
        with np.errstate(all="ignore"):
            value = np.array(sequence, dtype)
    except (OverflowError, TypeError, ValueError) as error:
        name = called_function() or name
        if isinstance(error, OverflowError):
            raise OverflowError(f"{name}: a Python number in the list is out of bounds for {dtype.name}") from None
        if isinstance(error, TypeError):
            raise TypeError(f"{name}: the list cannot be converted to {dtype.name}: {error}") from None
        raise ValueError(
            f"{name}: nested sequences of unequal lengths cannot be converted to an array: {sequence!r}"
        ) from None
    return Array(value, get_aval(value))


def _stacked(name: str, sequence: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    """Stack arrays and tracers by the primitives that join arrays."""
    parts = [
        _stacked(name, x, dtype) if isinstance(x, list | tuple) else convert_operand(as_operand(x), dtype)
        for x in sequence
    ]
    if not parts:
        return Array(np.zeros((0,), dtype))
    if len({x.shape for x in parts}) > 1:
        shown = ", ".join(str(x.shape) for x in parts[:8])
        raise ValueError(f"{name}: the elements of a sequence must have the same shape, got {shown}")
    return concatenate([expand_dims(convert_element_type(x, dtype), (0,)) for x in parts], 0)
