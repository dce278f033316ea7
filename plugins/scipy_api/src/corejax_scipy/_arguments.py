"""Check and convert arguments of `corejax.scipy` functions to arrays of one dtype and shape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes
from corejax.extend.messages import called_function
from corejax_lax_basic import lax


def operand(name: str, x: Any, position: int | str = 0) -> Any:
    """Return an argument as an array, a tracer, or an unchanged Python scalar.

    Raises:
        TypeError: the argument is none of these; the message names the function and the argument.
    """
    try:
        found = lax.as_operand(x)
    except TypeError as error:  # a NumPy array of strings
        text = str(error)
        raise TypeError(text if text.startswith((name, called_function() or name)) else f"{name}: {text}") from None
    if dtypes.is_extended(getattr(found, "dtype", None)):
        raise dtypes.no_numbers(found.dtype, name)
    if found is NotImplemented:
        where = f"at position {position}" if isinstance(position, int) else f"as {position}"
        raise TypeError(
            f"{name} takes arrays and scalars, got {x!r} of type {type(x).__name__} {where}; "
            "make it an array with corejax.numpy.asarray"
        )
    return found


def array(name: str, x: Any, position: int | str = 0) -> Any:
    """Return an argument as an array or tracer; Python scalars become weakly typed arrays."""
    return as_array(operand(name, x, position))


def inexact(name: str, *xs: Any) -> list[Any]:
    """Convert arguments to their common floating-point or complex dtype.

    Raises:
        TypeError: an argument is not an array; the message names the function and the position.
    """
    operands = [operand(name, x, i) for i, x in enumerate(xs)]
    promoted: list[Any] = lax.promote_dtypes(*operands, inexact=True, name=name)
    return promoted


def reals(name: str, *xs: Any) -> list[Any]:
    """Convert arguments as `inexact` does, and refuse complex ones.

    Raises:
        TypeError: an argument is complex, or not an array; the message names the function.
    """
    found = inexact(name, *xs)
    if dtypes.is_complex(found[0].dtype):
        raise TypeError(f"{name} is of real numbers, got {', '.join(x.aval.str_short() for x in found)}")
    return found


def together(name: str, *xs: Any) -> list[Any]:
    """Convert arguments as `reals` does, and broadcast them to one shape.

    Raises:
        TypeError: as `reals`.
        ValueError: the shapes do not broadcast; the message names the function.
    """
    return broadcast(name, reals(name, *xs))


def broadcast(name: str, found: list[Any]) -> list[Any]:
    """Broadcast arrays to one shape.

    Raises:
        ValueError: the shapes do not broadcast; the message names the function.
    """
    if len(found) == 1:
        return found
    found = lax.broadcast_operands(*found, name=name)
    shape = max((x.shape for x in found), key=len)
    return [x if x.shape == shape else lax.broadcast_to(x, shape) for x in found]


def static_int(name: str, value: Any, what: str, least: int | None = None) -> int:
    """Convert an argument to a static integer.

    Raises:
        TypeError: the argument is not an integer, or is traced.
        ValueError: the argument is less than `least`.
    """
    try:
        found = operator.index(value)
    except TypeError as error:
        if isinstance(value, Tracer):
            error.add_note(f"{name}: {what} must be a static integer.")
            raise
        raise TypeError(f"{name}: {what} must be an integer, got {value!r} of type {type(value).__name__}") from None
    if least is not None and found < least:
        raise ValueError(f"{name}: {what} must be {least} or more, got {found}")
    return found


def flag(name: str, value: Any, what: str) -> bool:
    """Convert an argument to True or False; integers are accepted.

    Raises:
        TypeError: the argument is neither a boolean nor an integer.
        ConcretizationTypeError: the argument is traced.
    """
    if isinstance(value, bool | np.bool_ | int | Tracer):
        return bool(value)
    raise TypeError(f"{name}: {what} must be True or False, got {value!r} of type {type(value).__name__}")


def axis_of(name: str, axis: Any, ndim: int, what: str = "axis") -> int:
    """Return an axis counted from the front.

    Raises:
        TypeError: the axis is not an integer.
        AxisError: the axis is out of range; NumPy's class, which is a ValueError and an IndexError.
    """
    index = static_int(name, axis, what)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(f"{name}: {what} {index} is out of bounds for array of dimension {ndim}")
    return index % ndim


def increases(x: Any, *, strictly: bool = False) -> bool:
    """Return whether a vector's numbers increase (strictly or not); a traced vector is assumed to."""
    if isinstance(x, Tracer):
        return True
    steps = np.diff(np.asarray(x))
    return bool(np.all(steps > 0 if strictly else steps >= 0))


def one_of(name: str, value: Any, what: str, choices: tuple[Any, ...]) -> None:
    """Require an argument to be one of the choices.

    Raises:
        ValueError: the argument is not among the choices; the message lists them.
    """
    if not isinstance(value, str | int | None) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{called_function() or name}: {what} must be one of {known}, got {value!r}")


def taking(body: Callable[..., Any], arguments: str, defaults: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """Return `body` as a function with named positional arguments.

    Args:
        body: a function of positional arguments.
        arguments: the names of its arguments, separated by spaces.
        defaults: values of the last arguments.
    """
    names = ", ".join(arguments.split())
    # The file name is this library's, so that error messages skip the frame when they look for the user's line.
    code = compile(f"lambda {names}: body({names})", __file__, "eval")
    function: FunctionType = eval(code, {"body": body, "__name__": __name__})
    function.__defaults__ = defaults
    return function
