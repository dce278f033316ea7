"""Texts of messages. Names, docs and errors of plugins are made safe to print; the conversion never raises."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

_KEPT = "\n\t"


def shown(text: object) -> str:
    r"""Escape control characters, so that a terminal shows `\x1b[2J` and does not execute it.

    Line breaks and tabs stay. Characters that change the direction of text and surrogates are escaped as well.
    """
    text = text if isinstance(text, str) else described(text)
    if text.isprintable():
        return str(text)
    return "".join(c if c.isprintable() or c in _KEPT else c.encode("unicode_escape").decode() for c in text)


def one_line(text: object) -> str:
    """Escape control characters, line breaks and tabs, for a cell of a table."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def _convert(convert: Callable[[Any], str], value: object, fallback: Callable[[BaseException], str]) -> str:
    """Return `convert(value)`, or `fallback(error)` if that raises."""
    try:
        return convert(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return fallback(error)


def described(value: object) -> str:
    """Return `repr(value)`, or the name of its class if that raises."""
    return _convert(repr, value, lambda _: f"<{type(value).__name__}>")


def message_of(error: BaseException) -> str:
    """Return `str(error)`, or a remark if that raises."""
    return _convert(str, error, lambda another: f"(its message cannot be shown: {type(another).__name__})")


def error_text(error: BaseException) -> str:
    """Return `Type: message`, or only the type if the message is empty."""
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'sin'?"`, to end a message about an unknown name; "" if no known name is close."""
    close = closest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like a name; None if more than about a third of the letters differ."""
    import difflib  # needed for an error only

    return next(iter(difflib.get_close_matches(name, sorted(known), 1, 0.65)), None)


def how_to_install(distribution: str) -> str:
    """Return `"corejax-numpy (pip install corejax-numpy)"`.

    If a bundler kept the code but not the metadata of the distribution, the text tells how to keep both.
    """
    import importlib.util  # needed for an error only

    from importlib_metadata import PackageNotFoundError, version

    package = distribution.replace("-", "_")
    advice = f"pip install {distribution}"
    try:
        version(distribution)
    except PackageNotFoundError:
        if importlib.util.find_spec(package) is not None:
            keep = f"PyInstaller: --copy-metadata {distribution} --collect-all {package}"
            advice = (
                f"its code is here without the metadata by which plugins are found; a bundler must keep both, {keep}"
            )
    return f"{distribution} ({advice})"


def no_such_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module lacks, with a close name as suggestion.

    Private names get none: Python itself looks up names such as `__path__`, at each `from module import name`.
    """
    meant = "" if name.startswith("_") else did_you_mean(name, (n for n in known if not n.startswith("_")))
    # Without `name` Python would fill in `obj`, and print a suggestion of its own after ours.
    return AttributeError(f"module {module!r} has no attribute {name!r}{meant}", name=name)


def suggest_names(module: dict[str, Any]) -> None:
    """Give a module a `__getattr__` that raises an error with a close public name as suggestion.

    A type checker does not see it. With a `def __getattr__` in the module it would accept every missing name.
    """

    def missing(name: str) -> NoReturn:
        raise no_such_name(module["__name__"], name, module)

    module["__getattr__"] = missing


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception; ignore exceptions that do not accept one."""
    try:
        error.add_note(note)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return


def json_text(value: object) -> str:
    """Format a value as JSON on several lines, with keys in their order; values that JSON lacks become their `repr`.

    Characters that are not printable, or that the encoding of standard output lacks, are escaped.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    import json  # needed by the command only

    ascii_only = not encoding.lower().startswith("utf")
    text = json.dumps(_plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False, default=described)
    return re.sub(r"[^\n -~]", lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


def _plain(value: object) -> Any:
    """Convert what `json` would not write: infinities, NaN, and keys that are not text."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {key if isinstance(key, str) else described(key): _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    return value
