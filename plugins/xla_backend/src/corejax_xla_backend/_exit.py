"""The end of the process, while daemon threads compile, run or wait.

Python ends such threads where they ask for its lock again, which from inside XLA's C++ ends the process with an abort.
So the exit waits for those that are inside, and stops those that come later: they wait for ever, without the lock.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ._live import clear_dispatchers

_PATIENCE = 30.0  # seconds for what is compiled or waited for
_GRACE = 0.1  # seconds for calls of compiled programs, which nobody counts

busy: set[int] = set()
"""Threads that are inside C++ for long: they enter and leave themselves."""

_exiting = False
_never = threading.Lock()


def stop_at_exit() -> None:
    """Does not return in a daemon thread of a process that is about to end."""
    if _exiting and threading.current_thread().daemon:
        busy.discard(threading.get_ident())
        clear_dispatchers()  # the main thread may ask for the signature of the call that ends here
        with _never:
            pass


@contextmanager
def inside() -> Iterator[None]:
    """For a call into C++ that takes long, or many short ones: the exit waits for it.

    Calls nest: if the process is about to end, an inner one stops the thread, and the exit no longer waits for it.
    """
    stop_at_exit()
    thread = threading.get_ident()
    nested = thread in busy
    busy.add(thread)
    try:
        yield
    finally:
        if not nested:
            busy.discard(thread)


def watch_exit() -> None:
    """Have the exit wait, before later `atexit` functions; call it before C++ is entered, and for each new client."""
    atexit.unregister(_before_exit)
    atexit.register(_before_exit)


def _before_exit() -> None:
    global _exiting
    if not any(t.daemon for t in threading.enumerate() if t is not threading.current_thread()):
        return
    _never.acquire()
    _exiting = True
    clear_dispatchers()
    until = time.monotonic() + _PATIENCE
    while busy and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(_GRACE)
