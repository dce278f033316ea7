"""Tracebacks without the library's own frames: the user's lines, and a note that says what was left out.

Frames of the kernel and of its first-party plugins are left out; those of other plugins, whose rules are somebody's
code, stay. Nothing is done, and nothing costs anything, until there is an exception.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar, cast

from corejax.config import config

F = TypeVar("F", bound=Callable[..., Any])

# Prefixes of file names. Of contextlib there are frames where a context manager decorates a function.
_prefixes: list[str] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), ""), contextlib.__file__]
_LEFT_OUT = "__corejax_left_out__"  # attribute of an exception: how many frames, and the note that says so


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
    count, earlier = getattr(error, _LEFT_OUT, (0, None))
    found = 0
    for each in _chain(error):
        kept, dropped = _split(each.__traceback__)
        if dropped:
            each.__traceback__ = kept
            found += dropped
    if not found:
        return
    note = _note(count + found)
    setattr(error, _LEFT_OUT, (count + found, note))
    notes = getattr(error, "__notes__", [])
    if earlier in notes:
        notes.remove(earlier)
    error.add_note(note)


def _note(count: int) -> str:
    frames = "1 frame" if count == 1 else f"{count} frames"
    return f'corejax left out {frames} of its own; corejax.config.update("traceback_filtering", "off") shows them.'


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that led to it."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            left += [each.__cause__, each.__context__]


def _split(traceback: TracebackType | None) -> tuple[TracebackType | None, int]:
    """A traceback without the library's frames, and how many those are."""
    entries = []
    dropped = 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(tuple(_prefixes)):
            dropped += 1
        else:
            entries.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept, dropped
