"""Defer interrupts (Ctrl-C) and the end of daemon threads while C++ code runs that calls back into Python.

Such code is: imports, dialect loading, compilation.

If KeyboardInterrupt is raised in such a callback, the process aborts. So the interrupt is deferred to the end of the
C++ call, as for all C++ code. Importing one of jaxlib's extension modules again after an interrupted import aborts
the process as well. Python gives signals to the main thread; other threads it may end there at exit (see `_exit`).
"""

from __future__ import annotations

import signal
import threading
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

from corejax_xla_backend._exit import inside


class uninterrupted:
    """A context manager that defers an interrupt, or the end of its thread, to the end of its block."""

    def __init__(self) -> None:
        self._handler: Any = None
        self._noted: list[FrameType | None] = []
        self._inside: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self._inside = inside()
            self._inside.__enter__()
            return
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, lambda number, frame: self._noted.append(frame))

    def __exit__(self, *error: object) -> None:
        if self._inside is not None:
            self._inside.__exit__(None, None, None)
        handler, self._handler = self._handler, None
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
            if self._noted:
                handler(signal.SIGINT, self._noted[0])
