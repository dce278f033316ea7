"""The lock around loading: one thread at a time runs plugins' hooks, and imports cannot deadlock on it.

A thread that imports `corejax.x` for the first time holds Python's lock of that module (`_finder` has released the
global import lock) and waits for this lock, to load the plugins. The thread that owns this lock loads a plugin, which
imports modules. If the owner waits for a module that the waiting thread is importing, the two would deadlock. In that
case the waiting thread borrows the lock. This is safe: the owner sleeps until that import has ended, and the borrowing
thread returns the lock before its import ends. A thread may also borrow the lock if the owner waits for anything else
that threads do: a plugin may, while it is imported, start threads that use other plugins. An interrupt may end the
owner's block without releasing the lock, so waiting threads check that the block still runs.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import NamedTuple

_POLL = 0.005  # seconds between two looks at the owner's frame
_LOOKS = 40  # an owner that has not moved for so many looks counts as asleep
_IMPORTLIB = "<frozen importlib._bootstrap>"
_THREADING = threading.__file__


class _Holder(NamedTuple):
    """One `with` block: the identifier of its thread, and its frame."""

    thread: int
    frame: FrameType | None


class LoadLock:
    """A reentrant lock that a thread may borrow while the owner waits for that thread."""

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

    def __exit__(self, *error: object) -> None:
        me = threading.get_ident()
        with self._guard:
            last = max((i for i, holder in enumerate(self._holders) if holder.thread == me), default=None)
            if last is not None:
                del self._holders[last]


class _Looks:
    """The observations of the owner by the waiting thread `me`."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.importing = 0  # consecutive looks at which the owner waited for an import of this thread
        self.still = 0  # consecutive looks at which the owner was at the same place in `threading`
        self.place: tuple[int, int] | None = None

    def waits(self, owner: int) -> bool:
        """Look at the owner, and return True if it sleeps until this thread has gone on."""
        frame = sys._current_frames().get(owner)
        if frame is None:
            return False
        # Two looks are needed: an owner that is leaving an import looks for a moment as if it waited.
        self.importing = self.importing + 1 if _waits_for_import(frame, self.me) else 0
        place = (id(frame), frame.f_lasti) if frame.f_code.co_filename == _THREADING else None
        self.still = self.still + 1 if place is not None and place == self.place else 0
        self.place = place
        return self.importing == 2 or self.still == _LOOKS


def _is_there(holder: _Holder) -> bool:
    """Return True if a thread is still inside the block for which it took the lock."""
    frame = sys._current_frames().get(holder.thread)
    while frame is not None and frame is not holder.frame:
        frame = frame.f_back
    return frame is not None


def _waits_for_import(frame: FrameType, me: int) -> bool:
    """Return True if the thread of `frame` waits for a module that thread `me` is importing."""
    code = frame.f_code
    is_waiting = code.co_filename == _IMPORTLIB and code.co_name == "acquire"
    return is_waiting and getattr(frame.f_locals.get("self"), "owner", None) == me
