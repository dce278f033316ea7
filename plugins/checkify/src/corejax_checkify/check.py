"""`check` and `debug_check`, which users write into functions."""

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

    In a function that is transformed by `checkify` a condition that does not hold becomes the function's error. In one
    that is merely run it raises; one that is compiled has to be transformed.

    Args:
        pred: a scalar boolean, which has to hold.
        msg: what to say if it does not, a format string: `"{} is above {limit}"`.
        fmt_args, fmt_kwargs: arrays and numbers for it (in pytrees), which may be traced; they are kept until the
            program has run.
        debug: check only inside `checkify`, as `debug_check`.

    Raises:
        CorejaxRuntimeError: the condition does not hold, and nothing is traced.
        TypeError: `pred` is not a scalar boolean, `msg` no text, or an argument for it not an array.
        ValueError: `msg` asks for arguments that are not given.
    """
    _check("check", pred, msg, fmt_args, fmt_kwargs, bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, inside `checkify` only: else it does nothing, compiled or run.

    Args:
        pred, msg, fmt_args, fmt_kwargs: as of `check`.

    Raises:
        TypeError, ValueError: as `check`.
    """
    _check("debug_check", pred, msg, fmt_args, fmt_kwargs, True)


def _check(name: str, pred: Any, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any], debug: bool) -> None:
    if not isinstance(msg, str):
        raise TypeError(f"{name}: msg is a text, got {msg!r} of type {type(msg).__name__}")
    fails = _negated(name, pred)
    leaves, structure = tree.tree_flatten((args, kwargs))
    for x in leaves:
        if not isinstance(x, Tracer) and not is_array_like(x):
            raise TypeError(
                f"{name}: what is put into the message are arrays and numbers, got {x!r} of type {type(x).__name__}; "
                "put what is known while tracing into the text itself"
            )
    _check_format(name, msg, args, kwargs)
    payload = [without_derivative(x) if isinstance(x, Tracer) else as_array(x) for x in leaves]
    types = typed(payload)
    failure = Failure(FailedCheckError, (msg, structure), capture_source())
    error_type = ErrorType([(failure, types)], [types] if types else [])
    primitive = debug_check_p if debug else check_p
    primitive.bind(fails, constant(0, np.int32), *payload, error_type=error_type)


def _negated(name: str, pred: Any) -> Any:
    """Whether the condition does not hold."""
    if isinstance(pred, Tracer) or is_array_like(pred):
        aval = get_aval(pred)
        if aval.shape == () and aval.dtype == np.bool_:
            return lax.bitwise_not(pred) if isinstance(pred, Tracer) else constant(not bool(pred), np.bool_)
    advice = "; reduce it, with .all() for example" if np.ndim(pred) else ""
    raise TypeError(f"{name} takes a scalar pred, a boolean, got {pred!r} of type {type(pred).__name__}{advice}")


def _check_format(name: str, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a text that asks for what there is not.

    Raises:
        ValueError: it does, or is no format string.
    """
    if not args and not kwargs:
        return  # it may be a text with braces in it
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(msg) if field is not None]
    except ValueError as error:
        raise ValueError(
            f"{name}: msg is a format string (a brace is written twice), {msg!r} is none: {error}"
        ) from None
    automatic = 0
    for field in fields:
        first = str(field).partition(".")[0].partition("[")[0]
        if not first:
            first, automatic = str(automatic), automatic + 1
        if (first.isdigit() and int(first) < len(args)) or first in kwargs:
            continue
        raise ValueError(
            f"{name}: msg {msg!r} asks for {{{field}}}, which is not among the arguments; to write a brace, double it"
        )
