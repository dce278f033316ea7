"""The one cache of traces: what `jit` has traced of a function, by signature.

The key of an entry is a `Signature`: everything that a trace depends on and that the caller can see. It is not the
function's code, nor what the function reads from outside: a second `jit` of the function traces the function again, so
that it sees what has changed. A trace that closes over tracers belongs to one run of a function around it and is never
kept.

An entry lives as long as one of three owners, each of which has a table of its own:

- The jitted function finds its own traces. It drops the oldest of more than 4096.
- The outermost transformation that is running shares them: another `jit` of the same function finds them there, so
  that a function that jits another one twice, at each of n levels, runs n traces and not 2**n. They end with the
  transformation.
- The function that was jitted keeps the program of its last 32 signatures. These programs do not answer lookups. A new
  trace with the same program takes the earlier one, with the executables that were compiled for it; a new trace with
  other derivative rules alone, which each trace makes anew, keeps its program and shares the executables.

`jit(f).clear_cache()` empties the tables of the jitted function and of `f`, and `corejax.clear_caches()` those of all.
"""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, ClosedJaxpr, ShapedArray, Tracer, bottom_trace, current_trace, tree
from corejax.extend.messages import clears_cache, drop_oldest
from corejax.extend.programs import same_jaxpr
from corejax.extend.transforms import in_context, trace_stack
from corejax.extend.types import ShapeDtypeStruct
from corejax_xla_backend._jit.arguments import StaticKey
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._programs import share_compiled


class Signature(NamedTuple):
    """What a trace of a jitted function depends on; calls of equal signatures share one.

    Attributes:
        in_tree: structure of the traced arguments.
        avals: their types.
        static: the static arguments, None where there are none.
        settings: `config.trace_key()`.
        axes: named axes in force, with their sizes.
    """

    in_tree: Any
    avals: tuple[ShapedArray, ...]
    static: StaticKey | None
    settings: tuple[Any, ...]
    axes: tuple[tuple[Any, int], ...]


class TracedProgram(NamedTuple):
    """The trace for one signature.

    Attributes:
        closed: the program; its constants are leading arguments.
        consts: their values.
        in_tree: structure of the arguments, `(args, kwargs)` without static ones.
        out_tree: structure of the result.
        known: those of the constants that are written into what is compiled, as in `CompileOptions`.
    """

    closed: ClosedJaxpr
    consts: list[Any]
    in_tree: Any
    out_tree: Any
    known: tuple[Any, ...] = ()

    def out_info(self, shardings: Sequence[Any] | None = None) -> Any:
        """Return shape, dtype and sharding of the results: `ShapeDtypeStruct`s in their structure."""
        avals = self.closed.out_avals
        pairs = zip(avals, shardings or [None] * len(avals), strict=True)
        infos = [ShapeDtypeStruct(a.shape, a.dtype, a.weak_type, sharding=s) for a, s in pairs]
        return tree.tree_unflatten(self.out_tree, infos)


MAX_TRACES = 4096  # of one jitted function
MAX_PROGRAMS = 32  # of one function
PATIENCE = 5.0  # seconds to wait for another thread's trace, longer than most traces take

live: LiveSet[Any] = LiveSet()  # jitted functions, and the tables of functions


@clears_cache
def _clear_all() -> None:
    for each in live:
        each.clear_cache()


class TraceCache:
    """The traces of a jitted function, by signature; iterating gives the signatures in order."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun
        self._traces: dict[Signature, TracedProgram] = {}
        self._under_way: dict[Signature, threading.Event] = {}

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[Signature]:
        return iter(list(self._traces))

    def find(self, signature: Signature) -> TracedProgram | None:
        """Return the trace of the jitted function, or of the running transformation, for a signature."""
        found = self._traces.get(signature)
        if found is None:
            found = _traces_of_transformation(self._fun).get(signature)
            if found is not None:
                self._traces[signature] = found
        return found

    def trace_once(self, signature: Signature, trace: Callable[[Signature], TracedProgram]) -> TracedProgram:
        """Return the trace for a signature, made by one thread while others wait; if it fails, the next one tries.

        Inside of another trace no thread waits: two functions that call each other would wait forever. Since the user's
        functions run here, and may wait for a thread that waits here, no thread waits for long: it then traces, too.
        """
        if in_context():
            return trace(signature)
        done = threading.Event()
        try:
            while (other := self._under_way.setdefault(signature, done)) is not done:
                if not other.wait(PATIENCE):
                    break
                if (found := self.find(signature)) is not None:
                    return found
            return self.find(signature) or trace(signature)  # another thread may have ended just now
        finally:
            if self._under_way.get(signature) is done:
                del self._under_way[signature]
            done.set()

    def add(self, signature: Signature, program: TracedProgram) -> TracedProgram:
        """Keep a trace; return what is to be used in its place, an equal program or another thread's trace."""
        if any(isinstance(c, Tracer) for c in program.consts):
            return program
        closed = _earlier_program(self._fun, signature, program.closed)
        program = program._replace(closed=closed, known=_known_constants(program.consts, closed))
        program = self._traces.setdefault(signature, program)
        drop_oldest(self._traces, MAX_TRACES)
        _traces_of_transformation(self._fun)[signature] = program
        return program

    def clear(self) -> None:
        """Drop all traces; the next `jit` of the function traces and compiles a program of its own."""
        self._traces.clear()
        if type(self._fun) is types.FunctionType:
            self._fun.__dict__.pop(_PROGRAMS, None)


def _traces_of_transformation(fun: Callable[..., Any]) -> dict[Signature, TracedProgram]:
    """Return the traces of a function that the outermost running transformation has, to look in and to add to."""
    if current_trace() is bottom_trace():
        return {}
    # A bound method is another object at each access: its key is that of its object.
    key = (id(fun.__self__), id(fun.__func__)) if type(fun) is types.MethodType else id(fun)
    memo = trace_stack()[1].kept()
    return memo.setdefault(("jit", key), (fun, {}))[1]  # type: ignore[no-any-return]  # the function keeps its identity


_PROGRAMS = "__corejax_programs__"


class _Programs(dict[Any, Any]):
    """The last programs that were traced of a function, by signature: an attribute of the function, freed with it.

    Copies and pickles are empty, because executables belong to this process.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, fun: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.owner = None if fun is None else weakref.ref(fun)
        live.add(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _Programs, ()

    clear_cache = dict.clear


def _earlier_program(fun: Callable[..., Any], signature: Signature, closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program that an earlier `jit` of the function traced for a signature if it is the same, else this."""
    if type(fun) is not types.FunctionType:  # a bound method, for example, is another object each time
        return closed
    programs = fun.__dict__.get(_PROGRAMS)
    if programs is None or programs.owner is None or programs.owner() is not fun:  # `functools.wraps` copies attributes
        programs = fun.__dict__[_PROGRAMS] = _Programs(fun)
    found = programs.pop(signature, None)
    if found is not None and same_jaxpr(found, closed, scopes=True):  # compiled programs show scopes
        closed = found
    else:
        if found is not None and same_jaxpr(found, closed, scopes=True, derivatives=False):
            share_compiled(found, closed)
        if closed.jaxpr.debug_info is not None:
            closed.jaxpr.debug_info = closed.jaxpr.debug_info.without_function()
    programs[signature] = closed
    drop_oldest(programs, MAX_PROGRAMS)
    return closed


_MOST_KNOWN = 1024  # elements of a constant that is written into the program
_POSITIONS = frozenset(map(np.dtype, "?bhiq"))
_NUMBERS = frozenset(map(np.dtype, "fdFD"))


def _known_constants(consts: Sequence[Any], closed: ClosedJaxpr) -> tuple[tuple[int, ShapedArray, bytes], ...]:
    """Return small arrays among the constants: positions and masks, and the numbers that are compiled in first.

    XLA makes slices and copies of gathers and scatters at positions that it sees, and computes what depends on numbers
    alone. If a function is traced again, to the same program with other numbers, the program takes the numbers as
    arguments from then on, so that it is not compiled for each. Unsigned integers, which are keys, are always
    arguments, and so are floats of 16 bits.
    """
    small = [
        (i, x.aval, x._host)
        for i, x in enumerate(consts)
        if type(x) is Array and x._host is not None and x._host.size <= _MOST_KNOWN and x.aval.refinement is None
    ]
    positions, numbers = (
        tuple((i, aval, x.tobytes()) for i, aval, x in small if x.dtype in dtypes) for dtypes in (_POSITIONS, _NUMBERS)
    )
    first = closed.jaxpr.memo.setdefault("numbers", numbers)
    return positions + numbers if numbers == first else positions
