"""Traces that several `jit` of one function share: inside a transformation it is traced once for each signature.

They belong to the outermost transformation that is running and are freed with it. Outside of all transformations, a new
`jit` of a function traces it, so that it sees what has changed since. If the trace has the same program as an earlier
one, the earlier program is used, with the executables compiled for it. A program that differs only in derivative rules,
which each trace makes anew, keeps its own rules and shares the executables.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
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
_PROGRAMS = "__corejax_programs__"


def _programs_of(fun: types.FunctionType) -> FunctionMemo:
    """Return the programs that were traced of a function, by signature."""
    memo: FunctionMemo | None = fun.__dict__.get(_PROGRAMS)
    if memo is None or not memo.is_of(fun):
        memo = fun.__dict__[_PROGRAMS] = FunctionMemo(fun)
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
    programs = _programs_of(fun)
    found = programs.pop(key, None)
    if found is not None and same_jaxpr(found, closed, scopes=True):  # compiled programs tell scopes
        closed = found
    else:
        if found is not None and same_jaxpr(found, closed, scopes=True, derivatives=False):
            share_compiled(found, closed)
        if closed.jaxpr.debug_info is not None:
            closed.jaxpr.debug_info = closed.jaxpr.debug_info.without_function()
    programs[key] = closed
    drop_oldest(programs, _MAX_PROGRAMS)
    return closed


def forget_programs(fun: Callable[..., Any]) -> None:
    """Have the next `jit` of a function trace and compile its own program."""
    if type(fun) is types.FunctionType:
        fun.__dict__.pop(_PROGRAMS, None)
