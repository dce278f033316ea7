"""The lock around loading: one thread at a time runs plugins' hooks, and imports cannot deadlock on it.

A thread that imports `corejax.x` for the first time holds Python's lock of that module (`_finder` has released the
global import lock) and needs the plugins loaded. A thread that loads a plugin holds this lock, and the plugin imports
modules. If the owner waits for one of the waiter's own imports, the waiter goes on in the owner's place: the owner
sleeps until that import is done, and the import encloses all that is done under the lock.
The same holds of an owner that waits for the end of the waiter, or for anything else that a thread does (a plugin
that, while it is imported, starts threads which use other plugins).

An owner that an interrupt has driven out is not let stand in the way: whoever waits looks whether it is still there.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType, TracebackType
from typing import NamedTuple

_POLL = 0.005  # seconds between looks at what the owner waits for
_LOOKS = 40  # after which an owner that has not moved sleeps
_IMPORTLIB = "<frozen importlib._bootstrap>"
_THREADING = threading.__file__


class _Holder(NamedTuple):
    """One `with` block: its thread's identifier, and the frame that it is in."""

    thread: int
    frame: FrameType | None


class LoadLock:
    """A reentrant lock that a thread may borrow from an owner that waits for it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._holders: list[_Holder] = []  # the last one is the owner

    def __enter__(self) -> LoadLock:
        mine = _Holder(threading.get_ident(), sys._getframe().f_back)
        looks = _Looks(mine.thread)
        while True:
            with self._guard:
                self._holders[:] = [holder for holder in self._holders if _is_there(holder)]
                owner = self._holders[-1].thread if self._holders else mine.thread
                if owner == mine.thread or looks.waits(owner):
                    self._holders.append(mine)
                    return self
            time.sleep(_POLL)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        with self._guard:
            last = max((i for i, holder in enumerate(self._holders) if holder.thread == me), default=None)
            if last is not None:
                del self._holders[last]


class _Looks:
    """What the waiting thread `me` has seen of the owner."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.importing = 0  # times in a row that the owner waited for an import of this thread
        self.still = 0  # times in a row that it waited in one place for something that threads do
        self.place: tuple[int, int] | None = None

    def waits(self, owner: int) -> bool:
        """Whether the owner sleeps until this thread has gone on."""
        frame = sys._current_frames().get(owner)
        if frame is None:
            return False
        # Twice in a row: an owner on its way out of an import looks for a moment as if it waited.
        self.importing = self.importing + 1 if _waits_for_import(frame, self.me) else 0
        place = (id(frame), frame.f_lasti) if frame.f_code.co_filename == _THREADING else None
        self.still = self.still + 1 if place is not None and place == self.place else 0
        self.place = place
        return self.importing == 2 or self.still == _LOOKS


def _is_there(holder: _Holder) -> bool:
    """Whether a thread is still inside of the block that it took the lock for."""
    frame = sys._current_frames().get(holder.thread)
    while frame is not None and frame is not holder.frame:
        frame = frame.f_back
    return frame is not None


def _waits_for_import(frame: FrameType, me: int) -> bool:
    """Return whether a thread waits for a module that this one imports."""
    code = frame.f_code
    is_waiting = code.co_filename == _IMPORTLIB and code.co_name == "acquire"
    return is_waiting and getattr(frame.f_locals.get("self"), "owner", None) == me
