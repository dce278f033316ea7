"""Traces that several `jit` of one function share: inside a transformation it is traced once for each signature.

They belong to the outermost transformation that is running and are freed with it. Outside of all, each `jit` of a
function has traces of its own, so that calling `jit` again sees what has changed since. If nothing has, its program is
the earlier one, with what was compiled of it: `jit(step)(x)` in a loop traces each time, and compiles once. A program
that differs in rules of derivatives alone, made anew by each trace, is another one and has what was compiled.
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


_MAX_PROGRAMS = 32  # of one function; the oldest are dropped


class _Programs(dict[Signature, ClosedJaxpr]):
    """A function's latest programs. It is an attribute of the function, for it is to live as long, and not longer.

    Copies and pickles are empty: what is compiled is of this process.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, fun: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.owner = None if fun is None else weakref.ref(fun)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _Programs, ()

    def is_of(self, fun: Callable[..., Any]) -> bool:
        """Whether the function has it by itself: `functools.wraps` copies attributes."""
        return self.owner is not None and self.owner() is fun


_NAME = "__corejax_programs__"
_live: LiveSet[_Programs] = LiveSet()


@clears_cache
def _clear_all() -> None:
    for programs in _live:
        programs.clear()


def earlier_program(fun: Callable[..., Any], key: Signature, closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program that an earlier `jit` of the function traced for a signature, if it is the same; else this one."""
    if type(fun) is not types.FunctionType:  # a bound method, say, is another object each time
        return closed
    programs = fun.__dict__.get(_NAME)
    if programs is None or not programs.is_of(fun):
        programs = fun.__dict__[_NAME] = _Programs(fun)
        _live.add(programs)
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
    """Have the next `jit` of a function compile its own program."""
    if type(fun) is types.FunctionType:
        fun.__dict__.pop(_NAME, None)
