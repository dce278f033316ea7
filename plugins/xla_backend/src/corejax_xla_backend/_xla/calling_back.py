"""Calls of programs with callbacks, through a dispatcher of their own.

A callback may call the jitted function again, or wait for a thread that does. A dispatcher blocks all calls with a
signature while its miss function runs for that signature. So the program must not run inside a miss: it runs first, and
a second call, in which nothing runs, then teaches the dispatcher the fast path of the signature. C++ passes on only the
text of an exception, so that Python makes the calls and raises the callback's own exception.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from corejax.extend import config, tree
from corejax.extend.devices import RepeatableCall
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._callbacks import Failures, run_calling_back
from corejax_xla_backend._xla.executable import XlaExecutable


class CallingBack:
    """The calls of a jitted function with callbacks in at least one of its programs.

    Args:
        miss: runs a call, and returns the result and the call to repeat.
        make: makes a dispatcher from its miss function.
        fastpath: returns the dispatcher's entry for a call; None if the dispatcher cannot repeat the call.
        buffers: returns the buffers of the arrays in a call's arguments.
    """

    def __init__(
        self,
        miss: Callable[..., tuple[Any, RepeatableCall | None]],
        make: Callable[[Callable[..., tuple[Any, Any]]], Any],
        fastpath: Callable[[RepeatableCall], Any],
        buffers: Callable[[Any], list[Any]],
    ) -> None:
        self._miss = miss
        self._fastpath = fastpath
        self._buffers = buffers
        self._lessons = _Lessons()
        # The failures of each program over several devices, with their count when the dispatcher learned the program.
        self._failures: dict[Failures, int] = {}
        self.dispatch = make(self._lessons.miss)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call; raise the exception of a callback that failed."""
        version = self._lessons.version
        result = self.call_fast(args, kwargs)
        return self._call_slow(args, kwargs, version) if result is _jaxlib.ASK_AGAIN else result

    def call_fast(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, or `ASK_AGAIN` if the dispatcher does not know the signature."""
        failed = {failures: failures.count for failures in list(self._failures)} if self._failures else {}
        wait(self._buffers((args, kwargs)))
        try:
            result = run_calling_back(self.dispatch, args, kwargs)
        except (RuntimeError, ValueError) as error:
            from corejax_xla_backend._lowering.host_callback import original_failure

            failure = original_failure(error)
            if failure is error:
                raise
        else:
            for failures, count in list(self._failures.items()):  # another thread may have added a program meanwhile
                failures.raise_since(failed.get(failures, count))
            return result
        raise failure

    def _call_slow(self, args: tuple[Any, ...], kwargs: dict[str, Any], version: int) -> Any:
        """Return the result of a call with an unknown signature, and teach the dispatcher the signature."""
        leaves, structure = tree.tree_flatten((args, kwargs))
        result, call = self._miss(*args, **kwargs)
        fastpath = None if call is None else self._fastpath(call)
        failures = None if call is None else getattr(call.executable, "failures", None)
        if failures is not None:
            self._failures.setdefault(failures, failures.count)
        if fastpath is not None and _is_unchanged(leaves, structure, (args, kwargs)):
            self._lessons.teach(self.dispatch, args, kwargs, fastpath, version)
        return result


def _is_unchanged(leaves: list[Any], structure: Any, arguments: Any) -> bool:
    """Return whether no callback has changed containers among a call's arguments."""
    leaves_now, structure_now = tree.tree_flatten(arguments)
    return structure == structure_now and all(x is y for x, y in zip(leaves, leaves_now, strict=True))


class _Lessons:
    """Lessons that teach a dispatcher the fast path of a signature.

    A lesson is a call of the dispatcher in which the miss function returns the fast path and runs no program. Only
    one thread teaches at a time, and never a signature that the dispatcher knows, because it would run the program.

    Attributes:
        version: a number that changes when a lesson begins and when it ends.
    """

    def __init__(self) -> None:
        self.version = 0
        self._current: dict[None, tuple[int, Any]] = {}  # the thread that teaches, and the fast path

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the fast path that the current thread teaches, else `ASK_AGAIN` as the result of the call."""
        thread, fastpath = self._current.get(None, (0, None))
        return (None, fastpath) if thread == threading.get_ident() else (_jaxlib.ASK_AGAIN, None)

    def teach(self, dispatch: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fastpath: Any, version: int) -> None:
        """Teach the dispatcher a signature that it did not know at a version; do nothing if it may know it by now.

        Both `finally` clauses end the lesson, so that an interrupt at any point leaves the next lesson possible (as in
        `corejax.base.restoring`).
        """
        lesson = threading.get_ident(), fastpath
        try:
            try:
                if self._current.setdefault(None, lesson) is lesson and self.version == version:
                    self.version += 1
                    dispatch(*args, **kwargs)
            finally:
                self._end(lesson)
        finally:
            self._end(lesson)

    def _end(self, lesson: tuple[int, Any]) -> None:
        if self._current.get(None) is lesson:
            self.version += 1
            self._current.pop(None, None)


def can_wait(executable: XlaExecutable) -> bool:
    """Return whether a call in C++ can end after the program and its callbacks, if the arguments are computed.

    On one CPU device every call does, unless programs run in the background. Then, and on several devices, a call does
    if its first result is waited for (`must_wait`).
    """
    program = executable.executable
    runs_here = program.device.platform == "cpu" and isinstance(program, _jaxlib.Executable)
    return runs_here and (len(program.out_avals) > 0 or not must_wait(program))


def must_wait(program: Any) -> bool:
    """Return whether calls of a program with callbacks on CPUs must wait for its first result."""
    return config.cpu_enable_async_dispatch or isinstance(program, _jaxlib.PartitionedExecutable)


def wait(buffers: list[Any]) -> None:
    """Wait for the arguments of a program with callbacks.

    A program with pending arguments is queued and occupies one of XLA's threads, which computations of its callbacks
    may need.
    """
    try:
        _jaxlib.block_until_ready(buffers)
    except RuntimeError:
        return  # a deleted or failed argument, for which the call raises the error
