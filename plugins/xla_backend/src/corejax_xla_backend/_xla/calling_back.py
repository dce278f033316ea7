"""Calls of programs that call Python back, through a dispatcher of their own.

Python functions run in such a call, which may call the jitted function again, or wait for threads that do. A dispatcher
lets nobody else in with the signature that it asks Python for, so nothing is run while it asks: it is told what to do
in a call of its own, after the program has run. And C++ tells of errors by their text alone, so calls are made from
Python, which raises what the callback raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from corejax.extend import config, tree
from corejax.extend.devices import RepeatableCall
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._callbacks import Failures, run_calling_back
from corejax_xla_backend._lowering.host_callback import original_failure
from corejax_xla_backend._xla.executable import XlaExecutable


class CallingBack:
    """Calls of a jitted function whose programs call Python back, some of them at least.

    Args:
        miss: runs a call, and says how to repeat it.
        make: makes a dispatcher of what it asks.
        fastpath: what a dispatcher is told of a call; None: it cannot repeat it.
    """

    def __init__(
        self,
        miss: Callable[..., tuple[Any, RepeatableCall | None]],
        make: Callable[[Callable[..., tuple[Any, Any]]], Any],
        fastpath: Callable[[RepeatableCall], Any],
    ) -> None:
        self._miss = miss
        self._fastpath = fastpath
        self._lessons = _Lessons()
        # Of programs over several devices, with how many there were when the dispatcher was told of the program.
        self._failures: dict[Failures, int] = {}
        self.dispatch = make(self._lessons.asked)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result; raises what a callback raised."""
        given = self._lessons.given
        result = self.repeated(args, kwargs)
        return self._slowly(args, kwargs, given) if result is _jaxlib.ASK_AGAIN else result

    def repeated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same, but `ASK_AGAIN` for a signature that the dispatcher does not know."""
        failed = {failures: failures.count for failures in list(self._failures)}
        try:
            result = run_calling_back(self.dispatch, *args, **kwargs)
        except (RuntimeError, ValueError) as error:
            failure = original_failure(error)
            if failure is error:
                raise
        else:
            for failures, count in list(self._failures.items()):  # another thread may have told it meanwhile
                failures.tell_since(failed.get(failures, count))
            return result
        raise failure

    def _slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any], given: int) -> Any:
        leaves, structure = tree.tree_flatten((args, kwargs))
        result, call = self._miss(*args, **kwargs)
        fastpath = None if call is None else self._fastpath(call)
        failures = None if call is None else getattr(call.executable, "failures", None)
        if failures is not None:
            self._failures.setdefault(failures, failures.count)
        if fastpath is not None and _consists_of(leaves, structure, (args, kwargs)):
            self._lessons.give(self.dispatch, args, kwargs, fastpath, given)
        return result


def _consists_of(leaves: list[Any], structure: Any, arguments: Any) -> bool:
    """Whether no callback has changed containers among a call's arguments."""
    leaves_now, structure_now = tree.tree_flatten(arguments)
    return structure == structure_now and all(x is y for x, y in zip(leaves, leaves_now, strict=True))


class _Lessons:
    """What a dispatcher is told: by one thread at a time, and nothing that it knows, for it would run the program.

    Attributes:
        given: changes when one begins, and when it is over.
    """

    def __init__(self) -> None:
        self.given = 0
        self._now: dict[None, tuple[int, Any]] = {}  # the thread that gives one, and what it says

    def asked(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """What the dispatcher asks of a signature that it does not know."""
        thread, fastpath = self._now.get(None, (0, None))
        return (None, fastpath) if thread == threading.get_ident() else (_jaxlib.ASK_AGAIN, None)

    def give(self, dispatch: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fastpath: Any, given: int) -> None:
        """Tell the dispatcher of a signature that it did not know when so many were given; not if it may know it now.

        Wherever an interrupt arrives, the next one can be given (as `corejax.base.restoring`).
        """
        lesson = threading.get_ident(), fastpath
        try:
            try:
                if self._now.setdefault(None, lesson) is lesson and self.given == given:
                    self.given += 1
                    dispatch(*args, **kwargs)
            finally:
                self._end(lesson)
        finally:
            self._end(lesson)

    def _end(self, lesson: tuple[int, Any]) -> None:
        if self._now.get(None) is lesson:
            self.given += 1
            self._now.pop(None, None)


def can_wait(executable: XlaExecutable) -> bool:
    """Whether a call in C++ ends when the program has run, callbacks and all, if its arguments are there.

    On one CPU device it does; on several if its first result is waited for.
    """
    program = executable.executable
    if program.device.platform != "cpu" or config.cpu_enable_async_dispatch:
        return False
    kind = type(program)
    return kind is _jaxlib.Executable or (kind is _jaxlib.PartitionedExecutable and len(program.out_avals) > 0)


def wait(buffer: Any) -> None:
    """Wait for a buffer that the program will read.

    A program that is queued up would run on a thread of XLA's, of which its callbacks' own computations may need one.
    """
    if type(buffer) is _jaxlib.Buffer and not buffer.is_deleted() and not buffer.is_ready():
        _jaxlib.block_until_ready((buffer,))
