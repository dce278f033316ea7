"""What runs Python functions for compiled programs: whether this thread does, and which programs are under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")

_PAUSE = 0.001  # seconds


class _State(threading.local):
    running = False


state = _State()
"""`running`: whether the thread runs a rule of a primitive for a compiled program, which waits for it."""


class _UnderWay:
    """Programs with callbacks that run now, in any thread."""

    def __init__(self) -> None:
        self._runs: dict[object, int] = {}  # a run -> the thread that waits for it

    def run(self, program: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """`program(*args, **kwargs)`, as one of them, wherever an interrupt arrives (as `corejax.restoring`)."""
        run = object()
        try:
            try:
                self._runs[run] = threading.get_ident()
                return program(*args, **kwargs)
            finally:
                self._runs.pop(run, None)
        finally:
            self._runs.pop(run, None)

    def wait(self) -> None:
        """Wait for those of other threads that began before; at once in a callback, which its program waits for.

        It asks again and again: there is no lock then that an interrupted thread could have kept.
        """
        if state.running:
            return
        here = threading.get_ident()
        begun = [run for run, thread in self._runs.copy().items() if thread != here]
        while any(run in self._runs for run in begun):
            time.sleep(_PAUSE)


under_way = _UnderWay()
