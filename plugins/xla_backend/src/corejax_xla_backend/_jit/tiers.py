"""`jit(f, tier="auto")`: the eager rules compute the results while a thread compiles the program."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from corejax.extend import Array, ClosedJaxpr, backends, config
from corejax.extend.devices import bound_device
from corejax.extend.types import device_buffer
from corejax_xla_backend._exit import inside
from corejax_xla_backend._programs import interpret, interpret_unless
from corejax_xla_backend._several_devices import meshes_of

# Seconds that an evaluation has for itself: the compiler, and the import of jaxlib, take the interpreter's time.
HEAD_START = 0.05

_one_at_a_time = threading.Lock()
if hasattr(os, "register_at_fork"):  # a thread of the parent process may hold the lock at the fork
    os.register_at_fork(after_in_child=_one_at_a_time._at_fork_reinit)  # type: ignore[attr-defined]  # in CPython


def _in_background(action: Callable[[], None]) -> threading.Thread:
    """Start a thread that runs an action after all earlier actions have ended.

    Errors are dropped: the next call compiles the program itself and raises them.
    """

    def work() -> None:
        # `inside` keeps Python from ending the thread at exit while MLIR lowers a program.
        with _one_at_a_time, inside(), suppress(BaseException):
            action()

    # A daemon thread, so that a process that ends does not wait for programs that it will not run (see `_exit`).
    thread = threading.Thread(target=work, name="corejax-compile", daemon=True)
    thread.start()
    return thread


def reason_to_wait(closed: ClosedJaxpr, arrays: Sequence[Any]) -> str:
    """Return why a call waits for the compiler, because eager results are not on the program's devices; else ""."""
    if meshes_of(closed):
        return 'tier="auto" waits for the compiler: the program runs on several devices'
    if any(type(x) is Array and _is_bound(x) for x in arrays):
        return 'tier="auto" waits for the compiler: an argument is bound to its devices, and so are the results'
    return ""


def run_first_tier(closed: ClosedJaxpr, arrays: Sequence[Array], compile_now: Callable[[], None]) -> list[Array] | None:
    """Return results of the eager rules while a thread compiles; None after the thread has ended, successfully or not.

    If the thread ends first, the evaluation is abandoned, unless the program has effects, which must not happen twice.
    """
    key = ("background", config.trace_key(), config.backend, config.default_device)

    def action() -> None:
        if ("background", config.trace_key(), config.backend, config.default_device) != key:
            closed.memo.pop(key, None)  # settings have changed meanwhile; a later call begins another one
            return
        compile_now()

    begun = time.monotonic()

    def has_ended() -> bool:
        """Return whether the thread has ended; start it in the middle of an evaluation that takes long."""
        compilation = closed.memo.get(key)
        if compilation is not None:
            return not compilation.is_alive()
        if time.monotonic() - begun > HEAD_START:
            closed.memo[key] = _in_background(action)
        return False

    if key in closed.memo and has_ended():
        return None
    outs = interpret(closed, arrays) if closed.effects else interpret_unless(has_ended, closed, arrays)
    if key not in closed.memo:
        closed.memo[key] = _in_background(action)
    return outs


def _is_bound(x: Array) -> bool:
    """Return whether an array is bound to a device."""
    if device_buffer(x) is None:
        return False
    return bound_device(x, backends.of_device(next(iter(x.devices())))) is not None
