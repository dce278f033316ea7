"""Queries about dtypes: limits, kinds, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes, get_aval

_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": dtypes.is_bool,
    "signed integer": lambda d: dtypes.is_integer(d) and not dtypes.is_unsigned(d),
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer,
    "real floating": dtypes.is_float,
    "complex floating": dtypes.is_complex,
    "numeric": lambda d: not dtypes.is_bool(d),
}


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating or complex dtype, also narrow ones. Raises TypeError for other dtypes."""
    return dtypes.finfo(dtype)


def iinfo(int_type: Any) -> Any:
    """Return the limits of an integer dtype, also of 1 to 4 bits. Raises TypeError for other dtypes."""
    return dtypes.iinfo(int_type)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether a dtype is equal to another or belongs to a kind, as bfloat16 to `numpy.floating`."""
    return bool(dtypes.issubdtype(arg1, arg2))


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype to which the arguments promote.

    Args:
        *args: arrays, array types, Python numbers (which are weakly typed), dtypes and their names. NumPy arrays and
            scalars count as they do as operands: under the setting `x64_compat` as 32 bits wide.
        return_weak_type_flag: whether to return `(dtype, weak_type)`.

    Raises:
        TypePromotionError: the dtypes have no implicit promotion.
        ValueError: there are no arguments.
    """
    args = tuple(dtypes.default_float_dtype() if x is None else x for x in args)
    operands = [get_aval(x) if isinstance(x, np.ndarray | np.generic) else x for x in args]
    return dtypes.result_type(*operands, return_weak_type_flag=return_weak_type_flag)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype belongs to a kind.

    Args:
        dtype: a dtype, its name, or a scalar type.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
            "numeric"; a dtype; or a tuple of these, of which one must match.

    Raises:
        TypeError: `dtype` is not a dtype, or a kind has another type.
        ValueError: a kind is an unknown string.
    """
    checked = _dtype_itself(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    matches = [_is_of_kind(checked, one) for one in kinds]  # a list, so that all kinds are checked for errors
    return any(matches)


def _dtype_itself(x: Any) -> Any:
    """Return a dtype; values that have one are not accepted."""
    if isinstance(x, str | type | np.dtype):
        return dtypes.dtype(x)
    raise TypeError(f"isdtype: expected a dtype, its name or a scalar type, got {x!r} of type {type(x).__name__}")


def _is_of_kind(dtype: Any, kind: Any) -> bool:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind](dtype)
    try:
        return bool(dtype == _dtype_itself(kind))
    except TypeError as error:
        if isinstance(kind, str):
            raise ValueError(
                f"isdtype: {kind!r} is neither a kind ({', '.join(_KINDS)}) nor the name of a dtype"
            ) from None
        raise TypeError(f"isdtype: a kind must be a string, a dtype or a tuple of these; {error}") from None


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Return whether values of one dtype can be cast to another.

    Args:
        from_: a dtype, its name, a scalar type or an array.
        to: a dtype, its name or a scalar type.
        casting: "no", "equiv", "safe" (the default), "same_kind" or "unsafe", as in NumPy.

    Raises:
        TypeError: an argument is none of these; or a Python number, because its dtype depends on the other operand.
        ValueError: `casting` is unknown.
    """
    if type(from_) in (bool, int, float, complex):
        raise TypeError(f"can_cast: a Python number has no dtype of its own, got {from_!r}")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"can_cast: casting is 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got {casting!r}")
    rule: Any = casting  # NumPy types this argument as a literal
    return bool(np.can_cast(dtypes.dtype(from_), dtypes.dtype(to), casting=rule))
