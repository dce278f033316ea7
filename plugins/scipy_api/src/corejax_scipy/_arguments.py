"""Arguments of `corejax.scipy` functions: what counts as an array, and how several get one dtype and shape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes
from corejax.extend.messages import called_function
from corejax_lax_basic import lax


def operand(name: str, x: Any, position: int | str = 0) -> Any:
    """An argument as an array, a tracer, or the Python scalar that it is.

    Raises:
        TypeError: it is none of these; names the function and the argument.
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
    """An argument as an array or tracer; Python scalars become weakly typed arrays."""
    return as_array(operand(name, x, position))


def inexact(name: str, *xs: Any) -> list[Any]:
    """Arguments in their common dtype, floating-point or complex.

    Raises:
        TypeError: one is no array; names the function and its position.
    """
    return lax.promote_dtypes(*[operand(name, x, i) for i, x in enumerate(xs)], inexact=True, name=name)  # type: ignore[no-any-return]


def reals(name: str, *xs: Any) -> list[Any]:
    """As `inexact`; complex arguments are refused.

    Raises:
        TypeError: one is complex, or no array; names the function.
    """
    found = inexact(name, *xs)
    if dtypes.is_complex(found[0].dtype):
        raise TypeError(f"{name} is of real numbers, got {', '.join(x.aval.str_short() for x in found)}")
    return found


def together(name: str, *xs: Any) -> list[Any]:
    """As `reals`, broadcast to one shape.

    Raises:
        TypeError: as `reals`.
        ValueError: shapes do not broadcast together; names the function.
    """
    return broadcast(name, reals(name, *xs))


def broadcast(name: str, found: list[Any]) -> list[Any]:
    """Arrays as arrays of one shape.

    Raises:
        ValueError: shapes do not broadcast together; names the function.
    """
    if len(found) == 1:
        return found
    found = lax.broadcast_operands(*found, name=name)
    shape = max((x.shape for x in found), key=len)
    return [x if x.shape == shape else lax.broadcast_to(x, shape) for x in found]


def static_int(name: str, value: Any, what: str, least: int | None = None) -> int:
    """An integer that has to be known now.

    Raises:
        TypeError: it is none, or is traced.
        ValueError: it is less than `least`.
    """
    try:
        found = operator.index(value)
    except TypeError as error:
        if isinstance(value, Tracer):
            error.add_note(f"{name}: {what} is a static integer.")
            raise
        raise TypeError(f"{name}: {what} is an integer, got {value!r} of type {type(value).__name__}") from None
    if least is not None and found < least:
        raise ValueError(f"{name}: {what} is {least} or more, got {found}")
    return found


def flag(name: str, value: Any, what: str) -> bool:
    """True or False; 1 and 0 are too.

    Raises:
        TypeError: it is neither.
        ConcretizationTypeError: it is traced.
    """
    if isinstance(value, bool | np.bool_ | int | Tracer):
        return bool(value)
    raise TypeError(f"{name}: {what} is True or False, got {value!r} of type {type(value).__name__}")


def axis_of(name: str, axis: Any, ndim: int, what: str = "axis") -> int:
    """An axis counted from the front.

    Raises:
        TypeError: it is no integer.
        AxisError: there is no such axis; NumPy's, a ValueError and an IndexError.
    """
    index = static_int(name, axis, what)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(f"{name}: {what} {index} is out of bounds for array of dimension {ndim}")
    return index % ndim


def increases(x: Any, *, strictly: bool = False) -> bool:
    """Whether a vector's numbers increase, or at least do not decrease; what is traced is taken to."""
    if isinstance(x, Tracer):
        return True
    steps = np.diff(np.asarray(x))
    return bool(np.all(steps > 0 if strictly else steps >= 0))


def one_of(name: str, value: Any, what: str, choices: tuple[Any, ...]) -> None:
    """Refuse what is none of the choices.

    Raises:
        ValueError: it is none; lists them.
    """
    if not isinstance(value, str | int | None) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{called_function() or name}: {what} is one of {known}, got {value!r}")


def taking(body: Callable[..., Any], arguments: str, defaults: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """Return `body` as a function whose positional arguments have names.

    Args:
        body: a function of as many arguments.
        arguments: their names, separated by spaces.
        defaults: values of the last ones.
    """
    names = ", ".join(arguments.split())
    code = compile(f"lambda {names}: body({names})", __file__, "eval")  # of a file of the library, for messages
    function = eval(code, {"body": body, "__name__": __name__})
    function.__defaults__ = defaults
    return function
