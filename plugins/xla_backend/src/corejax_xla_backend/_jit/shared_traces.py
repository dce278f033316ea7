"""Traces that several `jit` of one function share: inside a transformation it is traced once for each signature.

They belong to the outermost transformation that is running and are freed with it. Outside of all, calling `jit` again
sees what has changed since: a function is traced anew, unless all that it reads is known to be as it was. So
`jit(step)(x)` in a loop, `jit(grad(f))(x)` and `jit(lambda x: ...)(x)` too, are traced twice. Of a trace that gives the
same program, that is the earlier one, with what was compiled of it. A program that differs in rules of derivatives
alone, made anew by each trace, is another one and has what was compiled.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    bottom_trace,
    clears_cache,
    current_trace,
    drop_oldest,
    programs_of,
    same_jaxpr,
    trace_stack,
)
from corejax_xla_backend._jit.reads import State, same_state, state_of
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


_MAX_CODES, _MAX_STATES = 64, 4  # codes and signatures, and traces of each; the oldest are dropped
_Key = tuple[types.CodeType, Signature]
# Traces of signatures that came twice, each with what was read; nothing of those that came once.
_earlier: dict[_Key, list[tuple[State, Any]]] = {}


def earlier_trace(fun: Callable[..., Any], key: Signature) -> tuple[Any, Callable[[Any], None]]:
    """What an earlier `jit` traced of this function, or of one of the same code, if all that it reads is as it was.

    Returns:
        The trace, or None; and what to give a new one to, that is to be found here later.
    """
    code = _code(fun)
    if code is None:
        return None, _forget
    known = _earlier.get((code, key))
    if known is None:  # most functions are jitted once: what they read is not looked for
        _earlier[code, key] = []
        drop_oldest(_earlier, _MAX_CODES)
        return None, _forget
    before = state_of(fun)
    if before is None:
        return None, _forget
    for state, found in known:
        if same_state(state, before):
            return found, _forget

    def keep(found: Any) -> None:
        after = state_of(fun)  # tracing may have changed it, a counter say
        if after is not None and same_state(before, after) and not _holds_functions(found.closed.jaxpr):
            known.append((after, found))
            del known[:-_MAX_STATES]

    return None, keep


def _forget(found: Any) -> None:
    pass


def _code(fun: Callable[..., Any]) -> types.CodeType | None:
    """The user's: that of what transformations and partial calls wrap."""
    fun = inspect.unwrap(fun)
    while isinstance(fun, functools.partial):
        fun = inspect.unwrap(fun.func)
    code = getattr(fun, "__code__", None)
    return code if type(code) is types.CodeType else None


def _holds_functions(jaxpr: Jaxpr) -> bool:
    """Whether a program calls Python, or has rules in it: those may be about to change what they share with others."""
    return any(callable(x) for program in programs_of(jaxpr) for eqn in program.eqns for x in eqn.params.values())


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
    _earlier.clear()
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
    code = _code(fun)
    for key in [key for key in _earlier if key[0] is code]:
        del _earlier[key]
