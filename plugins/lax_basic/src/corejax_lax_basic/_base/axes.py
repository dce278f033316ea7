"""Shapes and axes as users write them, converted to tuples of `int`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from corejax.extend import Tracer
from corejax.extend.messages import called_function
from corejax.extend.types import as_dim

__all__ = ["canonical_shape", "is_several"]  # in `corejax.lax`, for other plugins

Ints = tuple[int, ...]

_ADVICE = "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."


def _named(what: str) -> str:
    """Return the names of a function and its argument; by default the function is the public one that was called."""
    called = "" if ": " in what else called_function()
    return f"{called}: {what}" if called else what


def integer(value: Any, what: str = "argument") -> int:
    """Return a static integer, such as an axis or a size.

    Raises:
        TypeError: it is not a static integer. The message names `what` with the function; for a traced value it says
            where the value comes from.
    """
    try:
        dim: int = as_dim(value)
    except (TypeError, ValueError) as error:
        if isinstance(value, Tracer) and isinstance(error, TypeError):
            error.add_note(f"{_named(what)} is a static integer.")
            raise
        text = f"{_named(what)} is an integer, got {value!r} of type {type(value).__name__}"
        raise TypeError(f"{text}, which cannot be interpreted as an integer") from None
    return dim


def _invalid_shape(shape: Any) -> TypeError:
    sizes = shape if isinstance(shape, tuple | list) else [shape]
    shown = ", ".join(repr(d) for d in sizes)
    shown = f"[{shown}]" if isinstance(shape, list) or len(sizes) == 1 else f"({shown})"
    message = "Shapes must be 1D sequences of concrete values of integer type"
    traced = next((d for d in sizes if isinstance(d, Tracer)), None)
    if traced is None:
        return TypeError(f"{_named(message)}, got {shown}.")
    error = TypeError(f"{message}, got {shown}.\n{_ADVICE}\n{traced.origin()}".rstrip("\n"))
    error.add_note(_named("the shape is static."))
    return error


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of `int`; one integer is a shape of one axis.

    Raises:
        TypeError: the sizes are not concrete integers; for a traced size the message says where it comes from.
    """
    if type(shape) is tuple and all(type(d) is int for d in shape):
        return shape
    if isinstance(shape, Tracer) and shape.ndim:
        shape = [shape]
    sizes = shape if isinstance(shape, tuple | list) else None
    if sizes is None:
        try:
            sizes = [as_dim(shape)]
        except TypeError:
            if isinstance(shape, Tracer | dict | set) or not is_several(shape):
                raise _invalid_shape(shape) from None
            sizes = list(shape)
    try:
        return tuple(as_dim(d) for d in sizes)
    except (TypeError, ValueError):
        raise _invalid_shape(shape) from None


def canonical_axis(axis: Any, ndim: int, what: str = "axis", error: type[ValueError] = ValueError) -> int:
    """Return an axis counted from the front.

    Args:
        axis: the axis, an integer; negative ones count from the end.
        ndim: the number of axes of the array.
        what: the argument, for messages.
        error: the class of the error for an axis out of bounds.

    Raises:
        TypeError: the axis is not an integer.
        ValueError: the array does not have the axis.
    """
    index = integer(axis, what)
    if not -ndim <= index < ndim:
        raise error(f"{_named(what)} {index} is out of bounds for an array of {ndim} dimensions")
    return index + ndim if index < 0 else index


def is_several(x: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether an argument is a sequence, of any class but text, rather than a single number."""
    if isinstance(x, (tuple, list)):
        return True
    ndim = getattr(x, "ndim", None)
    if isinstance(ndim, int):  # on classes of numbers `ndim` is a descriptor
        return ndim > 0
    return hasattr(type(x), "__iter__") and not isinstance(x, str | bytes)


def canonical_axes(axes: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front, as `canonical_axis`: all axes for None, one for an integer.

    Raises:
        ValueError: the array does not have an axis, or one is given twice.
    """
    if axes is None:
        return tuple(range(ndim))
    if type(axes) is tuple:  # the frequent case first
        last = -1
        for axis in axes:
            if type(axis) is not int or not last < axis < ndim:
                break
            last = axis
        else:
            return axes
    several = tuple(axes) if is_several(axes) else (axes,)
    out = tuple(canonical_axis(axis, ndim, what) for axis in several)
    if len(set(out)) != len(out):
        raise ValueError(f"{_named(what)}: duplicate value in 'axes': {several}")
    return out


def method_axis(axis: Any, ndim: int, what: str) -> int:
    """Return an axis as `canonical_axis`, but raise NumPy's AxisError, as array methods do."""
    return canonical_axis(axis, ndim, what, np.exceptions.AxisError)


def sequence(values: Any, what: str = "argument") -> list[Any]:
    """Return a sequence of values, such as operands, as a list.

    Raises:
        TypeError: it is not a sequence; the message names `what` with the function.
    """
    try:
        elements = None if isinstance(values, (str, dict, set)) else list(values)
    except TypeError:  # not iterable
        elements = None
    if elements is None:
        raise TypeError(f"{_named(what)} is a sequence, got {values!r} of type {type(values).__name__}")
    return elements


def ints(values: Sequence[Any], what: str = "argument") -> tuple[int, ...]:
    """Return a sequence of static integers as a tuple of `int`.

    Raises:
        TypeError: it is not a sequence of static integers; the message names `what` with the function.
    """
    if type(values) is tuple:
        for v in values:
            if type(v) is not int:
                break
        else:
            return values
    return tuple([integer(v, what) for v in sequence(values, what)])
