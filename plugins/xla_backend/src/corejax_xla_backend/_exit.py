"""A clean exit of the process while daemon threads compile, run or wait.

At exit, Python ends a daemon thread when the thread next takes the interpreter lock. If that happens inside XLA's C++,
the process aborts. So the exit waits for the threads that are inside C++, and blocks forever, without the lock, each
daemon thread that tries to enter later.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ._live import clear_dispatchers

_PATIENCE = 30.0  # seconds to wait for threads that compile or wait
_GRACE = 0.1  # seconds to wait for calls of compiled programs, which are not counted

busy: set[int] = set()
"""Threads that are inside C++ for long; each thread adds and removes itself."""

_exiting = False
_never = threading.Lock()


def stop_at_exit() -> None:
    """Block forever in a daemon thread if the process is about to end."""
    if _exiting and threading.current_thread().daemon:
        busy.discard(threading.get_ident())
        clear_dispatchers()  # the main thread may wait for the signature of the call that is blocked here
        with _never:
            pass


@contextmanager
def inside() -> Iterator[None]:
    """Make the exit wait for a `with` block that makes a long call into C++, or many short ones.

    Blocks nest. If the process is about to end, an inner block stops the thread, and the exit no longer waits for it.
    """
    thread = threading.get_ident()
    nested = thread in busy
    busy.add(thread)  # before the question: the exit says that it has begun before it looks at the set
    try:
        stop_at_exit()
        yield
    finally:
        if not nested:
            busy.discard(thread)


def watch_exit() -> None:
    """Register the waiting at exit before the `atexit` functions registered so far; call it for each new client too."""
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


watch_exit()  # a daemon thread may be the first to import jaxlib
