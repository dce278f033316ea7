"""Arguments of `corejax.numpy` functions: what counts as an array, and how several of them get one dtype and shape.

Python scalars stay Python scalars until the common dtype is known; then they become scalars of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, as_array, dtypes, get_aval
from corejax.extend.messages import called_function, clears_cache
from corejax.extend.types import as_dim
from corejax_lax_basic import lax

Axis = int | str | tuple[int | str, ...] | list[int | str] | None  # a string is the name of a mapped axis


def operand(name: str, x: Any, position: int | str = 0) -> Any:
    """An argument as an array or tracer, or as the Python scalar that it is.

    Raises:
        TypeError: it is none of these, a list say; names the function and the argument's position, or its name.
    """
    found = lax.as_operand(x)
    if found is NotImplemented:
        where = f"at position {position}" if isinstance(position, int) else f"as {position}"
        raise TypeError(
            f"{name} takes arrays and scalars, got {type(x).__name__} {where}; "
            "make it an array with corejax.numpy.asarray"
        )
    return found


def operands(name: str, xs: Sequence[Any]) -> list[Any]:
    """As `operand`, of several arguments."""
    return [operand(name, x, i) for i, x in enumerate(xs)]


def array_argument(name: str, x: Any, position: int | str = 0) -> Any:
    """An argument as an array or tracer; Python scalars become weakly typed arrays.

    Raises:
        TypeError: it is not an array.
    """
    return x if type(x) is Array or isinstance(x, Tracer) else as_array(operand(name, x, position))


def number_argument(name: str, x: Any, position: int | str = 0) -> Any:
    """As `array_argument`, of numbers: functions that leave some kinds of them as they are begin with it.

    Raises:
        TypeError: it is not an array, or one of elements that are not numbers (keys).
    """
    found = array_argument(name, x, position)
    if dtypes.is_extended(found.dtype):
        raise dtypes.no_numbers(found.dtype, name)
    return found


def array_arguments(name: str, *xs: Any) -> list[Any]:
    """As `array_argument`, of several arguments."""
    return [array_argument(name, x, i) for i, x in enumerate(xs)]


def refuse_out(name: str, out: Any) -> None:
    """Refuse NumPy's argument for the array to write to.

    Raises:
        NotImplementedError: it is not None. (Not a TypeError, after which NumPy's functions convert and try again.)
    """
    if out is not None:
        raise NotImplementedError(f"{name}: `out` has to be None, results are new arrays; take the result instead")


def ddof_of(name: str, ddof: float, correction: float | None) -> float:
    """What a variance subtracts from the number of elements, an argument of two names.

    Raises:
        ValueError: both are given.
    """
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(
            f"{name}: `ddof` and `correction` are two names of one argument, got {ddof!r} and {correction!r}"
        )
    return correction


def no_out_or_where(name: str, out: Any, where: Any) -> None:
    """Refuse the arguments of NumPy's ufuncs that write to an array.

    Raises:
        NotImplementedError: one is given.
    """
    if out is not None:
        raise NotImplementedError(f"{name}: arrays are immutable, so there is no `out`; use the result")
    if where is not None:
        raise NotImplementedError(f"{name}: without `out` there is no `where`; use corejax.numpy.where on the result")


_likes: dict[tuple[Any, ...], Array] = {}
clears_cache(_likes.clear)


def like(x: Any, value: Any) -> Array:
    """A Python number as a scalar of an array's dtype and weak type, so that it does not widen a result."""
    aval = get_aval(x)
    if type(value) is not int:  # floats that are equal may differ, as zeros
        return lax.make_scalar(value, aval.dtype, aval.weak_type)
    key = (aval.dtype, aval.weak_type, value)
    found = _likes.get(key)
    if found is None:
        if len(_likes) >= 1024:
            _likes.clear()
        found = _likes[key] = lax.make_scalar(value, aval.dtype, aval.weak_type)
    return found


def promote_dtypes(name: str, *xs: Any, inexact: bool = False) -> list[Any]:
    """Arguments as arrays in their common dtype.

    Args:
        name: the function, for messages.
        xs: its arguments.
        inexact: whether booleans and integers become floating.

    Raises:
        TypeError: an argument is not an array.
        TypePromotionError: the dtypes have no implicit promotion.
    """
    if len(xs) == 1:  # a function of one array, most often: nothing to agree on
        aval = getattr(xs[0], "aval", None)
        if aval is not None and (not inexact or dtypes.is_inexact(aval.dtype)):
            return list(xs)
    return lax.promote_dtypes(*operands(name, xs), inexact=inexact, name=name)


def promote(name: str, *xs: Any, inexact: bool = False) -> list[Any]:
    """Arguments as arrays in their common dtype and shape; those of rank 0 stay of rank 0."""
    return lax.promote_operands(*operands(name, xs), inexact=inexact, name=name)


def strong(x: Any) -> Any:
    """`x` with the same dtype, strongly typed."""
    return lax.convert_element_type(x, x.aval.dtype) if x.aval.weak_type else x


def to_bool(x: Any) -> Any:
    """Whether elements differ from zero; a boolean array as it is."""
    return x if x.aval.dtype == dtypes.bool_ else lax.ne_p.bind(x, like(x, 0))


def canonical_dtype(dtype: Any) -> Any:
    """A `dtype` argument as a NumPy dtype; None stays None."""
    return None if dtype is None else dtypes.canonicalize_dtype(dtype)


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A `shape` argument, a sequence or one integer, as a tuple of `int`.

    Raises:
        TypeError: the sizes are not concrete integers.
    """
    sizes = tuple(shape) if lax.is_several(shape) else (shape,)
    try:
        return tuple(as_dim(d) for d in sizes)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{_of('')}Shapes must be 1D sequences of concrete values of integer type, got {shape}.\n{error}"
        ) from None


def sequence(name: str, values: Any, what: str) -> list[Any]:
    """An argument that is several things one after another, as a list.

    Raises:
        TypeError: it is not a sequence; names function, argument and value.
    """
    try:
        given = None if isinstance(values, str | dict | set) else list(values)
    except TypeError:  # not iterable, or an array without axes
        given = None
    if given is None:
        raise TypeError(f"{name}: {what} is a sequence, got {values!r} of type {type(values).__name__}")
    return given


def function_argument(name: str, f: Any, what: str) -> Callable[..., Any]:
    """An argument that is called.

    Raises:
        TypeError: it cannot be; names function, argument and value.
    """
    if not callable(f):
        raise TypeError(f"{name}: {what} is a function, got {f!r} of type {type(f).__name__}")
    return f  # type: ignore[no-any-return]


def static_int(name: str, value: Any, what: str, least: int | None = None) -> int:
    """An integer that has to be known now, a size say.

    Args:
        name: the function, for messages; "" is the one that the user called.
        value: the argument.
        what: the argument's name.
        least: the least one that makes sense, for sizes; a size is one that an index can count.

    Raises:
        ConcretizationTypeError: it is traced; says by what.
        TypeError: it is not an integer.
        ValueError: it is less than `least`, or too large for a size.
    """
    try:
        found = as_dim(value)
    except (TypeError, ValueError) as error:
        where = _of(name, what)
        if isinstance(value, Tracer) and isinstance(error, TypeError):
            error.add_note(f"{where}{what} is a static integer.")
            raise
        raise TypeError(f"{where}{what} is an integer, got {value!r} of type {type(value).__name__}") from None
    if least is not None and not least <= found < 2**63:
        right = "less than 2**63" if found > least else f"{least} or more" if least else "not negative"
        raise ValueError(f"{_of(name, what)}{what} is {right}, got {found}")
    return found


def canonical_axis(axis: Any, ndim: int, what: str = "axis", name: str = "") -> int:
    """An axis counted from the front.

    Args:
        axis: the axis, an integer.
        ndim: the number of axes of the array.
        what: the argument, for messages.
        name: the function, for messages.

    Raises:
        TypeError: it is not an integer.
        AxisError: there is no such axis; NumPy's, a ValueError and an IndexError.
    """
    index = static_int(name, axis, what)
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(f"{_of(name, what)}{what} {index} is out of bounds for array of dimension {ndim}")
    return index % ndim


def _of(name: str, what: str = "") -> str:
    """What begins a message: the function that the user called, or the one named; nothing if `what` has it."""
    name = "" if ": " in what else called_function() or name
    return f"{name}: " if name else ""


def canonical_axes(axis: Any, ndim: int, what: str = "axis", name: str = "") -> tuple[int, ...]:
    """Axes counted from the front, in the order given: all of them for None, one for an integer.

    Raises:
        TypeError: one is not an integer.
        ValueError: there is no such axis, or one is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if lax.is_several(axis) else (axis,)
    axes = tuple([canonical_axis(a, ndim, what, name) for a in given])
    if len(axes) > 1 and len(set(axes)) != len(axes):
        raise ValueError(f"{_of(name, what)}repeated axis, duplicate value in {what!r}: {given}")
    return axes


def concrete(name: str, x: Any, instead: str = "") -> Any:
    """A number that has to be known now, a length say, as a Python scalar.

    Args:
        name: the function, for messages.
        x: the argument.
        instead: what to do where it is traced, for messages.

    Raises:
        ConcretizationTypeError: it is traced; says by what.
        TypeError: it is not a number.
    """
    if lax.is_python_scalar(x):
        return x
    x = array_argument(name, x)
    if x.shape:
        raise TypeError(f"{name} takes scalars here, got an array of shape {x.shape}")
    try:
        return x.item()
    except TypeError as error:
        if instead:
            error.add_note(f"{name}: {instead}.")
        raise


def is_known(x: Any) -> bool:
    """Whether an argument has its values while tracing: anything but tracers."""
    return not isinstance(x, Tracer)


def known_array(name: str, x: Any, instead: str = "") -> np.ndarray:
    """The values of an argument that have to be known now, for the shape of a result is made of them.

    Args:
        name: the function, for messages.
        x: the argument.
        instead: what to do where it is traced, for messages.

    Raises:
        ConcretizationTypeError: it is traced; says by what.
    """
    try:
        # Of one with a tangent, too: a shape has none.
        value = x.steering() if isinstance(x, Tracer) else x
        return np.asarray(x if value is None else value)
    except ValueError:
        raise ValueError(f"{name}: sequences of unequal lengths are no array, got {x!r}") from None
    except TypeError as error:
        if isinstance(x, Tracer):
            advice = f"; {instead}" if instead else ""
            error.add_note(f"{name}: the size of the result depends on these values, and sizes are static{advice}.")
        raise
