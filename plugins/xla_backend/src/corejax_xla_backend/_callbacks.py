"""What runs Python functions for compiled programs: whether this thread does, and which programs are under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend.messages import HostCallbackError

R = TypeVar("R")

_PAUSE = 0.001  # seconds
_MOST_FAILURES = 1000  # of one run
_OF_EACH = 100


class _State(threading.local):
    running = False


state = _State()
"""`running`: whether the thread runs a rule of a primitive for a compiled program, which waits for it."""


_runs: dict[object, int] = {}  # programs with callbacks that run now, in any thread -> the thread that waits for each


def run_calling_back(program: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """`program(*args, **kwargs)`, which `effects_barrier` waits for; an interrupt may arrive anywhere."""
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
    """Wait until the programs with callbacks that run now, in any thread, have run.

    A call of one waits for its own, so that there is nothing to wait for in a program of one thread. In a callback it
    returns at once: its own program waits for that.
    """
    if state.running:
        return
    here = threading.get_ident()
    begun = [run for run, thread in _runs.copy().items() if thread != here]
    # Without a lock, which an interrupted thread could have kept.
    while any(run in _runs for run in begun):
        time.sleep(_PAUSE)


class Failures:
    """What callbacks of a program over several devices raised: told when it has run, for it goes on.

    A device that ended there would leave the others waiting for it, which ends the process.

    Attributes:
        count: of those that were raised so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._untold: list[BaseException] = []

    def keep(self, error: BaseException) -> str | None:
        """What the program may go on with: "zeros", or in a loop that these do not end the "largest" or "least" values.

        None: there were too many, and it has to end.
        """
        self.count += 1
        self._untold.append(error)
        turn, rest = divmod(len(self._untold), _MOST_FAILURES)
        return None if turn else ("zeros", "largest", "least")[rest // _OF_EACH % 3]

    def tell_since(self, count: int) -> None:
        """Raise the first one that was raised while a program ran, if one was since there were `count`.

        Of calls at the same time each one raises, for none knows whose callback it was.
        """
        if self.count != count:
            untold, self._untold = self._untold, []
            raise (
                untold[0]
                if untold
                else HostCallbackError(
                    "a callback failed in a call of the same compiled program that another thread made at the same time"
                )
            )
