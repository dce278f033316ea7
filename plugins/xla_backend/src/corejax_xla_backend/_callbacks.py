"""The state of callbacks: whether this thread runs one, which programs with callbacks run, and which have failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from corejax.extend.messages import HostCallbackError

R = TypeVar("R")

_PAUSE = 0.001  # seconds
_MAX_FAILURES = 1000  # failures in one run, after which the program ends
_FAILURES_PER_FILL = 100  # failures after which callbacks return other values


class _State(threading.local):
    running = False


state = _State()
"""`running`: whether the thread runs a callback of a compiled program, which waits for the callback."""


_runs: dict[object, int] = {}  # runs of programs with callbacks, in any thread -> the thread that waits for each run


def run_calling_back(program: Callable[..., R], args: Sequence[Any], kwargs: Mapping[str, Any]) -> R:
    """Return `program(*args, **kwargs)`, and register the run for `effects_barrier`.

    The second `finally` removes the run even if an interrupt arrives in the first one.
    """
    run = object()
    try:
        try:
            _runs[run] = threading.get_ident()
            return program(*args, **kwargs)
        finally:
            _runs.pop(run, None)
    finally:
        _runs.pop(run, None)


def effects_barrier() -> None:
    """Wait until all programs with callbacks that run now, in any thread, have ended.

    A call of such a program waits for its own callbacks, so that a program of one thread never has to wait here. Inside
    a callback the function returns at once, because the callback's program waits for the callback.
    """
    if state.running:
        return
    here = threading.get_ident()
    started = [run for run, thread in _runs.copy().items() if thread != here]
    # This polls without a lock, which an interrupted thread could keep forever.
    while any(run in _runs for run in started):
        time.sleep(_PAUSE)


class Failures:
    """The exceptions of callbacks of a program over several devices, which are raised after the program has run.

    If one device stopped at the exception, the others would wait for it forever. So the callback returns filler values
    and the program runs on.

    Attributes:
        count: the number of exceptions so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._pending: list[BaseException] = []

    def keep(self, error: BaseException) -> str | None:
        """Store an exception, and return the filler values: "zeros", "largest" or "least"; None to end the program.

        The filler values change after many failures, because zeros may not end a loop. After too many the program ends.
        """
        self.count += 1
        self._pending.append(error)
        turn, rest = divmod(len(self._pending), _MAX_FAILURES)
        return None if turn else ("zeros", "largest", "least")[rest // _FAILURES_PER_FILL % 3]

    def raise_since(self, count: int) -> None:
        """Raise the first pending exception if there are more than `count` by now.

        If several calls run at the same time, each of them raises, because a callback does not know its call.
        """
        if self.count != count:
            pending, self._pending = self._pending, []
            raise (
                pending[0]
                if pending
                else HostCallbackError(
                    "a callback failed in a call of the same compiled program that another thread made at the same time"
                )
            )
