"""A line on the terminal while the compiler takes long: `compiling train_step … 12 s`.

The line is for people who watch a program start. It appears after two seconds, on a terminal alone, and is erased when
the last compilation ends; the log has the setting `log_compiles`. One daemon thread writes it, which ends with the
compilations.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from corejax.extend import config

DELAY = 2.0  # seconds after which a compilation is long
_PERIOD = 1.0

_changed = threading.Condition()
_running: dict[object, tuple[str, float]] = {}  # compilations: names, and when they started
_writer: threading.Thread | None = None


def _begin_anew() -> None:
    """Forget the parent's compilations and thread in a forked process."""
    global _changed, _writer
    _changed, _writer = threading.Condition(), None
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def compilation(name: str) -> Iterator[None]:
    """Show a line on the terminal while the block runs, if it runs long; nothing if the setting switches it off."""
    if not config.compilation_progress or not _is_terminal():
        yield
        return
    key = object()
    with _changed:
        _running[key] = (name, time.monotonic())
        _start_writer()
    try:
        yield
    finally:
        with _changed:
            del _running[key]
            _changed.notify_all()


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _start_writer() -> None:
    global _writer
    if _writer is None:
        _writer = threading.Thread(target=_write, name="corejax-progress", daemon=True)
        _writer.start()


def _write() -> None:
    """Write the line until no compilation runs any more."""
    global _writer
    width = 0
    with _changed:
        while _running:
            started = min(start for _, start in _running.values())
            elapsed = time.monotonic() - started
            if elapsed >= DELAY:
                names = ", ".join(sorted(name for name, _ in _running.values()))
                line = f"compiling {names} … {elapsed:.0f} s"
                _show(f"\r{line.ljust(width)}")
                width = max(width, len(line))
            _changed.wait(DELAY - elapsed if elapsed < DELAY else _PERIOD)
        if width:
            _show(f"\r{' ' * width}\r")
        _writer = None


def _show(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # the terminal is gone
        pass
