"""Traced values that outlive their transformation, looked for where it ends: `config.check_tracer_leaks`."""

from __future__ import annotations

import gc
import sys
from itertools import pairwise
from types import CellType, FrameType, FunctionType
from typing import Any

from corejax.extend import DebugInfo, Trace, Tracer
from corejax.extend.messages import UnexpectedTracerError

_CONTAINERS = (list, tuple, dict, set)
_CLOSURES = (CellType, FunctionType)  # what a function closes over is held by who holds the function
_DEPTH = 12  # containers in containers


def refuse_leaks(trace: Trace) -> None:
    """Look for tracers of a trace that has ended, and who holds them.

    What only running frames hold, the interpreters' own among them, is no leak. Nor is what a function closes over that
    messages about a program name, such as a loop's body.

    Raises:
        UnexpectedTracerError: names a tracer, its line, and its holder.
    """
    gc.collect()
    tracers = [x for x in gc.get_objects() if issubclass(type(x), Tracer) and x._trace is trace]
    if not tracers:
        return
    frozen = gc.get_freeze_count() > 0
    try:
        gc.unfreeze()  # what is frozen is older than the tracers, and not looked at; it may hold one
        chain = _leak(tracers)
        if chain is not None and frozen:  # what holds it may itself be garbage
            gc.collect()
            chain = _leak(tracers)
    finally:
        if frozen:
            gc.freeze()
    if chain is not None:
        _refuse(trace, chain)


def _leak(tracers: list[Any]) -> list[Any] | None:
    """What keeps a tracer alive besides frames: its holder, containers in one another, the tracer; None where nothing
    does. All that holds something of the last level is asked for at once, since every question looks at all objects.
    """
    levels = [tracers]
    seen = {id(x) for x in [levels, tracers, *tracers]}
    while len(levels) <= _DEPTH + 1:
        level: list[Any] = []
        seen.add(id(level))
        found = gc.get_referrers(*levels[-1])
        seen.add(id(found))
        while found:
            holder = found.pop()
            if isinstance(holder, FrameType | DebugInfo) or id(holder) in seen:
                continue
            kind = type(holder)
            passes_on = kind in _CONTAINERS or kind in _CLOSURES or issubclass(kind, Tracer | Trace)
            if _is_module(holder) or not passes_on:
                return _chain(holder, levels)
            seen.add(id(holder))
            level.append(holder)
        if not level:
            return None
        levels.append(level)
    return None


def _chain(holder: Any, levels: list[list[Any]]) -> list[Any]:
    """The holder, and from each level something that the one before it refers to; at last a tracer."""
    chain = [holder]
    for level in reversed(levels):
        referents = {id(x) for x in gc.get_referents(chain[-1])}
        chain.append(next(x for x in level if id(x) in referents))
    return chain


def _is_module(x: Any) -> bool:
    """Whether it is the namespace of a module."""
    module = sys.modules.get(str(x.get("__name__"))) if type(x) is dict else None
    return module is not None and vars(module) is x


def _refuse(trace: Trace, chain: list[Any]) -> None:
    """Raise for a tracer that somebody holds; of a function that closes over it, not who has the function is said."""
    functions = [i for i, x in enumerate(chain) if type(x) is FunctionType]
    if type(chain[0]) is not dict and functions:
        chain = chain[functions[0] :]
    holder, tracer = chain[0], chain[-1]
    words = f"the module {holder['__name__']}" if type(holder) is dict else f"an object of type {type(holder).__name__}"
    named = chain if type(holder) is dict else chain[1:]
    words += "".join(_name_in(outer, inner) for outer, inner in pairwise(named))
    where = trace.debug.description() if trace.debug is not None else f"running {type(trace).__name__}"
    line = tracer.made_at()
    raise UnexpectedTracerError(
        f"Leaked tracer: {tracer!r} was made{f' at {line}' if line else ''} while {where}, which has ended, "
        f"and is held by {words}.\nReturn the value from the transformed function instead of storing it "
        "(checked because check_tracer_leaks is on)."
    )


def _name_in(holder: Any, x: Any) -> str:
    """Under which name a dictionary holds an object."""
    if type(holder) is not dict:
        return f", in a {type(holder).__name__}"
    return "".join(f", as {key!r}" for key, value in list(holder.items()) if value is x)
