"""The lock around loading: one thread at a time runs plugins' hooks, and imports cannot deadlock on it.

A thread that imports `corejax.x` for the first time holds Python's own locks (one of that module, and while finders
are asked, a global one) and needs the plugins loaded; a thread that loads a plugin holds this one, and the plugin
imports modules. Whoever waits for this lock while its owner waits for one of the waiter's own imports goes on in the
owner's place: the owner sleeps until that import is done, and the import encloses all that is done under the lock.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType

_POLL = 0.02  # seconds between looks at what the owner waits for
_IMPORTLIB = "<frozen importlib._bootstrap>"


class LoadLock:
    """A reentrant lock that a thread may borrow from an owner that waits for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders: list[int] = []  # identifiers of threads, one for each `with`; the last one is the owner

    def __enter__(self) -> LoadLock:
        me, seen = threading.get_ident(), 0
        with self._changed:
            while self._holders and self._holders[-1] != me:
                # Twice in a row: an owner on its way out of an import looks for a moment as if it waited.
                seen = seen + 1 if _waits_for(self._holders[-1], me) else 0
                if seen == 2:
                    break
                self._changed.wait(_POLL)
            self._holders.append(me)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._changed:
            self._holders.pop()
            self._changed.notify_all()


def _waits_for(thread: int, me: int) -> bool:
    """Whether a thread waits for an import of this one: for the module itself, or for a finder to answer."""
    frame = sys._current_frames().get(thread)
    if frame is None or frame.f_code.co_filename != _IMPORTLIB:
        return False
    if frame.f_code.co_name == "acquire":
        return getattr(frame.f_locals.get("self"), "owner", None) == me
    return any(f.f_code.co_name == "_find_spec" for f in _importing(sys._getframe()))


def _importing(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTLIB:
            yield frame
        frame = frame.f_back
