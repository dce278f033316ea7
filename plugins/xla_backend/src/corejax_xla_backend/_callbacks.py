"""Whether a thread runs a rule of a primitive for a compiled program, which waits for it."""

from __future__ import annotations

import threading


class _State(threading.local):
    running = False


state = _State()
