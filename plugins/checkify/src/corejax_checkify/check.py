"""`check` and `debug_check`, which users call in functions."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, get_aval, is_array_like, tree
from corejax.extend.messages import capture_source
from corejax_checkify.check_primitive import check_p, debug_check_p
from corejax_checkify.failures import FailedCheckError, Failure
from corejax_checkify.state import ErrorType, constant, typed, without_derivative
from corejax_lax_basic import lax


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check a condition while a program runs.

    In a function that is transformed by `checkify`, a failed condition becomes the function's error. In eager code it
    raises an exception. A compiled function must be transformed by `checkify`.

    Args:
        pred: boolean scalar, the condition.
        msg: message of the failure, a format string such as `"{} is above {limit}"`.
        *fmt_args: arrays and numbers for the format string (in pytrees). They may be traced; their values are stored
            until the program has run.
        debug: if True, check only inside `checkify`, as `debug_check`.
        **fmt_kwargs: arrays and numbers for named fields of the format string.

    Raises:
        CorejaxRuntimeError: if the condition is False, outside transformations.
        TypeError: if `pred` is not a boolean scalar, `msg` is not a string, or an argument for it is not an array.
        ValueError: if `msg` has fields without an argument.
    """
    _check("check", pred, msg, fmt_args, fmt_kwargs, bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check a condition inside `checkify` only; elsewhere do nothing, in eager and in compiled code.

    Args:
        pred: boolean scalar, the condition.
        msg: message of the failure, see `check`.
        *fmt_args: arrays and numbers for the format string.
        **fmt_kwargs: arrays and numbers for named fields of the format string.

    Raises:
        TypeError, ValueError: as `check`.
    """
    _check("debug_check", pred, msg, fmt_args, fmt_kwargs, True)


def _check(name: str, pred: Any, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any], debug: bool) -> None:
    if not isinstance(msg, str):
        raise TypeError(f"{name}: msg must be a string, got {msg!r} of type {type(msg).__name__}")
    fails = _negated(name, pred)
    leaves, structure = tree.tree_flatten((args, kwargs))
    for x in leaves:
        if not isinstance(x, Tracer) and not is_array_like(x):
            raise TypeError(
                f"{name}: arguments of the message must be arrays or numbers, got {x!r} of type {type(x).__name__}; "
                "put values that are known while tracing into the text itself"
            )
    _check_format(name, msg, args, kwargs)
    payload = [without_derivative(x) if isinstance(x, Tracer) else as_array(x) for x in leaves]
    types = typed(payload)
    failure = Failure(FailedCheckError, (msg, structure), capture_source())
    error_type = ErrorType([(failure, types)], [types] if types else [])
    primitive = debug_check_p if debug else check_p
    primitive.bind(fails, constant(0, np.int32), *payload, error_type=error_type)


def _negated(name: str, pred: Any) -> Any:
    """Return the negated condition."""
    if isinstance(pred, Tracer) or is_array_like(pred):
        aval = get_aval(pred)
        if aval.shape == () and aval.dtype == np.bool_:
            return lax.bitwise_not(pred) if isinstance(pred, Tracer) else constant(not bool(pred), np.bool_)
    advice = "; reduce it, with .all() for example" if np.ndim(pred) else ""
    raise TypeError(f"{name} takes a scalar pred, a boolean, got {pred!r} of type {type(pred).__name__}{advice}")


def _check_format(name: str, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise ValueError if a text is not a format string, or has fields without an argument."""
    if not args and not kwargs:
        return  # the text is used verbatim and may contain braces
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(msg) if field is not None]
    except ValueError as error:
        raise ValueError(f"{name}: msg must be a format string (braces are doubled), got {msg!r}: {error}") from None
    automatic = 0
    for field in fields:
        first = str(field).partition(".")[0].partition("[")[0]
        if not first:
            first, automatic = str(automatic), automatic + 1
        if (first.isdigit() and int(first) < len(args)) or first in kwargs:
            continue
        raise ValueError(
            f"{name}: msg {msg!r} has the field {{{field}}}, which is not among the arguments; double literal braces"
        )
