"""Partial evaluation: compute with known values, record the operations on unknown values.

    partial_eval : ((a1, a2) -> (b1, b2)) -> a1 -> (b1, res, (res, a2) -> b2)

A tracer stands for an unknown value: it holds a variable. A primitive with an unknown operand is appended to the tape
as an equation, in which known operands are values (the residuals). The parent interprets all other primitives, so known
values are never boxed. Invariant: the tape is in execution order, and each equation uses only variables bound before
it. One pass runs, transposes or trims it, without sorting; autodidax sorts a graph of recipes instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import tree
from corejax.arrays.array import Array, Value, as_array
from corejax.base.lists import select_list
from corejax.core.avals import FlatFun, Operands, Params, ShapedArray, get_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace, Tracer, current_scope, run_with_trace, state
from corejax.ir.check import check_jaxpr
from corejax.ir.debug_info import Debug
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from corejax.messages import source_info
from corejax.rules import partial_eval_rules
from corejax.rules.run_rule import check_results, run_rule
from corejax.settings.config import config


class PartialEvalTracer(Tracer):
    """An unknown value: a variable on the tape."""

    __slots__ = ("_var", "aval")

    def __init__(self, trace: Trace, aval: ShapedArray, var: Var) -> None:
        self._trace = trace
        self.aval = aval
        self._var = var


class PartialEvalTrace(Trace):
    """Records on a tape the operations that depend on unknown values.

    Attributes:
        tape: equations; their `invars` are variables (unknown) or values (known).
        copies: copies of NumPy arrays on the tape, by id: the array and its copy.
        located: whether equations store the user's line, which costs time and helps only if a program is recorded.
        depth: length of the enclosing scope; the scopes of the tape's equations omit it.
    """

    __slots__ = ("copies", "depth", "located", "tape")

    interpreter = "partial_eval"

    def __init__(self, parent: Trace, debug: Debug = None) -> None:
        super().__init__(parent, debug)
        self.tape: list[JaxprEqn] = []
        self.copies: dict[int, tuple[np.ndarray, Array]] = {}
        self.depth = len(current_scope())
        self.located = state.contexts > 0 or self.depth > 0

    def new_arg(self, aval: ShapedArray) -> PartialEvalTracer:
        """Return a tracer for an unknown argument."""
        return PartialEvalTracer(self, aval, Var(aval))

    def is_unknown(self, x: object) -> bool:
        """Whether a value is a tracer of this trace."""
        return type(x) is PartialEvalTracer and x._trace is self

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list[Any]:
        """Record an equation if an operand is unknown, or run the primitive's partial-eval rule; else compute."""
        for x in args:
            if type(x) is PartialEvalTracer and x._trace is self:
                break
        else:
            return self.parent.process_primitive(primitive, args, params)
        rule = partial_eval_rules.table.get(primitive)
        if rule is None:
            return self.record(primitive, args, params)
        outs = run_rule(partial_eval_rules, primitive, rule, self.parent, (self, args), params)
        types = primitive.abstract(tuple(get_aval(x) for x in args), params)
        return check_results(partial_eval_rules, primitive, outs, types)

    def record(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list[PartialEvalTracer]:
        """Append an equation to the tape and return tracers for its outputs."""
        operands: list[Any] = []
        avals: list[ShapedArray] = []
        try:
            for x in args:
                x = x._var if type(x) is PartialEvalTracer and x._trace is self else x
                operands.append(x)
                avals.append(x.aval)
        except AttributeError:  # a NumPy array or a number
            return self.record(primitive, [x if hasattr(x, "aval") else self._as_array(x) for x in args], params)
        outvars, outs = [], []
        for aval in primitive.abstract(tuple(avals), params):
            outvars.append(var := Var(aval))
            outs.append(PartialEvalTracer(self, aval, var))
        source = state.source
        if self.located:
            source = self.place_of(source or source_info.capture_source(3, state.scope))
        self.tape.append(JaxprEqn(primitive, operands, outvars, params, source))
        return outs

    def place_of(self, source: source_info.Source | None) -> source_info.Source | None:
        """Return the source that an equation stores: the user's line, and its scope inside this transformation."""
        if not self.located:
            return state.source  # type: ignore[no-any-return]  # a Source
        if not self.depth or source is None or len(source) < 3:
            return source
        return (source[0], source[1], source[2][self.depth :])

    def _as_array(self, x: object) -> Value:
        """Convert a number, or copy a NumPy array, which its owner may modify before the tape runs.

        The copy is reused while the array is equal to it.
        """
        if not isinstance(x, np.ndarray):
            return as_array(x)
        _, copy = self.copies.get(id(x), (None, None))
        if copy is None or copy._fetch().tobytes() != x.tobytes():
            copy = as_array(x)
            self.copies[id(x)] = (x, copy)  # keeps x alive, so that its id is not reused
        return copy

    def to_jaxpr(self, args: Sequence[PartialEvalTracer], outs: Operands) -> tuple[Jaxpr, list[Any]]:
        """Convert the tape to a program from unknown arguments to outputs; drop equations that no output needs.

        Returns:
            The program, with a constvar for each residual, and the residuals.
        """
        residuals: dict[int, tuple[Var, Any]] = {}

        def atom(x: object) -> Any:
            if type(x) is Var:
                return x
            if type(x) is PartialEvalTracer and x._trace is self:
                return x._var
            return _residual(x, residuals)

        outvars = [atom(x) for x in outs]
        live = {v for v in outvars if type(v) is Var}
        eqns = []
        for eqn in reversed(self.tape):
            if eqn.effects or not live.isdisjoint(eqn.outvars):
                invars = [atom(x) for x in eqn.invars]
                live.update(v for v in invars if type(v) is Var)
                eqns.append(JaxprEqn(eqn.primitive, invars, eqn.outvars, eqn.params, eqn.source_info))
        constvars = [v for v, _ in residuals.values()]
        jaxpr = Jaxpr(constvars, [x._var for x in args], eqns[::-1], outvars, self.debug)
        if config.check_jaxprs:
            check_jaxpr(jaxpr)
        return jaxpr, [x for _, x in residuals.values()]


def _residual(x: object, residuals: dict[int, tuple[Var, Any]]) -> Var | Literal:
    if not isinstance(x, Tracer):
        array: Array = as_array(x)  # type: ignore[assignment]  # x is no tracer
        inline = array.aval.ndim == 0 and array.aval.dtype.names is None
        if inline and isinstance(array._host, np.ndarray) and not isinstance(x, np.ndarray):
            return Literal(array._host[()], array.aval)
    residual = residuals.get(id(x))
    if residual is None:
        residual = residuals[id(x)] = (Var(get_aval(x)), x)
    return residual[0]


def partial_eval_flat(
    fun: FlatFun, known: Sequence[Any], avals: Sequence[ShapedArray | None], debug: Debug = None
) -> tuple[Jaxpr, list[Any], list[Any], list[bool]]:
    """Evaluate a flat function partially.

    Args:
        fun: the function.
        known: the values of the known arguments, in the positions of all arguments.
        avals: the types of the unknown arguments, and None for known arguments.
        debug: the user's function, for messages.

    Returns:
        The program of the unknown part, from unknown arguments to unknown outputs, with a constvar for each residual;
        the residuals; the known outputs, and None for unknown ones; and which outputs are unknown.
    """
    trace = PartialEvalTrace(state.trace, debug)
    args = [x if aval is None else trace.new_arg(aval) for x, aval in zip(known, avals, strict=True)]
    outs = run_with_trace(trace, fun, args)
    unknowns_out = [trace.is_unknown(x) for x in outs]
    unknown_args = [x for x in args if trace.is_unknown(x)]
    jaxpr, residuals = trace.to_jaxpr(unknown_args, select_list(unknowns_out, outs))
    return jaxpr, residuals, [None if u else x for x, u in zip(outs, unknowns_out, strict=True)], unknowns_out


tree.mark_leaf_types(PartialEvalTracer)
