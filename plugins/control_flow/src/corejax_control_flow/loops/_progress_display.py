"""Drawing of progress bars on standard error: the bars of all running loops side by side on one line."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

_WIDTH = 24
_TIMEOUT = 60.0  # seconds without a report after which a loop counts as interrupted
_PAUSE = 0.05  # least number of seconds between two drawings, as drawing slows the loop


class _Run:
    """The state of one running loop."""

    __slots__ = ("count", "reported", "started")

    def __init__(self, now: float) -> None:
        self.count = -1
        self.started = self.reported = now


class Display:
    """The bars of running loops. Loops of one label and length that run at the same time share a bar."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[tuple[str, int | None], _Run] = {}
        self._drawn = 0.0

    def update(self, label: str, total: int | None, count: int, *, last: bool, force: bool) -> None:
        """Show that `count` iterations are done. Errors of the stream are ignored."""
        stream = sys.stderr
        try:
            if stream is None or not (force or stream.isatty()):
                return
            with self._lock:
                self._update(stream, (label, total), max(count, 0), last)
        except (OSError, ValueError):  # the stream is closed or cannot encode the text
            return

    def _update(self, stream: Any, key: tuple[str, int | None], count: int, last: bool) -> None:
        now = time.monotonic()
        run = self._runs.get(key)
        if run is None or (count < run.count and not last):
            run = self._runs[key] = _Run(now)
            self._drawn = 0.0
        run.count, run.reported = count, now
        self._runs = {k: r for k, r in self._runs.items() if now - r.reported < _TIMEOUT}
        if last or now - self._drawn >= _PAUSE:
            self._drawn = now
            line = " | ".join(text(*k, r.count, now - r.started) for k, r in self._runs.items())
            stream.write(f"\r\x1b[K{line}")
            if last:
                del self._runs[key]
                if not self._runs:
                    stream.write("\n")
            stream.flush()


def text(label: str, total: int | None, count: int, seconds: float) -> str:
    """Format one bar: `fit [########----------------] 40/120, 12.5 per second`."""
    rate = f", {count / seconds:.3g} per second" if seconds > 0 and count else ""
    head = f"{label} " if label else ""
    if total is None:
        return f"{head}{count}{rate}"
    done = _WIDTH if not total else min(count * _WIDTH // total, _WIDTH)
    return f"{head}[{'#' * done}{'-' * (_WIDTH - done)}] {count}/{total}{rate}"


display = Display()
