"""Checks of distributions' arguments: dtypes, shapes and parameters. Messages name the function and the argument."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import Array, Tracer, as_array, dtypes, host_value, is_array_like
from corejax_lax_basic import lax
from corejax_random.distributions.repeating import is_refused
from corejax_random.generators.table import UINTS
from corejax_random.keys.arguments import is_key, key_argument
from corejax_random.keys.functions import shape_argument

_FLOAT32 = np.dtype(np.float32)


def single_key(name: str, key: Any) -> Any:
    """Convert a key argument to one typed key.

    Raises:
        TypeError, ValueError: as `key_argument`.
    """
    return key_argument(name, key)[0]


def dtype_argument(name: str, dtype: Any, default: Any) -> Any:
    """Convert a `dtype` argument to a dtype; None becomes `default()`.

    Raises:
        TypeError: if `dtype` is not a dtype.
    """
    return default() if dtype is None else lax.requested_dtype(dtype)


def float_dtype(name: str, dtype: Any, *, or_complex: bool = False) -> Any:
    """Convert a `dtype` argument to a floating-point dtype; None becomes the default one.

    Raises:
        ValueError: if the dtype is of another kind or width.
        TypeError: if `dtype` is not a dtype.
    """
    dtype = dtype_argument(name, dtype, dtypes.default_float_dtype)
    if dtype is _FLOAT32:
        return dtype
    if not dtypes.is_float(dtype) and not (or_complex and dtypes.is_complex(dtype)):
        kinds = "floating-point or complex" if or_complex else "floating-point"
        raise ValueError(f"{name}: dtype must be {kinds}, got {dtypes.short_name(dtype)}")
    if dtypes.finfo(dtype).bits // (1 if dtypes.is_float(dtype) else 2) not in UINTS:
        raise ValueError(f"{name}: dtype must have 8, 16, 32 or 64 bits, got {dtypes.short_name(dtype)}")
    return dtype


def integer_dtype(name: str, dtype: Any, error: type[Exception] = ValueError) -> Any:
    """Convert a `dtype` argument to an integer dtype; None becomes the default one.

    Raises:
        ValueError, or `error`: if the dtype is of another kind or width.
        TypeError: if `dtype` is not a dtype.
    """
    dtype = dtype_argument(name, dtype, dtypes.default_int_dtype)
    if not dtypes.is_integer(dtype):
        raise error(f"{name}: dtype must be an integer dtype, got {dtypes.short_name(dtype)}")
    if dtypes.iinfo(dtype).bits not in UINTS:
        raise error(f"{name}: dtype must have 8, 16, 32 or 64 bits, got {dtypes.short_name(dtype)}")
    return dtype


def known_integer(name: str, argument: str, value: Any, what: str = "a concrete integer") -> int:
    """Convert an argument to a Python integer.

    Raises:
        TypeError: if the argument is not an integer, or is traced.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        if isinstance(value, Tracer):
            error.add_note(f"{name}: {argument} must be {what}.")
            raise
        raise TypeError(f"{name}: {argument} must be {what}, got {value!r} of type {type(value).__name__}") from None


def known_flag(name: str, argument: str, value: Any) -> bool:
    """Convert an argument to a boolean.

    Raises:
        TypeError: if the argument is neither a boolean nor an integer.
    """
    if not isinstance(value, (int, np.bool_)):
        raise TypeError(f"{name}: {argument} must be True or False, got {value!r} of type {type(value).__name__}")
    return bool(value)


def one_of(name: str, argument: str, value: Any, words: tuple[str, ...]) -> str:
    """Return an argument that must be one of `words`.

    Raises:
        ValueError: if the argument is another value.
    """
    if not isinstance(value, str) or value not in words:
        *first, last = map(repr, words)
        raise ValueError(f"{name}: {argument} must be {', '.join(first)} or {last}, got {value!r}")
    return value


def number(name: str, argument: str, value: Any) -> Any:
    """Convert a parameter to an array, a tracer or a Python number.

    Raises:
        TypeError: if the parameter is not a real number or an array of real numbers.
    """
    if type(value) is float or type(value) is int:
        return value
    array = array_or_number(name, argument, value)
    if is_key(array) or dtypes.is_complex(array.dtype):
        raise TypeError(f"{name}: {argument} must be real, got {array.aval.str_short()}")
    return array


def array_or_number(name: str, argument: str, value: Any) -> Any:
    """Convert an argument to an array or a tracer of any dtype, including keys.

    Raises:
        TypeError: if the argument is neither an array nor a number.
    """
    if not is_array_like(value):
        raise TypeError(
            f"{name}: {argument} must be an array or a number, got {value!r} of type {type(value).__name__}"
        )
    return as_array(value)


def positive(name: str, argument: str, value: Any) -> Any:
    """Convert a parameter that must be positive; only concrete values are checked.

    Raises:
        TypeError: if the parameter is neither an array nor a number.
        ValueError: if an element is 0 or less.
    """
    array = parameter(name, argument, value, least=None)
    if type(array) in (float, int, Array) and is_refused(array, lambda x: bool(np.any(np.asarray(x, np.float64) <= 0))):
        raise ValueError(f"{name}: {argument} must be positive, got {value!r}")
    return array


def parameter(name: str, argument: str, value: Any, dtype: Any = None, *, least: float | None = 0) -> Any:
    """Convert a parameter of a distribution.

    Args:
        name: name of the function, for messages.
        argument: name of the parameter.
        value: an array or a number.
        dtype: dtype of the result; None keeps the parameter's dtype.
        least: lower bound of the parameter, or None. Only concrete values are checked.

    Raises:
        TypeError: if the parameter is neither an array nor a number.
        TypePromotionError: if the parameter's dtype is wider than `dtype`.
        ValueError: if an element is less than `least`.
    """
    array = number(name, argument, value)
    if (
        least is not None
        and type(array) in (float, int, Array)
        and is_refused(array, functools.partial(_any_below, least))
    ):
        what = "not be negative" if least == 0 else f"be {least} or more"
        raise ValueError(f"{name}: {argument} must {what}, got {value!r}")
    if dtype is None:
        return array
    aval = None if type(array) in (float, int) else array.aval
    if aval is not None and not aval.weak_type and dtypes.promote_types(aval.dtype, dtype) != dtype:
        raise dtypes.TypePromotionError(
            f"{name}: {argument} has dtype {dtypes.short_name(aval.dtype)}, which is wider than the dtype of the "
            f"result, {dtypes.short_name(dtype)}: convert it, or pass another dtype"
        )
    return converted(array, dtype)


def _any_below(least: float, value: Any) -> bool:
    if type(value) is not Array:
        return bool(value < least)
    if value.dtype.kind == "u" or not (dtypes.is_float(value.dtype) or dtypes.is_integer(value.dtype)):
        return False
    return bool(np.count_nonzero(host_value(value) < least) > 0)


def common_shape(name: str, shape: Any, **arguments: Any) -> tuple[Any, ...]:
    """Return the shape of the result: `shape`, or if it is None the shape that the parameters broadcast to.

    Raises:
        TypeError, ValueError: if `shape` is not a shape, or the parameters do not broadcast to it.
    """
    return joint_shape(name, shape, {argument: np.shape(x) for argument, x in arguments.items()})


def joint_shape(name: str, shape: Any, shapes: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the shape of the result, as `common_shape`, from the parameters' shapes."""
    requested = None if shape is None else shape_argument(name, shape)
    joint: tuple[Any, ...] = lax.broadcast_shapes(*shapes.values(), *(() if requested is None else (requested,)))
    if requested is not None and joint != requested:
        parameters = " and ".join(f"{argument} of shape {s}" for argument, s in shapes.items())
        raise ValueError(f"{name}: {parameters} do not broadcast to shape {requested}, but to {joint}")
    return joint


def converted(x: Any, dtype: Any) -> Any:
    """Convert an array or a number to a dtype; Python numbers are rounded once, whatever the default width."""
    if type(x) is float or type(x) is int:
        with np.errstate(all="ignore"):
            return as_array(np.asarray(x, dtype))
    return lax.convert_element_type(x, dtype)


def of_32_bits(x: Any) -> Any:
    """Convert floats of at most 16 bits to float32, as their random numbers would have at most 10 bits."""
    return lax.convert_element_type(x, _FLOAT32) if x.dtype.itemsize < 4 else x


def broadcast_to(x: Any, shape: tuple[Any, ...]) -> Any:
    """Broadcast an array to a shape."""
    return jnp.broadcast_to(x, shape)
