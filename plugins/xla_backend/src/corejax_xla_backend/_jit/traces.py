"""The cache of traces: the programs that `jit` has traced from a function, by signature.

The key of an entry is a `Signature`: everything that a trace depends on and that the caller can see. The key does not
include the function's code or the values that the function reads from outside: a second `jit` of the function traces
it again, and so sees what has changed. A trace that closes over tracers belongs to one run of an enclosing function and
is never cached.

An entry lives as long as one of three owners, each of which has a table of its own:

- The jitted function finds its own traces. It evicts the oldest of more than 4096.
- The outermost transformation that is running shares traces: another `jit` of the same function finds them there, so
  that a function that jits another one twice, at each of n levels, runs n traces and not 2**n. These entries end with
  the transformation.
- The function that was jitted keeps the program of its last 32 signatures. These programs do not answer lookups. If a
  new trace has the same program, the earlier program is used, with the executables that were compiled for it. If only
  the derivative rules differ, which each trace creates anew, the new program is used and shares the executables.

`jit(f).clear_cache()` clears the tables of the jitted function and of `f`; `corejax.clear_caches()` clears all tables.
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
from corejax.extend.transforms import Cell, cell_arguments, in_context, trace_stack, write_cells
from corejax.extend.types import Packed, ShapeDtypeStruct, ValueType
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._jit.arguments import StaticKey
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._parts import flat_avals
from corejax_xla_backend._programs import share_compiled


class Signature(NamedTuple):
    """The key of a trace of a jitted function; calls with equal signatures share one trace.

    Attributes:
        in_tree: structure of the traced arguments.
        avals: types of the traced arguments.
        static: the static arguments, or None.
        settings: `config.trace_key()`.
        axes: named axes in scope, with their sizes.
    """

    in_tree: Any
    avals: tuple[ShapedArray, ...]
    static: StaticKey | None
    settings: tuple[Any, ...]
    axes: tuple[tuple[Any, int | None], ...]


class TracedProgram(NamedTuple):
    """The trace for one signature.

    Attributes:
        closed: the program; its constants are leading arguments.
        consts: values of the constants.
        in_tree: structure of the arguments, `(args, kwargs)` without static ones.
        out_tree: structure of the result.
        known: the constants that are embedded in the compiled program, as in `CompileOptions`.
        is_persisted: whether the program calls an exported one, which has no eager rules.
        cells: the cells that the program reads and writes, whose values are its last arguments and results; the number
            of a cell among the arguments, for each call has others.
    """

    closed: ClosedJaxpr
    consts: list[Any]
    in_tree: Any
    out_tree: Any
    known: tuple[Any, ...] = ()
    is_persisted: bool = False
    cells: tuple[Cell | int, ...] = ()

    def cells_of(self, arguments: Sequence[Cell]) -> list[Cell]:
        """Return the cells of a call with these cells among its arguments.

        Raises:
            ValueError: an argument is a cell that the function uses from outside as well.
        """
        cells = [arguments[cell] if isinstance(cell, int) else cell for cell in self.cells]
        for i, cell in enumerate(cells):
            if cell in cells[:i]:
                raise ValueError(
                    f"{cell!r} is passed to the function as an argument and used by it from outside: use the argument"
                )
        return cells

    def result(self, outs: list[Any], cells: Sequence[Cell] = ()) -> Any:
        """Return the function's result, and write the cells."""
        return tree.tree_unflatten(self.out_tree, write_cells(cells, outs))

    def out_info(self, shardings: Sequence[Any] | None = None) -> Any:
        """Return shape, dtype and sharding of the result: `ShapeDtypeStruct`s in its structure.

        Args:
            shardings: the shardings of the arrays that store the results; None if they are not known.
        """
        avals = self.closed.out_avals[: self.out_tree.num_leaves]
        each = iter(shardings or [None] * len(flat_avals(avals)))
        return tree.tree_unflatten(self.out_tree, [_info(aval, [next(each) for _ in aval.parts()]) for aval in avals])


def _info(aval: ShapedArray, shardings: Sequence[Any]) -> Any:
    """Return a type as a `ShapeDtypeStruct`; a value type, as a `Packed` of these."""
    if isinstance(aval, ValueType):
        return Packed(aval, tuple(_info(part, [s]) for part, s in zip(aval.parts(), shardings, strict=True)))
    return ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type, sharding=shardings[0])


def keyed_cells(args: Any) -> tuple[Any, list[Cell], list[Cell]]:
    """Return the arguments with stand-ins for their cells, the cells and the stand-ins; see `CellArguments`.

    Under a transformation the function is traced on the cells themselves, because the backward pass of a function with
    custom rules may use them later, when the call has ended.
    """
    if cell_arguments.value is None or current_trace() is not bottom_trace():
        return args, [], []
    return cell_arguments.value.keyed(args)


class InTurn:
    """A context in which one call at a time takes the values of cells and sets them: it reuses the values' memory.

    A callback does not wait, because the program that waits for the callback may use the cells.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        # All threads acquire locks in the same order, so that no two threads wait for each other.
        self._locks = [cell.turn for cell in sorted(cells, key=id)]
        self._held: list[Any] = []

    def __enter__(self) -> None:
        try:
            for lock in self._locks:
                if lock.acquire(not callbacks.running):
                    self._held.append(lock)
        except BaseException:  # an interrupt
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        while self._held:
            self._held.pop().release()


MAX_TRACES = 4096  # traces of one jitted function
MAX_PROGRAMS = 32  # programs that one function keeps
PATIENCE = 5.0  # seconds to wait for another thread's trace, longer than most traces take

live: LiveSet[Any] = LiveSet()  # jitted functions and the program tables of functions, for `clear_caches`


@clears_cache
def _clear_all() -> None:
    for each in live:
        each.clear_cache()


class TraceCache:
    """The traces of a jitted function by signature; iteration yields the signatures, oldest first."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun
        self._traces: dict[Signature, TracedProgram] = {}
        self._under_way: dict[Signature, threading.Event] = {}

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[Signature]:
        return iter(list(self._traces))

    def find(self, signature: Signature) -> TracedProgram | None:
        """Return the trace for a signature from this cache or the running transformation's, or None."""
        program = self._traces.get(signature)
        if program is None:
            program = _traces_of_transformation(self._fun).get(signature)
            if program is not None:
                self._traces[signature] = program
        return program

    def trace_once(self, signature: Signature, trace: Callable[[Signature], TracedProgram]) -> TracedProgram:
        """Return the trace for a signature, traced by one thread while others wait; if that fails, the next one tries.

        A thread never waits inside another trace, because two functions that call each other would deadlock. The user's
        function may wait for a thread that waits here. So a thread waits `PATIENCE` seconds and then traces itself.
        """
        if in_context():
            return trace(signature)
        done = threading.Event()
        try:
            while (other := self._under_way.setdefault(signature, done)) is not done:
                if not other.wait(PATIENCE):
                    break
                if (program := self.find(signature)) is not None:
                    return program
            return self.find(signature) or trace(signature)  # another thread may have finished just now
        finally:
            if self._under_way.get(signature) is done:
                del self._under_way[signature]
            done.set()

    def add(self, signature: Signature, program: TracedProgram) -> TracedProgram:
        """Cache a trace; return the trace to use: an equal earlier program's or another thread's if there is one."""
        if any(isinstance(c, Tracer) for c in program.consts):
            return program
        closed = _earlier_program(self._fun, signature, program.closed)
        program = program._replace(closed=closed, known=known_constants(program.consts, closed))
        program = self._traces.setdefault(signature, program)
        drop_oldest(self._traces, MAX_TRACES)
        _traces_of_transformation(self._fun)[signature] = program
        return program

    def clear(self) -> None:
        """Drop all traces, and the programs that the function keeps for later `jit`s."""
        self._traces.clear()
        if type(self._fun) is types.FunctionType:
            self._fun.__dict__.pop(_PROGRAMS, None)


def _traces_of_transformation(fun: Callable[..., Any]) -> dict[Signature, TracedProgram]:
    """Return the mutable table of a function's traces in the outermost running transformation."""
    if current_trace() is bottom_trace():
        return {}
    # Each access to a bound method makes a new object, so that the key is made from its object and its function.
    key = (id(fun.__self__), id(fun.__func__)) if type(fun) is types.MethodType else id(fun)
    memo = trace_stack()[1].kept()
    # The entry holds the function, so that its id stays valid.
    return memo.setdefault(("jit", key), (fun, {}))[1]  # type: ignore[no-any-return]  # memos hold any values


_PROGRAMS = "__corejax_programs__"


class _Programs(dict[Any, Any]):
    """The programs last traced from a function, by signature: an attribute of the function, and freed with it.

    Copies and pickles are empty, because executables belong to this process.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # dicts have no hash

    def __init__(self, fun: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.owner = None if fun is None else weakref.ref(fun)
        live.add(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _Programs, ()

    clear_cache = dict.clear


def _earlier_program(fun: Callable[..., Any], signature: Signature, closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program that an earlier `jit` of the function traced for a signature if it is equal, else `closed`.

    An equal program has the same scopes, because compiled programs show scopes.
    """
    if type(fun) is not types.FunctionType:  # a bound method, for example, is a new object at each access
        return closed
    programs = fun.__dict__.get(_PROGRAMS)
    if programs is None or programs.owner is None or programs.owner() is not fun:  # `functools.wraps` copies attributes
        programs = fun.__dict__[_PROGRAMS] = _Programs(fun)
    earlier = programs.pop(signature, None)
    if earlier is not None and same_jaxpr(earlier, closed, scopes=True):
        closed = earlier
    else:
        if earlier is not None and same_jaxpr(earlier, closed, scopes=True, derivatives=False):
            share_compiled(earlier, closed)
        if closed.jaxpr.debug_info is not None:
            closed.jaxpr.debug_info = closed.jaxpr.debug_info.without_function()
    programs[signature] = closed
    drop_oldest(programs, MAX_PROGRAMS)
    return closed


_MAX_EMBEDDED_SIZE = 1024  # elements of a constant that is embedded in the program
_POSITIONS = frozenset(map(np.dtype, "?bhiq"))
_NUMBERS = frozenset(map(np.dtype, "fdFD"))


def known_constants(consts: Sequence[Any], closed: ClosedJaxpr) -> tuple[tuple[int, ShapedArray, bytes], ...]:
    """Return the small constants to embed in the compiled program: position, type and bytes of each.

    XLA turns gathers and scatters at known positions into slices and copies, and folds what depends on constant numbers
    alone. Positions and masks are therefore always embedded. Numbers are embedded until the function is traced again to
    the same program with other numbers; from then on the program takes numbers as arguments, so that it is not compiled
    for each value. Unsigned integers, which are random keys, and 16-bit floats are always arguments.
    """
    small = [
        (i, x.aval, x._host)
        for i, x in enumerate(consts)
        if type(x) is Array and x._host is not None and x._host.size <= _MAX_EMBEDDED_SIZE and x.aval.refinement is None
    ]
    positions, numbers = (
        tuple((i, aval, x.tobytes()) for i, aval, x in small if x.dtype in dtypes) for dtypes in (_POSITIONS, _NUMBERS)
    )
    first = closed.jaxpr.memo.setdefault("numbers", numbers)
    return positions + numbers if numbers == first else positions
