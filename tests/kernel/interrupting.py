"""Interrupts that do not hang on luck: KeyboardInterrupt at one chosen place after the other."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import corejax
from corejax.core.trace import state as trace_state
from corejax.extend import bottom_trace, config

KERNEL = str(Path(corejax.__file__).parent)
# What sets the thread's state, and takes it back.
ENTERING = {"stage", "_end", "run_with_trace", "run_within", "_restore", "restore", "scoped", "set_contexts"}
ENTERING |= {"jvp_flat", "linearize_flat", "partial_eval_flat", "batch_flat", "__enter__", "__exit__"}

# Of these nobody hears what they raise: a generator expression is called once more where it is collected; and the
# garbage collector calls back, at any time, also while Python 3.11 is about to call the profiler, which must be there.
UNHEARD = {"<genexpr>", "_collect"}


def thread_state() -> tuple[Any, ...]:
    """What an interrupt has to leave as it was."""
    assert trace_state.trace is bottom_trace(), trace_state.trace
    assert trace_state.last_notified is (trace_state.contexts > 0)
    settings = {name: getattr(config, name) for name in config._settings}
    state = (trace_state.source, trace_state.scope, trace_state.axis_env, trace_state.contexts)
    return (*state, gc.isenabled(), settings)


class At:
    """Raises KeyboardInterrupt at the n-th place where Python may be interrupted, in files that `where` is in.

    Those places are the calls: of a function, before its first line, and of a builtin, when it has returned. Where
    somebody else hears of interrupts, and has them wait, it is the next place.

    Args:
        n: which place.
        where: part of the path of the files.
        lines: the places are the beginnings of the lines of the functions that set the thread's state.
    """

    def __init__(self, n: int, where: str, lines: bool = False) -> None:
        self.left = n
        self.where = where
        self.lines = lines
        self.place: tuple[str, int] | None = None
        self.handler = signal.getsignal(signal.SIGINT)

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event in ("call", "c_return") and self.where in code.co_filename and code.co_name not in UNHEARD:
            self._count(frame)

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.where not in frame.f_code.co_filename:
            return None
        if event == "line" and frame.f_code.co_name in ENTERING:
            self._count(frame)
        return self.trace

    def _count(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left <= 0 and signal.getsignal(signal.SIGINT) is self.handler:
            sys.setprofile(None)
            sys.settrace(None)
            self.place = (frame.f_code.co_name, frame.f_lineno)
            raise KeyboardInterrupt

    @contextmanager
    def armed(self) -> Iterator[None]:
        before = sys.gettrace(), sys.getprofile()
        if self.lines:
            sys.settrace(self.trace)
        else:
            sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])


def interrupt_everywhere(
    action: Callable[[], Any], after: Callable[[], None], where: str = KERNEL, *, lines: bool = False, step: int = 1
) -> int:
    """Run an action again and again, interrupted one place later each time, until it ends; how often it did not.

    Args:
        action: what is interrupted.
        after: looks at what an interrupt has left.
        where: part of the path of the files in which interrupts arrive.
        lines: interrupt at the lines of what sets the state instead of at every call.
        step: how many places to go on each time.
    """
    n = 1
    while True:
        at = At(n, where, lines)
        try:
            with at.armed():
                action()
        except KeyboardInterrupt as interrupt:  # kept, as a notebook keeps the last traceback
            assert at.place is not None
            try:
                after()
            except AssertionError as error:
                error.add_note(f"interrupted in {at.place}, place {n}")
                raise error from interrupt
        else:
            assert at.place is None, f"the interrupt in {at.place} was swallowed"
            return n // step
        n += step
