"""Shapes and axes as users write them, made tuples of `int`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Tracer
from corejax.extend.messages import called_function
from corejax.extend.types import as_dim

__all__ = ["canonical_shape", "is_several"]  # in `corejax.lax`, for other plugins

Ints = tuple[int, ...]

_ADVICE = "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."


def _named(what: str) -> str:
    """An argument's name with its function's, which is the one that the user called where `what` has none."""
    called = "" if ": " in what else called_function()
    return f"{called}: {what}" if called else what


def integer(value: Any, what: str = "argument") -> int:
    """An integer that is known now, an axis or a size.

    Raises:
        TypeError: it is not one; names `what` with the function. For a traced value, says where it comes from.
    """
    try:
        return as_dim(value)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        if isinstance(value, Tracer) and isinstance(error, TypeError):
            error.add_note(f"{_named(what)} is a static integer.")
            raise
        text = f"{_named(what)} is an integer, got {value!r} of type {type(value).__name__}"
        raise TypeError(f"{text}, which cannot be interpreted as an integer") from None


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
    """A shape as a tuple of `int`; one integer is a shape of one axis.

    Raises:
        TypeError: the sizes are not concrete integers; for a traced one, says where it comes from.
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
    """An axis counted from the front.

    Args:
        axis: the axis, an integer.
        ndim: the number of axes of the array.
        what: the argument, for messages.
        error: the class of what is raised where there is no such axis.

    Raises:
        TypeError: the axis is not an integer.
        ValueError: the array has no such axis.
    """
    index = integer(axis, what)
    if not -ndim <= index < ndim:
        raise error(f"{_named(what)} {index} is out of bounds for an array of {ndim} dimensions")
    return index + ndim if index < 0 else index


def is_several(x: Any) -> bool:
    """Whether an argument that may be one number is a sequence of them: of a class of the user's, too, but no text."""
    if isinstance(x, tuple | list):
        return True
    ndim = getattr(x, "ndim", None)
    if isinstance(ndim, int):  # classes of numbers have an attribute `ndim`, too
        return ndim > 0
    return hasattr(type(x), "__iter__") and not isinstance(x, str | bytes)


def canonical_axes(axes: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Axes counted from the front, as by `canonical_axis`: all of them for None, one for an integer.

    Raises:
        ValueError: the array has no such axis, or one is given twice.
    """
    if axes is None:
        return tuple(range(ndim))
    if type(axes) is tuple:  # at once for what is frequent
        last = -1
        for axis in axes:
            if type(axis) is not int or not last < axis < ndim:
                break
            last = axis
        else:
            return axes
    given = tuple(axes) if is_several(axes) else (axes,)
    out = tuple(canonical_axis(axis, ndim, what) for axis in given)
    if len(set(out)) != len(out):
        raise ValueError(f"{_named(what)}: duplicate value in 'axes': {given}")
    return out


def method_axis(axis: Any, ndim: int, what: str) -> int:
    """As `canonical_axis`, of a method: as NumPy's arrays do, it raises AxisError, a ValueError and an IndexError."""
    return canonical_axis(axis, ndim, what, np.exceptions.AxisError)


def sequence(values: Any, what: str = "argument") -> list[Any]:
    """What is given one after another, operands say, as a list.

    Raises:
        TypeError: it is not a sequence; names `what` with the function.
    """
    try:
        given = None if isinstance(values, str | dict | set) else list(values)
    except TypeError:  # not iterable
        given = None
    if given is None:
        raise TypeError(f"{_named(what)} is a sequence, got {values!r} of type {type(values).__name__}")
    return given


def ints(values: Sequence[Any], what: str = "argument") -> tuple[int, ...]:
    """A sequence of integers that are known now as a tuple of `int`.

    Raises:
        TypeError: it is not one; names `what` with the function.
    """
    if type(values) is tuple:
        for v in values:
            if type(v) is not int:
                break
        else:
            return values
    return tuple([integer(v, what) for v in sequence(values, what)])
