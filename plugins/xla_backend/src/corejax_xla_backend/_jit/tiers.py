"""`jit(f, tier="auto")`: calls are answered by the eager rules while the program is compiled in the background."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence

from corejax.extend import Array, ClosedJaxpr, backends, config
from corejax.extend.devices import bound_device
from corejax_xla_backend._exit import inside, watch_exit
from corejax_xla_backend._interpreting import interpret
from corejax_xla_backend._several_devices import names_meshes


class _Compilation:
    """A program that is, or will be, compiled by the background thread.

    Attributes:
        error: what went wrong.
        ended: whether it has been done, or has failed.
    """

    __slots__ = ("_action", "ended", "error")

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action
        self.error: BaseException | None = None
        self.ended = False

    def run(self) -> None:
        """Compile."""
        action, self._action = self._action, None
        try:
            if action is not None:
                action()
        except BaseException as error:
            self.error = error
        self.ended = True


_waiting: queue.SimpleQueue[_Compilation] = queue.SimpleQueue()
_starting = threading.Lock()
_thread: threading.Thread | None = None


def _work() -> None:
    while True:
        compilation = _waiting.get()
        with inside():  # MLIR is C++ too: Python must not end this thread while it lowers
            compilation.run()


def _enqueue(compilation: _Compilation) -> None:
    global _thread
    _waiting.put(compilation)
    with _starting:
        if _thread is None:
            # A daemon: a process that ends does not wait for programs that will not run (see `_exit`).
            watch_exit()  # the thread may be the first to import jaxlib
            _thread = threading.Thread(target=_work, name="corejax-compile", daemon=True)
            _thread.start()


def _after_fork() -> None:
    global _thread, _starting, _waiting
    _thread, _starting, _waiting = None, threading.Lock(), queue.SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def first_tier(closed: ClosedJaxpr, arrays: Sequence[Array], compile_now: Callable[[], None]) -> list[Array] | None:
    """Results by the eager rules, and a compilation begun; None once it has ended: the executable is there, or fails.

    Programs about several devices, and arrays that are bound to a device, wait for the program at once: None.

    Args:
        closed: the program.
        arrays: its arguments.
        compile_now: compiles it; runs in the background thread.
    """
    if names_meshes(closed) or any(_is_bound(x) for x in arrays):
        return None
    key = ("background", config.trace_key(), config.backend, config.default_device)
    compilation = closed.memo.get(key)
    if compilation is not None and compilation.ended:
        return None
    outs = interpret(closed, arrays)
    if compilation is None:

        def action() -> None:
            if ("background", config.trace_key(), config.backend, config.default_device) != key:
                closed.memo.pop(key, None)  # settings have changed meanwhile; a later call begins another one
                return
            compile_now()

        compilation = closed.memo[key] = _Compilation(action)
        _enqueue(compilation)
    return outs


def _is_bound(x: Array) -> bool:
    devices = x.devices()
    return bool(devices) and bound_device(x, backends.of_device(next(iter(devices)))) is not None
