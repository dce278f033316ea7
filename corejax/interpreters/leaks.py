"""Traced values that outlive their transformation, looked for where it ends: `config.check_tracer_leaks`."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any

from corejax.errors import UnexpectedTracerError
from corejax.trace import Trace, Tracer

_CONTAINERS = (list, tuple, dict, set)
_DEPTH = 6  # containers in containers


def refuse_leaks(trace: Trace) -> None:
    """Look for tracers of a trace that has ended, and who holds them.

    What only running frames hold, the interpreters' own among them, is no leak.

    Raises:
        UnexpectedTracerError: names a tracer, its line, and its holder.
    """
    frozen = gc.get_freeze_count() > 0
    if frozen and not _some_alive(trace):
        return
    try:
        gc.unfreeze()  # what is frozen is not looked at, and may hold a tracer
        _refuse_leaks(trace)
    finally:
        if frozen:
            gc.freeze()


def _some_alive(trace: Trace) -> bool:
    """Whether there are tracers of it, which are younger than what is frozen: quick in a large process."""
    gc.collect()
    return any(issubclass(type(x), Tracer) and x._trace is trace for x in gc.get_objects())


def _refuse_leaks(trace: Trace) -> None:
    gc.collect()
    tracers = [x for x in gc.get_objects() if issubclass(type(x), Tracer) and x._trace is trace]
    own = {id(tracers)}
    for i in range(len(tracers)):  # an iterator would hold them, too
        tracer = tracers[i]
        holder = _holder(tracer, own, _DEPTH)
        if holder is not None:
            where = trace.debug.description() if trace.debug is not None else f"running {type(trace).__name__}"
            line = tracer.made_at()
            raise UnexpectedTracerError(
                f"A tracer leaked: {tracer!r} was made{f' at {line}' if line else ''} while {where}, which has ended, "
                f"and is held by {holder}.\nReturn the value from the transformed function instead of storing it "
                "(checked because check_tracer_leaks is on)."
            )


def _holder(x: Any, seen: set[int], depth: int) -> str | None:
    """What keeps an object alive besides frames and the containers in `seen`, in words; None where nothing does."""
    seen.add(id(x))
    holders = gc.get_referrers(x)
    seen.add(id(holders))
    while holders:
        holder = holders.pop()
        if isinstance(holder, FrameType) or id(holder) in seen:
            continue
        module = sys.modules.get(str(holder.get("__name__"))) if type(holder) is dict else None
        if module is not None and vars(module) is holder:
            return f"the module {module.__name__}{_name_in(holder, x)}"
        if type(holder) not in _CONTAINERS and not issubclass(type(holder), Tracer):
            return f"an object of type {type(holder).__name__}"
        further = _holder(holder, seen, depth - 1) if depth else None
        if further is not None:
            return further + _name_in(holder, x)
    return None


def _name_in(holder: Any, x: Any) -> str:
    """Under which name a dictionary holds an object."""
    if type(holder) is not dict:
        return f", in a {type(holder).__name__}"
    return "".join(f", as {key!r}" for key, value in list(holder.items()) if value is x)
