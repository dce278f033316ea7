"""Tracebacks without the library's own frames: they show the user's lines, and a line that counts removed frames.

Frames of the kernel and of the first-party plugins are removed. Those of other plugins stay, since the reader may be
their author. The filter runs only when an exception is raised.
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

# Prefixes of file names. A context manager that decorates a function adds frames of contextlib.
_prefixes: list[str] = [
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""),
    contextlib.__file__,
]
_MARKER = "<corejax>"  # file name of the line that counts removed frames
_NOTE = (
    "For simplicity, this traceback is without corejax's own frames; "
    'corejax.config.update("traceback_filtering", "off") shows all'
)


def leave_out(directory: str) -> None:
    """Remove frames in the files of a directory from tracebacks."""
    prefix = os.path.join(os.path.abspath(directory), "")
    if prefix not in _prefixes:
        _prefixes.append(prefix)


def api_boundary(fun: F) -> F:
    """Decorate a function that users call, such that its exceptions have no frames of the library.

    The setting `traceback_filtering` selects how frames are removed. The outermost of nested boundaries filters last.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except frames_left_out():
            raise

    call.__wrapped__ = getattr(fun, "__wrapped__", fun)  # the user's function if `fun` is a transformed one
    return cast(F, call)


def frames_left_out() -> tuple[()]:
    """Filter the traceback of the current exception, and return the empty tuple.

    Use it as `except frames_left_out(): raise`. The clause matches no exception, so the exception propagates with the
    filtered traceback. Python does not add the frame with the clause again, so that this frame is removed as well.
    """
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and config.traceback_filtering != "off":
        with contextlib.suppress(Exception):  # a failure of the filter must not hide the user's exception
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
    """Set the exception's cause to an `UnfilteredStackTrace` with the whole traceback.

    At an outer boundary the exception has such a cause already. The entries that were added since are added to it.
    """
    cause = error.__cause__
    if isinstance(cause, UnfilteredStackTrace):
        added = []
        while whole is not None and whole is not cause.filtered:
            added.append(whole)
            whole = whole.tb_next
        cause.__traceback__ = _joined(added, cause.__traceback__)
    else:
        unfiltered = UnfilteredStackTrace(
            f"{type(error).__name__}: {error}\n\nThis is its traceback before frames were removed."
        )
        unfiltered.__traceback__, unfiltered.__cause__, unfiltered.__context__ = whole, cause, error.__context__
        unfiltered.__suppress_context__ = error.__suppress_context__
        error.__cause__ = cause = unfiltered
    cause.filtered = error.__traceback__


def _hide(traceback: TracebackType | None) -> None:
    """Mark the library's frames with the local variable by which IPython and pytest hide frames."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename.startswith(tuple(_prefixes)):
            frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def _marker(count: int) -> TracebackType:
    """Make the entry of a traceback that counts removed frames; pytest hides it."""
    frames = "1 frame is" if count == 1 else f"{count} frames are"
    text = f'{frames} left out here; corejax.config.update("traceback_filtering", "off") shows all'
    code = compile("raise Exception", _MARKER, "exec").replace(co_name=text)
    try:
        exec(code, {"__tracebackhide__": True, "left_out": count})
    except Exception as error:
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        return error.__traceback__.tb_next
    raise AssertionError


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes and contexts, up to an `UnfilteredStackTrace`."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen and not isinstance(each, UnfilteredStackTrace):
            seen.add(id(each))
            yield each
            pending += [each.__cause__, each.__context__]


def _split(traceback: TracebackType | None) -> tuple[list[TracebackType], int, int]:
    """Return the entries to show, the number of entries to remove, and the number removed by earlier filters."""
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
