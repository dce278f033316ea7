"""`config.check_tracer_leaks`: at the end of a transformation, look for traced values that outlive it."""

from __future__ import annotations

import gc
import sys
from itertools import pairwise
from types import CellType, FrameType, FunctionType
from typing import Any

from corejax.extend import DebugInfo, Trace, Tracer
from corejax.extend.messages import UnexpectedTracerError

_CONTAINERS = (list, tuple, dict, set)
_CLOSURES = (CellType, FunctionType)  # the holder of a function holds what the function closes over
_DEPTH = 12  # maximal nesting of containers


def refuse_leaks(trace: Trace) -> None:
    """Raise UnexpectedTracerError if an object holds a tracer of a trace that has ended.

    A tracer that only running frames hold, those of interpreters included, is not a leak. Neither is one that is closed
    over by a function that a program names for messages, such as the body of a loop.

    Raises:
        UnexpectedTracerError: the message names a tracer, its line, and its holder.
    """
    gc.collect()
    tracers = [x for x in gc.get_objects() if issubclass(type(x), Tracer) and x._trace is trace]
    if not tracers:
        return
    frozen = gc.get_freeze_count() > 0
    try:
        gc.unfreeze()  # frozen objects are invisible to `gc.get_referrers`, but may hold a tracer
        chain = _leak(tracers)
        if chain is not None and frozen:  # the holder may be garbage that was frozen
            gc.collect()
            chain = _leak(tracers)
    finally:
        if frozen:
            gc.freeze()
    if chain is not None:
        _refuse(trace, chain)


def _leak(tracers: list[Any]) -> list[Any] | None:
    """Return the objects that keep a tracer alive, frames aside, or None: the holder, nested containers, the tracer.

    The search goes from the tracers outwards, a level at a time. One call of `gc.get_referrers` finds the referrers of
    a whole level, because each call visits all objects.
    """
    levels = [tracers]
    seen = {id(x) for x in [levels, tracers, *tracers]}
    while len(levels) <= _DEPTH + 1:
        level: list[Any] = []
        seen.add(id(level))
        referrers = gc.get_referrers(*levels[-1])
        seen.add(id(referrers))
        while referrers:
            holder = referrers.pop()
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
    """Return the holder, then from each level an object that the one before it refers to; the last is a tracer."""
    chain = [holder]
    for level in reversed(levels):
        referents = {id(x) for x in gc.get_referents(chain[-1])}
        chain.append(next(x for x in level if id(x) in referents))
    return chain


def _is_module(x: Any) -> bool:
    """Return True if an object is the namespace of a module."""
    module = sys.modules.get(str(x.get("__name__"))) if type(x) is dict else None
    return module is not None and vars(module) is x


def _refuse(trace: Trace, chain: list[Any]) -> None:
    """Raise the error for a leaked tracer. If a function closes over it, name the function and not its holder."""
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
    """Return the key under which a dictionary holds an object, as a part of a sentence."""
    if type(holder) is not dict:
        return f", in a {type(holder).__name__}"
    return "".join(f", as {key!r}" for key, value in list(holder.items()) if value is x)
