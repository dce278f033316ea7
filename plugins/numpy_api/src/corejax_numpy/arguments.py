"""Check and convert arguments of `corejax.numpy` functions: arrays, dtypes, shapes and axes.

Python scalars stay Python scalars until the common dtype is known, and then become scalars of that dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, as_array, dtypes, get_aval
from corejax.extend.messages import called_function, clears_cache
from corejax.extend.types import as_dim
from corejax_lax_basic import lax

Axis = int | str | tuple[int | str, ...] | list[int | str] | None  # a string names a mapped axis


def operand(name: str, x: Any, position: int | str = 0) -> Any:
    """Return an argument as an array or tracer; Python scalars are returned unchanged.

    Raises:
        TypeError: the argument is none of these (a list, say). The message names the function and the argument.
    """
    converted = lax.as_operand(x)
    if converted is NotImplemented:
        where = f"at position {position}" if isinstance(position, int) else f"as {position}"
        raise TypeError(
            f"{name} takes arrays and scalars, got {type(x).__name__} {where}; convert it with corejax.numpy.asarray"
        )
    return converted


def operands(name: str, xs: Sequence[Any]) -> list[Any]:
    """Convert several arguments with `operand`."""
    return [operand(name, x, i) for i, x in enumerate(xs)]


def array_argument(name: str, x: Any, position: int | str = 0) -> Any:
    """Return an argument as an array or tracer; Python scalars become weakly typed arrays.

    Raises:
        TypeError: the argument is not an array.
    """
    return x if type(x) is Array or isinstance(x, Tracer) else as_array(operand(name, x, position))


def number_argument(name: str, x: Any, position: int | str = 0) -> Any:
    """Return an argument as an array of numbers, for functions that return some kinds of numbers unchanged.

    Raises:
        TypeError: the argument is not an array, or its elements are not numbers (keys).
    """
    array = array_argument(name, x, position)
    if dtypes.is_extended(array.dtype):
        raise dtypes.no_numbers(array.dtype, name)
    return array


def array_arguments(name: str, *xs: Any) -> list[Any]:
    """Convert several arguments with `array_argument`."""
    return [array_argument(name, x, i) for i, x in enumerate(xs)]


def refuse_out(name: str, out: Any) -> None:
    """Raise NotImplementedError if NumPy's argument `out` is given.

    A TypeError would not do: after one, NumPy's functions convert the array and try again.
    """
    if out is not None:
        raise NotImplementedError(f"{name}: `out` has to be None, results are new arrays; take the result instead")


def ddof_of(name: str, ddof: float, correction: float | None) -> float:
    """Return the delta degrees of freedom of a variance, an argument with two names.

    Raises:
        ValueError: both names are given.
    """
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(
            f"{name}: `ddof` and `correction` are two names of one argument, got {ddof!r} and {correction!r}"
        )
    return correction


def no_out_or_where(name: str, out: Any, where: Any) -> None:
    """Raise NotImplementedError if NumPy's ufunc argument `out` or `where` is given.

    Raises:
        NotImplementedError: one is given.
    """
    if out is not None:
        raise NotImplementedError(f"{name}: arrays are immutable, so `out` is not supported; use the result")
    if where is not None:
        raise NotImplementedError(
            f"{name}: `where` is not supported, as `out` is not; use corejax.numpy.where on the result"
        )


_likes: dict[tuple[Any, ...], Array] = {}
clears_cache(_likes.clear)


def like(x: Any, value: Any) -> Array:
    """Return a Python number as a scalar of an array's dtype and weak type, so that it does not widen a result."""
    aval = get_aval(x)
    # Floats are not cached: 0.0 and -0.0 are equal as keys, and differ.
    if type(value) is not int:
        uncached: Array = lax.make_scalar(value, aval.dtype, aval.weak_type)
        return uncached
    key = (aval.dtype, aval.weak_type, value)
    scalar = _likes.get(key)
    if scalar is None:
        if len(_likes) >= 1024:
            _likes.clear()
        scalar = _likes[key] = lax.make_scalar(value, aval.dtype, aval.weak_type)
    return scalar


def promote_dtypes(name: str, *xs: Any, inexact: bool = False) -> list[Any]:
    """Return arguments as arrays of their common dtype.

    Args:
        name: the function, for messages.
        xs: the arguments.
        inexact: whether booleans and integers are converted to floating point.

    Raises:
        TypeError: an argument is not an array.
    """
    if len(xs) == 1:  # the fast path of functions of one array: there is nothing to promote
        aval = getattr(xs[0], "aval", None)
        if aval is not None and (not inexact or dtypes.is_inexact(aval.dtype)):
            return list(xs)
    promoted: list[Any] = lax.promote_dtypes(*operands(name, xs), inexact=inexact, name=name)
    return promoted


def promote(name: str, *xs: Any, inexact: bool = False) -> list[Any]:
    """Return arguments as arrays of their common dtype and shape; arrays of rank 0 are not broadcast."""
    promoted: list[Any] = lax.promote_operands(*operands(name, xs), inexact=inexact, name=name)
    return promoted


def strong(x: Any) -> Any:
    """Return `x` with the same dtype, strongly typed."""
    return lax.convert_element_type(x, x.aval.dtype) if x.aval.weak_type else x


def to_bool(x: Any) -> Any:
    """Return whether elements differ from zero; a boolean array is returned unchanged."""
    return x if x.aval.dtype == dtypes.bool_ else lax.ne_p.bind(x, like(x, 0))


def canonical_dtype(dtype: Any) -> Any:
    """Return a `dtype` argument as a NumPy dtype; None stays None."""
    return None if dtype is None else lax.requested_dtype(dtype)


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """Return a `shape` argument, a sequence or one integer, as a tuple of `int`.

    Raises:
        TypeError: the sizes are not concrete integers.
    """
    sizes = tuple(shape) if lax.is_several(shape) else (shape,)
    try:
        return tuple(as_dim(d) for d in sizes)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{_prefix('')}Shapes must be 1D sequences of concrete values of integer type, got {shape}.\n{error}"
        ) from None


def sequence(name: str, values: Any, what: str) -> list[Any]:
    """Return an argument that holds several values as a list.

    Raises:
        TypeError: the argument is not a sequence. The message names the function, the argument and its value.
    """
    try:
        as_list = None if isinstance(values, str | dict | set) else list(values)
    except TypeError:  # not iterable, or an array without axes
        as_list = None
    if as_list is None:
        raise TypeError(f"{name}: {what} is a sequence, got {values!r} of type {type(values).__name__}")
    return as_list


def function_argument(name: str, f: object, what: str) -> Callable[..., Any]:
    """Return an argument after a check that it is callable.

    Raises:
        TypeError: the argument is not callable. The message names the function, the argument and its value.
    """
    if not callable(f):
        raise TypeError(f"{name}: {what} is a function, got {f!r} of type {type(f).__name__}")
    return f


def static_int(name: str, value: Any, what: str, least: int | None = None) -> int:
    """Return an argument that must be a concrete integer, such as a size.

    Args:
        name: the function, for messages; "" stands for the function that the user called.
        value: the argument's value.
        what: the argument's name.
        least: the least valid value, for a size. A size must also be less than 2**63, so that an index can count it.

    Raises:
        ConcretizationTypeError: the value is traced; the message says by which transformation.
        TypeError: the value is not an integer.
        ValueError: the value is less than `least`, or too large for a size.
    """
    try:
        integer: int = as_dim(value)
    except (TypeError, ValueError) as error:
        where = _prefix(name, what)
        if isinstance(value, Tracer) and isinstance(error, TypeError):
            error.add_note(f"{where}{what} is a static integer.")
            raise
        raise TypeError(f"{where}{what} is an integer, got {value!r} of type {type(value).__name__}") from None
    if least is not None and not least <= integer < 2**63:
        bounds = "less than 2**63" if integer > least else f"{least} or more" if least else "not negative"
        raise ValueError(f"{_prefix(name, what)}{what} is {bounds}, got {integer}")
    return integer


def canonical_axis(axis: Any, ndim: int, what: str = "axis", name: str = "") -> int:
    """Return an axis counted from the front.

    Args:
        axis: the axis, an integer; negative axes count from the end.
        ndim: the number of axes of the array.
        what: the argument's name, for messages.
        name: the function, for messages.

    Raises:
        TypeError: the axis is not an integer.
        AxisError: the axis does not exist. The error is NumPy's, a subclass of ValueError and IndexError.
    """
    index = static_int(name, axis, what)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(
            f"{_prefix(name, what)}{what} {index} is out of bounds for array of dimension {ndim}"
        )
    return index % ndim


def _prefix(name: str, what: str = "") -> str:
    """Return the prefix of a message: the function that the user called, or `name`; empty if `what` has a prefix."""
    name = "" if ": " in what else called_function() or name
    return f"{name}: " if name else ""


def canonical_axes(axis: Any, ndim: int, what: str = "axis", name: str = "") -> tuple[int, ...]:
    """Return axes counted from the front, in the order given: all axes for None, one for an integer.

    Raises:
        TypeError: an axis is not an integer.
        ValueError: an axis does not exist, or is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if lax.is_several(axis) else (axis,)
    axes = tuple([canonical_axis(a, ndim, what, name) for a in given])
    if len(axes) > 1 and len(set(axes)) != len(axes):
        raise ValueError(f"{_prefix(name, what)}repeated axis, duplicate value in {what!r}: {given}")
    return axes


def concrete(name: str, x: Any, instead: str = "") -> Any:
    """Return a number that has to be known while tracing, such as a length, as a Python scalar.

    Args:
        name: the function, for messages.
        x: the argument.
        instead: advice for the user if the argument is traced, for messages.

    Raises:
        ConcretizationTypeError: the argument is traced; the message says by which transformation.
        TypeError: the argument is not a number.
    """
    if lax.is_python_scalar(x):
        return x
    x = array_argument(name, x)
    if x.shape:
        raise TypeError(f"{name}: the argument must be a scalar, got an array of shape {x.shape}")
    try:
        return x.item()
    except TypeError as error:
        if instead:
            error.add_note(f"{name}: {instead}.")
        raise


def is_known(x: Any) -> bool:
    """Return whether the values of an argument are known while tracing; those of a tracer are not."""
    return not isinstance(x, Tracer)


def known_array(name: str, x: Any, instead: str = "") -> np.ndarray:
    """Return the values of an argument that must be known while tracing, because a result's shape depends on them.

    Args:
        name: the function, for messages.
        x: the argument.
        instead: advice for the user if the argument is traced, for messages.

    Raises:
        ConcretizationTypeError: the argument is traced; the message says by which transformation.
    """
    try:
        # The value of a tracer with a tangent is known; shapes do not depend on the tangent.
        value = x.steering() if isinstance(x, Tracer) else x
        return np.asarray(x if value is None else value)
    except ValueError:
        raise ValueError(f"{name}: sequences of unequal lengths are not an array, got {x!r}") from None
    except TypeError as error:
        if isinstance(x, Tracer):
            advice = f"; {instead}" if instead else ""
            error.add_note(f"{name}: the size of the result depends on these values, and sizes are static{advice}.")
        raise
