"""Staging: record a program instead of computing.

    stage : (a -> b) -> avals of a -> jaxpr of a -> b

A tracer stands for an abstract value: it holds a variable of the program. The trace has no parent and is on top, so it
records every `bind`, whatever the operands are (omnistaging). Known scalars become literals; known arrays, and tracers
of enclosing transformations, become constants of the program, each once.

Invariant. The program does not depend on the values of its arguments: abstract evaluation infers all types, and Python
code that needs a value raises an error. One recording is therefore right for all arguments of the same types.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import tree
from corejax.arrays.array import Array, as_array
from corejax.arrays.cells import Cell
from corejax.base.lists import split_list
from corejax.base.seams import Signal
from corejax.core.avals import Avals, FlatFun, Operands, Params, ShapedArray, get_aval
from corejax.core.primitive import Primitive, flat_decomposition
from corejax.core.trace import Trace, Tracer, escaped, set_contexts, state
from corejax.core.value_types import Packed
from corejax.interpreters.checks import refuse_leaks
from corejax.ir.check import check_jaxpr
from corejax.ir.debug_info import Debug
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from corejax.messages import source_info
from corejax.rules import RuleFn, abstract_eval_rules
from corejax.settings.config import config

program_staged = Signal("staged programs")  # sent after each recording, with the `Jaxpr`

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)


class JitTracer(Tracer):
    """An abstract value: a variable of the program being recorded."""

    __slots__ = ("_var", "aval")

    def __init__(self, trace: Trace, aval: ShapedArray, var: Var) -> None:
        self._trace = trace
        self.aval = aval
        self._var = var

    def origin(self) -> str:
        """Return sentences that say which function was traced, and why the value is not known."""
        return self._trace.explain(self)  # type: ignore[attr-defined, no-any-return]  # a StagingTrace

    def made_at(self) -> str | None:
        """Return the user's line that computed the value."""
        return self._trace.made_at(self._var)  # type: ignore[attr-defined, no-any-return]  # a StagingTrace


class StagingTrace(Trace):
    """Records equations.

    Attributes:
        eqns: the equations so far.
        invars: binders of the arguments.
        constants: id of a constant -> (its variable, the constant, which keeps the id in use, its value when recorded).
        cells: the cells of enclosing functions that the program uses; their values are its last arguments.
    """

    __slots__ = ("cells", "constants", "eqns", "invars")

    interpreter = "staging"

    def __init__(self, debug: Debug = None) -> None:
        super().__init__(None, debug)
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.constants: dict[int, tuple[Var, Any, Any]] = {}
        self.cells: list[Cell] = []

    def new_arg(self, aval: ShapedArray) -> JitTracer:
        """Add an argument to the program and return its tracer."""
        var = Var(aval)
        self.invars.append(var)
        return JitTracer(self, aval, var)

    def open_cell(self, cell: Cell) -> None:
        """Add a cell's value to the arguments; `stage_with_cells` adds its last value to the results."""
        cell.enter(self.new_arg(cell.aval), self)
        self.cells.append(cell)

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list[Any]:
        """Record an equation and return tracers for its outputs; abstract evaluation infers their types."""
        invars, avals = [], []
        for x in args:
            v = x._var if type(x) is JitTracer and x._trace is self else self.atom(x, primitive)
            invars.append(v)
            avals.append(v.aval)
        outvars, outs = [], []
        for aval in primitive.abstract(tuple(avals), params):
            outvars.append(var := Var(aval))
            outs.append(JitTracer(self, aval, var))
        source = state.source or source_info.capture_source(3, state.scope)
        self.eqns.append(JaxprEqn(primitive, invars, outvars, params, source))
        return outs

    def atom(self, x: Any, primitive: Primitive | None = None) -> Var | Literal:
        """Return the variable or literal for any value; add a constant to the program if needed."""
        if isinstance(x, Tracer):
            if x._trace is self:
                return x._var  # type: ignore[attr-defined, no-any-return]  # its tracers are JitTracers
            if not x._trace.alive or _inside(x._trace, self):
                raise escaped(x, f"primitive {primitive.name!r}" if primitive else "the result of a traced function")
            return self._constant(x, x.aval)
        kind = type(x)
        if kind is Array:
            if x.aval.ndim == 0 and x._host is not None and x.aval.dtype.names is None:
                return Literal(x._host[()], x.aval)
            return self._constant(x, x.aval)
        if kind is Packed:
            return self._constant(x, x.aval)
        try:
            aval = get_aval(x)
        except TypeError as error:
            problem = source_info.without_caller(error)
            raise TypeError(f"operand of primitive {primitive.name!r}: {problem}" if primitive else problem) from None
        if not isinstance(x, _NUMBERS):  # an object with a type; converting it raises an error if it has no value
            return self.atom(as_array(x), primitive)
        if aval.ndim == 0 and not isinstance(x, np.ndarray) and aval.dtype.names is None:
            return Literal(x, aval)
        return self._constant(x, aval)

    def _constant(self, x: object, aval: ShapedArray) -> Var:
        constant = self.constants.get(id(x))
        if isinstance(x, np.ndarray) and constant is not None and x.tobytes() != constant[2].tobytes():
            # The user has modified the array since: keep the earlier value under another key, and add a new constant.
            self.constants[len(self.constants)] = constant
            constant = None
        if constant is None:
            value = as_array(x) if isinstance(x, np.ndarray) else x
            constant = self.constants[id(x)] = (Var(aval), x, value)
        return constant[0]

    def to_jaxpr(self, outs: Operands) -> tuple[Jaxpr, list[Any]]:
        """Return the program recorded so far, with `outs` as its outputs, and its constants."""
        outvars = list(map(self.atom, outs))
        jaxpr = Jaxpr([v for v, _, _ in self.constants.values()], self.invars, self.eqns, outvars, self.debug)
        return jaxpr, [as_array(value) for _, _, value in self.constants.values()]

    # -- messages ----------------------------------------------------------------------------------------------

    def made_at(self, var: Var) -> str | None:
        """Return the user's line of the equation that binds `var`."""
        return next((source_info.describe_source(e.source_info) for e in self.eqns if var in e.outvars), None)

    def explain(self, tracer: JitTracer) -> str:
        """Explain why a value is abstract: name the arguments it depends on, or the operations that computed it."""
        if self.debug is None:
            return ""
        head = f"The error occurred while {self.debug.description()}."
        sources, made = self._ancestry(tracer._var)
        if sources:
            names = self.debug.arg_names()
            labels = [names[i] if i < len(names) else f"number {i}" for i in sources]
            noun = "the value of the argument" if len(labels) == 1 else "the values of the arguments"
            listed = labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
            return f"{head} This concrete value was not available in Python because it depends on {noun} {listed}."
        if not made:
            return head
        from corejax.ir.printer import eqn_text

        lines = "\n\n".join(
            f"  operation {eqn_text(e)}\n    from line {source_info.describe_source(e.source_info)}" for e in made[:5]
        )
        more = f"\n\n  and {len(made) - 5} more operations" if len(made) > 5 else ""
        return f"{head} This value became a tracer due to corejax operations on these lines:\n\n{lines}{more}"

    def _ancestry(self, var: Var) -> tuple[list[int], list[JaxprEqn]]:
        """Return the indices of the arguments that `var` depends on, and the equations it depends on, last first."""
        wanted = {var}
        made = []
        for eqn in reversed(self.eqns):
            if not wanted.isdisjoint(eqn.outvars):
                made.append(eqn)
                wanted.update(v for v in eqn.invars if type(v) is Var)
        return [i for i, v in enumerate(self.invars) if v in wanted], made


def _inside(trace: Trace | None, outer: Trace) -> bool:
    """Whether `outer` is a trace or one of its parents."""
    while trace is not None and trace is not outer:
        trace = trace.parent
    return trace is outer


def stage(fun: FlatFun, in_avals: Avals, debug: Debug = None) -> tuple[Jaxpr, list[Any]]:
    """Record a flat function on abstract arguments.

    Returns:
        The program and its constants, which may be tracers of enclosing transformations.

    Raises:
        ValueError: the function writes a cell of an enclosing function.
    """
    jaxpr, consts, cells = stage_with_cells(fun, in_avals, debug)
    if not cells:
        return jaxpr, consts
    return cells_as_constants(jaxpr, consts, cells, "tracing a function" if debug is None else debug.description())


def cells_as_constants(jaxpr: Jaxpr, consts: list[Any], cells: Sequence[Cell], use: str) -> tuple[Jaxpr, list[Any]]:
    """Turn the values of cells, a program's last arguments and results, into constants.

    Raises:
        ValueError: the program writes a cell; `use` says where.
    """
    arguments, values = split_list(jaxpr.invars, [len(jaxpr.invars) - len(cells)])
    outvars, last = split_list(jaxpr.outvars, [len(jaxpr.outvars) - len(cells)])
    for cell, value, after in zip(cells, values, last, strict=True):
        if after is not value:
            raise ValueError(
                f"{cell!r} is written while {use}, which may read references of enclosing functions, but not write "
                "them: return the value, and write it outside"
            )
    jaxpr = Jaxpr([*jaxpr.constvars, *values], arguments, jaxpr.eqns, outvars, jaxpr.debug_info)
    return jaxpr, [*consts, *[cell.get() for cell in cells]]


def stage_with_cells(fun: FlatFun, in_avals: Avals, debug: Debug = None) -> tuple[Jaxpr, list[Any], tuple[Cell, ...]]:
    """Do as `stage`; return the cells as well, whose values are the program's last arguments and results."""
    trace = StagingTrace(debug)
    args = list(map(trace.new_arg, in_avals))
    earlier = (state.trace, state.source, state.scope, state.contexts, gc.isenabled())
    try:
        try:
            state.source = None
            state.scope = ()  # a program's scopes are relative to the equation that contains the program
            state.trace = trace
            set_contexts(earlier[3] + 1)
            # All objects of a program under construction are alive: collections would traverse them without effect.
            gc.disable()
            outs = fun(*args)
            cells = (*trace.cells,)
            jaxpr, consts = trace.to_jaxpr([*outs, *[cell.get() for cell in cells]])
        finally:
            _end(trace, *earlier)
    finally:
        _end(trace, *earlier)
    if config.check_jaxprs:
        check_jaxpr(jaxpr)
    program_staged.send(jaxpr)
    refuse_leaks(trace)
    return jaxpr, consts, cells


def _end(trace: StagingTrace, top: Trace, source: object, scope: Any, contexts: int, collecting: bool) -> None:
    """Restore the thread's state after a recording; may be called twice."""
    state.trace, state.source, state.scope = top, source, scope
    trace.alive = False
    while trace.cells:
        trace.cells.pop().leave()
    set_contexts(contexts)
    if collecting:
        gc.enable()
        # Creating a container triggers a collection that is due while the tracers are alive. Otherwise it may run as
        # CPython 3.11 deallocates a tracer and lists its weak references, of which it frees some: the process crashes.
        _ = set[Any]()


def refused(cell: Cell, user: str) -> ValueError:
    """Return the error for a cell that is used by rules whose results are cached."""
    return ValueError(f"{cell!r} is used by {user}, which cannot use references: pass its value as an argument")


def stage_closed(fun: FlatFun, in_avals: Avals, debug: Debug = None) -> ClosedJaxpr:
    """Do as `stage`, and return the program with its constants; refuse cells, since such programs are cached."""
    jaxpr, consts, cells = stage_with_cells(fun, in_avals, debug)
    if cells:
        raise refused(cells[0], "a rule of a program that is staged once for many calls")
    return ClosedJaxpr(jaxpr, consts)


@abstract_eval_rules.derivations.from_decomposition()
def _abstract_eval_of_decomposition(primitive: Primitive, body: FlatFun) -> RuleFn:
    def rule(*avals: ShapedArray, **params: object) -> Any:
        outs = stage_closed(functools.partial(body, **params), avals).out_avals
        return outs if primitive.multiple_results else outs[0]

    return rule


def decomposed(primitive: Primitive, avals: Avals, params: Params) -> ClosedJaxpr:
    """Return the decomposition of a primitive as a program, for operands of these types."""
    body = flat_decomposition(primitive)
    assert body is not None
    return stage_closed(functools.partial(body, **params), avals)


tree.mark_leaf_types(JitTracer)
