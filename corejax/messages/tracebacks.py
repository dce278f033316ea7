"""Tracebacks without the library's own frames: the user's lines, and one line for what was left out.

Frames of the kernel and of the first-party plugins are left out. Those of other plugins stay: a rule is its author's
code. All of it happens when an exception is raised, and costs nothing before.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar, cast

from corejax.errors import UnfilteredStackTrace
from corejax.settings.config import config

F = TypeVar("F", bound=Callable[..., Any])

# Prefixes of file names. Of contextlib there are frames where a context manager decorates a function.
_prefixes: list[str] = [
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""),
    contextlib.__file__,
]
_MARKER = "<corejax>"  # the file of the line that stands for what was left out
_NOTE = (
    "For simplicity, this traceback is without corejax's own frames; "
    'corejax.config.update("traceback_filtering", "off") shows all'
)


def leave_out(directory: str) -> None:
    """Leave frames in the files of a directory out of tracebacks."""
    prefix = os.path.join(os.path.abspath(directory), "")
    if prefix not in _prefixes:
        _prefixes.append(prefix)


def api_boundary(fun: F) -> F:
    """Decorate a function that users call: an exception leaves it without the library's frames.

    `config.traceback_filtering` says whether; of nested ones the outermost has the last word.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except frames_left_out():
            raise

    call.__wrapped__ = getattr(fun, "__wrapped__", fun)  # a transformed function is one layer around the user's
    return cast(F, call)


def frames_left_out() -> tuple[()]:
    """What `except frames_left_out(): raise` evaluates while an exception is on its way: it matches none.

    An exception that no clause matches goes on with the traceback that it has then, to which Python does not add the
    frame again. So the frame with the clause is left out too.
    """
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and config.traceback_filtering != "off":
        with contextlib.suppress(Exception):  # whatever is wrong with it, the exception itself is what the user needs
            _filter(error)
    return ()


def _filter(error: Exception) -> None:
    mode = config.traceback_filtering
    whole = error.__traceback__
    for each in _chain(error):
        if mode == "tracebackhide":
            _hide(each.__traceback__)
            continue
        entries, dropped, earlier = _split(each.__traceback__)
        if dropped:
            each.__traceback__ = _joined([_marker(dropped + earlier), *entries] if mode == "auto" else entries)
        if dropped and mode == "quiet_remove_frames" and _NOTE not in getattr(each, "__notes__", ()):
            each.add_note(_NOTE)
    if mode == "remove_frames" and error.__traceback__ is not whole:
        _keep_whole(error, whole)


def _keep_whole(error: Exception, whole: TracebackType | None) -> None:
    """Make the exception's cause one with the traceback before frames were removed.

    At an outer boundary the exception has such a cause already: it gets the entries that were added since.
    """
    cause = error.__cause__
    if isinstance(cause, UnfilteredStackTrace):
        added = []
        while whole is not None and whole is not cause.filtered:
            added.append(whole)
            whole = whole.tb_next
        cause.__traceback__ = _joined(added, cause.__traceback__)
    else:
        made = UnfilteredStackTrace(
            f"{type(error).__name__}: {error}\n\nThis is its traceback before frames were removed."
        )
        made.__traceback__, made.__cause__, made.__context__ = whole, cause, error.__context__
        made.__suppress_context__ = error.__suppress_context__
        error.__cause__ = cause = made
    cause.filtered = error.__traceback__


def _hide(traceback: TracebackType | None) -> None:
    """Mark the library's frames, by the local variable that IPython and pytest look for."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename.startswith(tuple(_prefixes)):
            frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def _marker(count: int) -> TracebackType:
    """A line of a traceback that stands for frames that were left out; pytest hides it."""
    frames = "1 frame is" if count == 1 else f"{count} frames are"
    text = f'{frames} left out here; corejax.config.update("traceback_filtering", "off") shows all'
    code = compile("raise Exception", _MARKER, "exec").replace(co_name=text)
    try:
        exec(code, {"__tracebackhide__": True, "left_out": count})
    except Exception as made:
        assert made.__traceback__ is not None and made.__traceback__.tb_next is not None
        return made.__traceback__.tb_next
    raise AssertionError


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that led to it, up to one that keeps a whole traceback."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen and not isinstance(each, UnfilteredStackTrace):
            seen.add(id(each))
            yield each
            left += [each.__cause__, each.__context__]


def _split(traceback: TracebackType | None) -> tuple[list[TracebackType], int, int]:
    """The entries that are shown, how many are not, and how many were not shown before."""
    entries = []
    dropped = earlier = 0
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename == _MARKER:
            earlier += frame.f_globals["left_out"]
        elif frame.f_code.co_filename.startswith(tuple(_prefixes)):
            dropped += 1
        else:
            entries.append(traceback)
        traceback = traceback.tb_next
    return entries, dropped, earlier


def _joined(entries: list[TracebackType], rest: TracebackType | None = None) -> TracebackType | None:
    joined = rest
    for entry in reversed(entries):
        joined = TracebackType(joined, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return joined
