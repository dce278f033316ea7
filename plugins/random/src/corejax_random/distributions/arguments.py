"""Arguments of distributions: dtypes, shapes and parameters; refused with function, argument and what was given."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import Array, Tracer, as_array, dtypes, host_value, is_array_like
from corejax_lax_basic import lax
from corejax_random.distributions.repeating import refused
from corejax_random.generators.table import UINTS
from corejax_random.keys.arguments import is_key, key_argument
from corejax_random.keys.functions import shape_argument

_FLOAT32 = np.dtype(np.float32)


def single_key(name: str, key: Any) -> Any:
    """A typed key.

    Raises:
        TypeError, ValueError: as `key_argument`.
        KeyReuseError: it was used before, and the setting `debug_key_reuse` is on.
    """
    return key_argument(name, key)[0]


def dtype_argument(name: str, dtype: Any, default: Any) -> Any:
    """A `dtype` argument; `default()` for None.

    Raises:
        TypeError: it is no dtype.
    """
    return default() if dtype is None else dtypes.canonicalize_dtype(dtype)


def float_dtype(name: str, dtype: Any, *, or_complex: bool = False) -> Any:
    """A floating-point dtype; the default one for None.

    Raises:
        ValueError: it is another one.
        TypeError: it is no dtype.
    """
    found = dtype_argument(name, dtype, dtypes.default_float_dtype)
    if found is _FLOAT32:
        return found
    if not dtypes.is_float(found) and not (or_complex and dtypes.is_complex(found)):
        kinds = "floating-point or complex" if or_complex else "floating-point"
        raise ValueError(f"{name}: dtype is a {kinds} one, got {dtypes.short_name(found)}")
    if dtypes.finfo(found).bits // (1 if dtypes.is_float(found) else 2) not in UINTS:
        raise ValueError(f"{name}: dtype is one of 8, 16, 32 or 64 bits, got {dtypes.short_name(found)}")
    return found


def integer_dtype(name: str, dtype: Any, error: type[Exception] = ValueError) -> Any:
    """A dtype of integers; the default one for None.

    Raises:
        ValueError, or what `error` says: it is another one.
        TypeError: it is no dtype.
    """
    found = dtype_argument(name, dtype, dtypes.default_int_dtype)
    if not dtypes.is_integer(found):
        raise error(f"{name}: dtype is one of integers, got {dtypes.short_name(found)}")
    if dtypes.iinfo(found).bits not in UINTS:
        raise error(f"{name}: dtype is one of 8, 16, 32 or 64 bits, got {dtypes.short_name(found)}")
    return found


def known_integer(name: str, argument: str, value: Any, what: str = "an integer that is known now") -> int:
    """An integer that has a value.

    Raises:
        TypeError: it is none, or is traced.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        if isinstance(value, Tracer):
            error.add_note(f"{name}: {argument} is {what}.")
            raise
        raise TypeError(f"{name}: {argument} is {what}, got {value!r} of type {type(value).__name__}") from None


def known_flag(name: str, argument: str, value: Any) -> bool:
    """True or False, or 1 or 0.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(value, bool | np.bool_ | int):
        raise TypeError(f"{name}: {argument} is True or False, got {value!r} of type {type(value).__name__}")
    return bool(value)


def one_of(name: str, argument: str, value: Any, words: tuple[str, ...]) -> str:
    """One of some words.

    Raises:
        ValueError: it is none of them.
    """
    if not isinstance(value, str) or value not in words:
        *others, last = map(repr, words)
        raise ValueError(f"{name}: {argument} is {', '.join(others)} or {last}, got {value!r}")
    return value


def number(name: str, argument: str, value: Any) -> Any:
    """A parameter as an array, a tracer or a number.

    Raises:
        TypeError: it is a key, a complex number, or nothing of these.
    """
    if type(value) is float or type(value) is int:
        return value
    found = array_or_number(name, argument, value)
    if is_key(found) or dtypes.is_complex(found.dtype):
        raise TypeError(f"{name}: {argument} is of real numbers, got {found.aval.str_short()}")
    return found


def array_or_number(name: str, argument: str, value: Any) -> Any:
    """An array or a tracer of elements of any kind, keys too.

    Raises:
        TypeError: it is nothing of these.
    """
    if not is_array_like(value):
        raise TypeError(f"{name}: {argument} is an array or a number, got {value!r} of type {type(value).__name__}")
    return as_array(value)


def positive(name: str, argument: str, value: Any) -> Any:
    """A parameter that is greater than 0, where it is known.

    Raises:
        TypeError: it is no array and no number.
        ValueError: an element is 0 or less.
    """
    found = parameter(name, argument, value, least=None)
    if type(found) in (float, int, Array) and refused(found, lambda x: bool(np.any(np.asarray(x, np.float64) <= 0))):
        raise ValueError(f"{name}: {argument} is positive, got {value!r}")
    return found


def parameter(name: str, argument: str, value: Any, dtype: Any = None, *, least: float | None = 0) -> Any:
    """A parameter of a distribution, in its dtype.

    Args:
        name: the function.
        argument: the parameter's name.
        value: an array or a number.
        dtype: of the numbers that are drawn; None leaves the parameter's.
        least: below which there is no such distribution; None where there is no such bound. Values that are known
            are compared with it, others are not.

    Raises:
        TypeError: it is no array and no number.
        TypePromotionError: its dtype is wider than `dtype`.
        ValueError: an element is less than `least`.
    """
    found = number(name, argument, value)
    if (
        least is not None
        and type(found) in (float, int, Array)
        and refused(found, functools.partial(_any_below, least))
    ):
        what = "not negative" if least == 0 else f"{least} or more"
        raise ValueError(f"{name}: {argument} is {what}, got {value!r}")
    if dtype is None:
        return found
    aval = None if type(found) in (float, int) else found.aval
    if aval is not None and not aval.weak_type and dtypes.promote_types(aval.dtype, dtype) != dtype:
        raise dtypes.TypePromotionError(
            f"{name}: {argument} is of dtype {dtypes.short_name(aval.dtype)}, which {dtypes.short_name(dtype)}, the "
            "dtype of what is drawn, does not hold: convert it, or ask for another dtype"
        )
    return converted(found, dtype)


def _any_below(least: float, value: Any) -> bool:
    if type(value) is not Array:
        return bool(value < least)
    if value.dtype.kind == "u" or not (dtypes.is_float(value.dtype) or dtypes.is_integer(value.dtype)):
        return False
    return np.count_nonzero(host_value(value) < least) > 0


def common_shape(name: str, shape: Any, **arguments: Any) -> tuple[Any, ...]:
    """The shape of what is drawn: as asked for, or what the parameters broadcast to.

    Raises:
        TypeError, ValueError: the shape is none, or the parameters do not broadcast to it.
    """
    return joint_shape(name, shape, {argument: np.shape(x) for argument, x in arguments.items()})


def joint_shape(name: str, shape: Any, shapes: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
    """As `common_shape`, of the parameters' shapes."""
    found = None if shape is None else shape_argument(name, shape)
    joint = lax.broadcast_shapes(*shapes.values(), *(() if found is None else (found,)))
    if found is not None and joint != found:
        given = " and ".join(f"{argument} of shape {s}" for argument, s in shapes.items())
        raise ValueError(f"{name}: {given} do not broadcast to shape {found}, but to {joint}")
    return joint


def converted(x: Any, dtype: Any) -> Any:
    """An array or a number in a dtype; numbers of Python's are rounded once, whatever the default width is."""
    if type(x) is float or type(x) is int:
        with np.errstate(all="ignore"):
            return as_array(np.asarray(x, dtype))
    return lax.convert_element_type(x, dtype)


def of_32_bits(x: Any) -> Any:
    """Convert floats of 16 bits and less to float32; their random numbers have 10 bits or less."""
    return lax.convert_element_type(x, _FLOAT32) if dtypes.finfo(x.dtype).bits < 32 else x


def spread(x: Any, shape: tuple[Any, ...]) -> Any:
    """An array broadcast to a shape."""
    return jnp.broadcast_to(x, shape)
