"""`debug.print` and `debug.log`: format values and print or log them, from eager and compiled programs."""

from __future__ import annotations

import logging
import string
import sys
from typing import Any

import numpy as np

from corejax.extend.messages import user_frames
from corejax_xla_backend.callbacks.debug_callback import call, is_array

_logger = logging.getLogger("corejax.debug")


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values, eagerly and from compiled programs; see `debug.callback`.

    Args:
        fmt: a format string as for `str.format`: `"x is {x}, y is {:.3f}"`. With `skip_format_check`, a string without
            placeholders is printed before the positional arguments. If `fmt` is omitted, the result is a function
            `(fmt, *args, **kwargs)` that prints with these options.
        args: values for positional placeholders.
        ordered: whether the call prints after the ordered calls before it, also in loops and branches.
        partitioned: whether each of several devices prints its parts of the arrays; see `debug.callback`.
        skip_format_check: whether to skip the check, at the time of the call, that the arguments match the format
            string; mismatches then show when the values are printed.
        kwargs: values for named placeholders.

    Raises:
        TypeError: `fmt` is not a string.
        ValueError: an argument has no placeholder; perhaps `fmt` is an f-string, which is formatted already.
        IndexError, KeyError: a placeholder has no argument.
    """
    return _print("debug.print", None, fmt, args, kwargs, ordered, partitioned, skip_format_check)


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Log values, eagerly and from compiled programs.

    The arguments are those of `debug.print`. The record goes to the logger `corejax.debug`, at level INFO and with the
    user's line.
    """
    frames = user_frames()
    place = (frames[0].f_code.co_filename, frames[0].f_lineno) if frames else ("", 0)
    return _print("debug.log", place, fmt, args, kwargs, ordered, partitioned, skip_format_check)


def _print(
    api: str,
    place: tuple[str, int] | None,
    fmt: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool,
    partitioned: bool,
    skip_format_check: bool,
) -> Any:
    if fmt is None:
        if args or kwargs:
            raise TypeError(f"{api}: arguments without a format string, got {args} and {kwargs}")
        options = (ordered, partitioned, skip_format_check)
        return lambda fmt, /, *args, **kwargs: _print(api, place, fmt, args, kwargs, *options)
    if not isinstance(fmt, str):
        raise TypeError(f"{api}: the format must be a string, got {fmt!r} of type {type(fmt).__name__}")
    if not skip_format_check:
        _Checker(api).vformat(fmt, args, kwargs)
    style = {name: value for name, value in np.get_printoptions().items() if name != "override_repr"}
    return call(api, _Printer(fmt, tuple(style.items()), place), args, kwargs, ordered, _is_operand, partitioned)


def _is_operand(x: Any) -> bool:
    """Return whether a value becomes an operand; Python numbers, in shapes for example, are printed unconverted."""
    return type(x) not in (bool, int, float, complex) and is_array(x)


class _Printer:
    """The callback of `debug.print` and `debug.log`, which formats with NumPy's print options at the time of the call.

    Attributes:
        fmt: the format string.
        options: NumPy's print options.
        place: file and line of the log record; None to print.
    """

    __slots__ = ("fmt", "options", "place")

    def __init__(self, fmt: str, options: tuple[tuple[str, Any], ...], place: tuple[str, int] | None) -> None:
        self.fmt = fmt
        self.options = options
        self.place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Printer) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"print {self.fmt!r}, {self.options}, {self.place}"

    @property
    def __name__(self) -> str:
        return self.fmt

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**dict(self.options)):
            fields = any(name is not None for _, name, _, _ in string.Formatter().parse(self.fmt))
            formatted = fields or not (args or kwargs)
            text = self.fmt.format(*args, **kwargs) if formatted else " ".join([self.fmt, *map(str, args)])
        if self.place is None:
            sys.stdout.write(text + "\n")
        elif _logger.isEnabledFor(logging.INFO):
            _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, *self.place, text, (), None))


class _Checker(string.Formatter):
    """A formatter that checks whether arguments match a format string, without formatting them."""

    def __init__(self, api: str) -> None:
        self.api = api

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return an empty string without formatting, because the value may be traced."""
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Return the value unconverted."""
        return value

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        """Return an argument; raise an error that names the placeholder if the argument is missing."""
        try:
            return super().get_value(key, args, kwargs)
        except (IndexError, KeyError) as error:
            message = f"{self.api}: the format string has a placeholder for {key!r}, but there is no such argument"
            raise type(error)(message) from None

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        """Raise ValueError if arguments have no placeholder."""
        unused = [i for i in range(len(args)) if i not in used_args] + [
            name for name in kwargs if name not in used_args
        ]
        if unused:
            raise ValueError(
                f"{self.api}: the format string has no placeholder for {', '.join(map(repr, unused))}. Is it an "
                'f-string? Values are formatted when they are known: debug.print("x is {x}", x=x)'
            )
