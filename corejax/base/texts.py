"""Texts that plugins wrote (names, docs, errors), made safe to print: without control characters, and never raising."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

_KEPT = "\n\t"
_HIDDEN = re.compile(r"[^\n -~]")  # looked at closer: whether it is printable


def shown(text: Any) -> str:
    r"""The text without control characters: a terminal shows `\x1b[2J` and does not obey it.

    Line breaks and tabs stay. What changes the direction of text is escaped, and so are surrogates, which no encoding
    has.
    """
    text = text if isinstance(text, str) else described(text)
    if text.isprintable():
        return str(text)
    return "".join(c if c.isprintable() or c in _KEPT else c.encode("unicode_escape").decode() for c in text)


def one_line(text: Any) -> str:
    """As `shown`, with line breaks and tabs escaped too: a cell of a table."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def _said(by: Callable[[Any], str], value: Any, instead: Callable[[BaseException], str]) -> str:
    """Return `by(value)`, or `instead(error)` if that fails."""
    try:
        return by(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return instead(error)


def described(value: Any) -> str:
    """`repr(value)`, or the name of its class where that fails."""
    return _said(repr, value, lambda _: f"<{type(value).__name__}>")


def message_of(error: BaseException) -> str:
    """`str(error)`, or a remark in its place where that fails."""
    return _said(str, error, lambda another: f"(its message cannot be shown: {type(another).__name__})")


def error_text(error: BaseException) -> str:
    """`Type: message`, or the type alone where there is no message."""
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`"; did you mean 'sin'?"`, to follow what says that there is no such name; nothing where none is like it."""
    import difflib  # needed for an error only

    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def how_to_install(distribution: str) -> str:
    """`"corejax-numpy (pip install corejax-numpy)"`.

    Of code without its metadata, as bundlers leave it, the text says how to keep these.
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
                f"whose code is here without the metadata that plugins are found by; a bundler has to keep both, {keep}"
            )
    return f"{distribution} ({advice})"


def no_such_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have.

    Names like `__path__` are asked for by Python itself, at each `from module import name`: nothing is like them.
    """
    meant = "" if name.startswith("_") else did_you_mean(name, (n for n in known if not n.startswith("_")))
    return AttributeError(f"module {module!r} has no attribute {name!r}{meant}")


def suggest_names(module: dict[str, Any]) -> None:
    """Give a module a `__getattr__` that raises an error with the public name that was probably meant.

    A type checker does not see it. It would take a `def __getattr__` in the module for every name that is missing.
    """

    def missing(name: str) -> NoReturn:
        raise no_such_name(module["__name__"], name, module)

    module["__getattr__"] = missing


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, which may refuse it."""
    try:
        error.add_note(note)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return


def json_text(value: Any) -> str:
    """A value as JSON on several lines, keys in the order given; what JSON does not have is described.

    Characters that are not printable, or that are not in the encoding of standard output, are escaped.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    import json  # needed by the command only

    text = json.dumps(_plain(value), indent=2, ensure_ascii=not encoding.lower().startswith("utf"), allow_nan=False)
    return _HIDDEN.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {key if isinstance(key, str) else described(key): _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    return described(value)
