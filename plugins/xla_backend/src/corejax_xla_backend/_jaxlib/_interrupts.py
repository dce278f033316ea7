"""Interrupts (Ctrl-C) while C++ runs that calls Python back: when it is imported, loads a dialect, compiles.

An exception that arrives in such a call ends the process there. So it waits for the end, as it does for all of C++.
An extension module of jaxlib whose import was interrupted ends the process when it is imported again.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class uninterrupted:
    """For a ``with`` block: an interrupt that arrives inside of it is raised at its end."""

    def __init__(self) -> None:
        self._handler: Any = None
        self._noted: list[FrameType | None] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # interrupts are the main thread's
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, lambda number, frame: self._noted.append(frame))

    def __exit__(self, *error: object) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
            if self._noted:
                handler(signal.SIGINT, self._noted[0])
