"""Defer interrupts (Ctrl-C) while C++ code runs that calls back into Python: imports, dialect loading, compilation.

If KeyboardInterrupt is raised in such a callback, the process aborts. So the interrupt is deferred to the end of the
C++ call, as for all C++ code. Importing one of jaxlib's extension modules again after an interrupted import aborts
the process as well.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class uninterrupted:
    """A context manager that defers an interrupt to the end of its block."""

    def __init__(self) -> None:
        self._handler: Any = None
        self._noted: list[FrameType | None] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # Python delivers signals to the main thread only
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
