"""Check and convert arguments of functions of arrays, as `corejax.numpy` does."""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes, get_aval, is_array_like
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax


def arrays(name: str, *xs: Any, inexact: bool = True) -> list[Any]:
    """Convert arguments to arrays of their common dtype.

    Args:
        name: the function's name, for messages.
        *xs: its arguments.
        inexact: whether integers and booleans are converted to floating-point numbers.

    Raises:
        TypeError: an argument is not an array; the message names the function, the position and the type.
    """
    return list(lax.promote_dtypes(*(_operand(name, x, i) for i, x in enumerate(xs)), inexact=inexact, name=name))


def array(name: str, x: Any, position: int | str = 0) -> Any:
    """Convert one argument to an array of its own dtype.

    Raises:
        TypeError: the argument is not an array.
    """
    return as_array(_operand(name, x, position))


def _operand(name: str, x: Any, position: int | str) -> Any:
    found = lax.as_operand(x)
    if found is NotImplemented:
        where = f"at position {position}" if isinstance(position, int) else f"as {position}"
        raise TypeError(
            f"{name} takes arrays and scalars, got {type(x).__name__} {where}; "
            "make it an array with corejax.numpy.asarray"
        )
    return found


def matrices(name: str, *xs: Any) -> list[Any]:
    """Convert arguments as `arrays` does, and require stacks of matrices.

    Raises:
        ValueError: an argument has fewer than two axes.
    """
    found = arrays(name, *xs)
    for i, x in enumerate(found):
        if x.ndim < 2:
            raise ValueError(f"{name} takes matrices, [..., m, n], got {x.aval.str_short()} at position {i}")
    return found


def square(name: str, *xs: Any) -> list[Any]:
    """Convert arguments as `arrays` does, and require stacks of square matrices.

    Raises:
        ValueError: an argument is not square.
    """
    found = arrays(name, *xs)
    for i, x in enumerate(found):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"{name} takes square matrices, [..., n, n], got {x.aval.str_short()} at position {i}")
    return found


def choice(name: str, what: str, value: Any, options: Any) -> Any:
    """Require an argument to be one of the options, and return it.

    Raises:
        ValueError: the argument is not among the options.
    """
    if not isinstance(value, str | int | None) or value not in options:
        listed = ", ".join(repr(o) for o in options)
        raise ValueError(f"{name}: {what} must be one of {listed}, got {value!r}")
    return value


def enumerated(name: str, what: str, value: Any, members: type[enum.Enum]) -> Any:
    """Convert an argument to a member of an enumeration; None stays None.

    Raises:
        ValueError: the argument is neither a member nor a member's value.
    """
    if value is None or isinstance(value, members):
        return value
    return members(choice(name, what, value, tuple(m.value for m in members)))


def size(name: str, what: str, value: Any, least: int = 0) -> Any:
    """Return a size, which is a static integer or a symbolic size.

    Raises:
        TypeError: the value is neither.
        ValueError: the value is less than `least`.
    """
    return value if isinstance(value, SymbolicDim) else integer(name, what, value, least)


def integer(name: str, what: str, value: Any, least: int | None = None) -> int:
    """Convert an argument to a static integer.

    Raises:
        TypeError: the argument is not an integer.
        ValueError: the argument is less than `least`.
    """
    try:
        found = operator.index(value)
    except TypeError:
        if isinstance(value, Tracer):
            raise
        raise TypeError(
            f"{name}: {what} must be a static integer, got {value!r} of type {type(value).__name__}"
        ) from None
    if least is not None and found < least:
        raise ValueError(f"{name}: {what} must be at least {least}, got {found}")
    return found


def flag(name: str, what: str, value: Any) -> bool:
    """Convert an argument to True or False; integers are accepted.

    Raises:
        TypeError: the argument is neither a boolean nor an integer.
        ConcretizationTypeError: the argument is traced.
    """
    if isinstance(value, (int, np.bool_, Tracer)):
        return bool(value)
    raise TypeError(f"{name}: {what} must be True or False, got {value!r} of type {type(value).__name__}")


def real_number(name: str, what: str, value: Any) -> float:
    """Convert an argument to a static float.

    Raises:
        TypeError: the argument is not a number.
        ConcretizationTypeError: the argument is traced.
    """
    if isinstance(value, str | bytes) or not is_array_like(value) or get_aval(value).ndim:
        raise TypeError(f"{name}: {what} must be a number, got {value!r} of type {type(value).__name__}")
    return float(value)


def pair(name: str, what: str, value: Any, source: str = "") -> tuple[Any, Any]:
    """Return the two elements of a tuple or list; messages name the function `source` that returns such pairs.

    Raises:
        TypeError: the argument is not a pair.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name}: {what} must be a pair{f', as {source} returns it' if source else ''}, got {value!r}")
    return value[0], value[1]


def number(name: str, what: str, value: Any, dtype: Any) -> Any:
    """Convert a real number or array of numbers to a dtype.

    Raises:
        TypeError: the argument is not an array of real numbers.
    """
    found = array(name, value, what)
    if dtypes.is_extended(found.dtype) or dtypes.is_complex(found.dtype):
        raise TypeError(f"{name}: {what} must be real, got {found.aval.str_short()}")
    return lax.convert_element_type(found, dtype)


def static_axes(name: str, value: Any, what: str = "axes") -> tuple[int, ...]:
    """Convert one axis or several axes to a tuple of static integers.

    Raises:
        TypeError: an axis is not an integer.
    """
    several = isinstance(value, tuple | list)
    return tuple([integer(name, what, axis) for axis in (value if several else (value,))])


def subset(name: str, indices: Any, size: int) -> tuple[int, int]:
    """Convert an argument to a range of indices, `(start, stop)`.

    Raises:
        TypeError: the argument is not a pair of integers.
        ValueError: the range is not within `size`.
    """
    try:
        start, stop = (operator.index(i) for i in indices)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: subset_by_index must be a pair of integers (start, stop), got {indices!r}") from None
    if not 0 <= start <= stop <= size:
        raise ValueError(f"{name}: subset_by_index must be a range of the indices 0 to {size}, got {indices!r}")
    return start, stop
