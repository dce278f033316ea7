"""Traces that several `jit` of one function share: inside a transformation it is traced once for each signature.

They belong to the outermost transformation that is running and are freed with it. Outside of all, calling `jit` again
sees what has changed since: a function is traced anew, unless all that it reads is known to be as it was
(`earlier_traces`). Of a trace that gives the same program, that is the earlier one, with what was compiled of it. A
program that differs in rules of derivatives alone, made anew by each trace, is another one and has what was compiled.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    DebugInfo,
    bottom_trace,
    clears_cache,
    current_trace,
    drop_oldest,
    same_jaxpr,
    trace_stack,
)
from corejax_xla_backend._jit.signatures import Signature
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._programs import share_compiled


def shared_traces(fun: Callable[..., Any]) -> dict[Signature, Any]:
    """What the running transformation has of a function, to look in and to add to; of a method, of its object's."""
    if current_trace() is bottom_trace():
        return {}
    memo = trace_stack()[1].kept()
    key = (id(fun.__self__), id(fun.__func__)) if type(fun) is types.MethodType else id(fun)
    return memo.setdefault(("jit", key), (fun, {}))[1]  # type: ignore[no-any-return]  # the function keeps its identity


class FunctionMemo(dict[Any, Any]):
    """What is known of a function. It is an attribute of the function, for it is to live as long, and not longer.

    Copies and pickles are empty: what is compiled is of this process.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, fun: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.owner = None if fun is None else weakref.ref(fun)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return FunctionMemo, ()

    def is_of(self, fun: Callable[..., Any]) -> bool:
        """Whether the function has it by itself: `functools.wraps` copies attributes."""
        return self.owner is not None and self.owner() is fun


_live: LiveSet[FunctionMemo] = LiveSet()
PROGRAMS, TRACES = "__corejax_programs__", "__corejax_traces__"


def memo_of(fun: types.FunctionType, name: str) -> FunctionMemo:
    """What is known of a function under a name."""
    memo: FunctionMemo | None = fun.__dict__.get(name)
    if memo is None or not memo.is_of(fun):
        memo = fun.__dict__[name] = FunctionMemo(fun)
        _live.add(memo)
    return memo


@clears_cache
def _clear_all() -> None:
    for memo in _live:
        memo.clear()


_MAX_PROGRAMS = 32  # of one function; the oldest are dropped


def earlier_program(fun: Callable[..., Any], key: Signature, closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program that an earlier `jit` of the function traced for a signature, if it is the same; else this one."""
    if type(fun) is not types.FunctionType:  # a bound method, say, is another object each time
        return closed
    programs = memo_of(fun, PROGRAMS)
    found = programs.pop(key, None)
    if found is not None and same_jaxpr(found, closed, scopes=True):  # compiled programs tell scopes
        closed = found
    else:
        if found is not None and same_jaxpr(found, closed, scopes=True, derivatives=False):
            share_compiled(found, closed)
        if closed.jaxpr.debug_info is not None:
            info = closed.jaxpr.debug_info
            closed.jaxpr.debug_info = DebugInfo(_described(fun), info.transform, info.in_tree, info.traced)
    programs[key] = closed
    drop_oldest(programs, _MAX_PROGRAMS)
    return closed


def _described(fun: types.FunctionType) -> types.FunctionType:
    """A function with the name, line and parameters of another one, which it does not keep: programs that it has do."""
    empty = tuple(types.CellType() for _ in fun.__code__.co_freevars)
    found = types.FunctionType(fun.__code__, {}, fun.__name__, fun.__defaults__, empty)
    found.__kwdefaults__, found.__module__, found.__qualname__ = fun.__kwdefaults__, fun.__module__, fun.__qualname__
    found.__dict__.update((name, x) for name, x in vars(fun).items() if name in ("__signature__", "__wrapped__"))
    return found


def forget_programs(fun: Callable[..., Any]) -> None:
    """Have the next `jit` of a function trace and compile its own program."""
    if type(fun) is types.FunctionType:
        fun.__dict__.pop(PROGRAMS, None)
        wrapped_function(fun).__dict__.pop(TRACES, None)


def wrapped_function(fun: types.FunctionType) -> types.FunctionType:
    """The function that transformations wrap, the innermost one."""
    seen = {id(fun)}
    while type(inner := getattr(fun, "__wrapped__", None)) is types.FunctionType and id(inner) not in seen:
        seen.add(id(inner))
        fun = inner
    return fun
