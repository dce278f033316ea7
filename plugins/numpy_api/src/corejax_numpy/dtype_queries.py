"""Questions about dtypes: limits, kinds, casts."""

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
    """Limits of a floating or complex dtype, bfloat16 and narrower ones included. Raises TypeError for others."""
    return dtypes.finfo(dtype)


def iinfo(int_type: Any) -> Any:
    """Limits of an integer dtype, of 1 to 4 bits too. Raises TypeError for others."""
    return dtypes.iinfo(int_type)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is another one or, as bfloat16 is of `numpy.floating`, of a kind."""
    return dtypes.issubdtype(arg1, arg2)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Dtype that an operation on the arguments has.

    Args:
        *args: arrays, types of arrays, Python's numbers, which are weakly typed, dtypes and their names. NumPy's
            arrays and numbers count as functions take them: under the setting `x64_compat` as 32 bits wide.
        return_weak_type_flag: return `(dtype, weak_type)`.

    Raises:
        TypePromotionError: there is no implicit promotion.
        ValueError: there are no arguments.
    """
    args = tuple(dtypes.default_float_dtype() if x is None else x for x in args)
    taken = [get_aval(x) if isinstance(x, np.ndarray | np.generic) else x for x in args]
    return dtypes.result_type(*taken, return_weak_type_flag=return_weak_type_flag)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: a dtype, its name, or a scalar type.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric";
            or a dtype; or a tuple of these, of which one has to fit.

    Raises:
        TypeError: `dtype` is none, or a kind is none of these.
        ValueError: a kind is a string of another meaning.
    """
    given = _dtype_itself(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    fits = [_is_of_kind(given, one) for one in kinds]  # each of them, for what is wrong with the last one
    return any(fits)


def _dtype_itself(x: Any) -> Any:
    """A dtype that is not taken from a value."""
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
            raise ValueError(f"isdtype: {kind!r} names neither a kind ({', '.join(_KINDS)}) nor a dtype") from None
        raise TypeError(f"isdtype: a kind is a string, a dtype or a tuple of them; {error}") from None


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether values of a dtype can be cast to another one.

    Args:
        from_: a dtype, its name, a scalar type or an array.
        to: a dtype, its name or a scalar type.
        casting: "no", "equiv", "safe", "same_kind", "unsafe", as NumPy's.

    Raises:
        TypeError: an argument is neither, or a Python number, whose dtype depends on the other operand.
    """
    if type(from_) in (bool, int, float, complex):
        raise TypeError(f"can_cast: a Python number has no dtype of its own, got {from_!r}")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"can_cast: casting is 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got {casting!r}")
    return bool(np.can_cast(dtypes.dtype(from_), dtypes.dtype(to), casting=casting))  # type: ignore[arg-type]
