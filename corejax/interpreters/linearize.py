"""Linearisation: compute the primal part, record the tangent part on a linear tape.

    linearize : (a -> b) -> a -> (b, T a -o T b)

It has no tracers of its own: a `JVPTrace` runs above a `PartialEvalTrace` to which primals are known and tangents
unknown. Primal operations are therefore computed, and the tape receives exactly the operations on tangents. Because JVP
rules are linear in the tangents, so is every equation on the tape. Pushing tangents runs the tape forward; pulling
cotangents transposes it. The residuals are the primal values on the tape: the memory that reverse mode needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.arrays.array import Value, as_array
from corejax.base.lists import select_list, spread_list, unzip_map
from corejax.core.avals import FlatFun, Operands, get_aval
from corejax.core.trace import in_scope, run_with_trace, state
from corejax.interpreters.batching import BatchTracer
from corejax.interpreters.checks import refuse_leaks
from corejax.interpreters.jvp import JVPTrace, JVPTracer, Tangent, tangent_aval
from corejax.interpreters.partial_eval import PartialEvalTrace, PartialEvalTracer
from corejax.interpreters.transposition import UndefPrimal, add_cotangent, backward_pass, transpose_tape
from corejax.ir.debug_info import Debug
from corejax.ir.interpret import eval_jaxpr
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.messages.source_info import TRANSPOSE
from corejax.observe import Event, notify, observed


class LinearProgram(NamedTuple):
    """A linear function as a program, without the values of its residuals.

    Attributes:
        jaxpr: maps the tangents of active inputs to the nonzero output tangents; its constvars are the residuals.
        active: for each input, whether it is differentiated.
        nonzeros: for each output, whether it has a tangent.
    """

    jaxpr: Jaxpr
    active: tuple[bool, ...]
    nonzeros: tuple[bool, ...]


class LinearCall(NamedTuple):
    """A linear program with its residuals: the form of a tape that is passed through transformations as a pytree."""

    program: LinearProgram
    residuals: Sequence[Value]

    def push(self, tangents: Sequence[Value]) -> list[Tangent]:
        """Return output tangents (None for zero) for input tangents."""
        program = self.program
        outs = eval_jaxpr(program.jaxpr, self.residuals, select_list(program.active, tangents))
        return spread_list(program.nonzeros, outs)

    def pull(self, cts: Sequence[Tangent]) -> list[Tangent]:
        """Return input cotangents for output cotangents (None for zero)."""
        program = self.program
        linear = [UndefPrimal(v.aval) for v in program.jaxpr.invars]
        nonzero_cts = select_list(program.nonzeros, cts)
        outs = in_scope(TRANSPOSE, backward_pass)(program.jaxpr, self.residuals, linear, nonzero_cts)
        return spread_list(program.active, outs)


class LinearTape:
    """The tangent part of a function at a point: equations that are linear in the tangents and contain the residuals.

    It is converted to a program only if a tangent is pushed or the tape becomes a pytree; `grad` just transposes it.

    Attributes:
        tracers: the unknown input tangents; None for inputs that are not differentiated.
        eqns: the equations.
        outs: the output tangents, None for zero.
    """

    __slots__ = ("_program", "eqns", "outs", "trace", "tracers")

    def __init__(self, trace: PartialEvalTrace, tracers: list[PartialEvalTracer | None], outs: list[Tangent]) -> None:
        self.trace = trace
        self.tracers = tracers
        self.eqns: list[JaxprEqn] = trace.tape
        self.outs = outs
        self._program: tuple[Jaxpr, list[Value]] | None = None

    def to_jaxpr(self) -> tuple[Jaxpr, list[Value]]:
        """Return a jaxpr from input tangents to the nonzero output tangents, and its residuals (memoised)."""
        if self._program is None:
            args = [t for t in self.tracers if t is not None]
            self._program = self.trace.to_jaxpr(args, [t for t in self.outs if t is not None])
        return self._program

    @property
    def program(self) -> LinearProgram:
        """The tape as a program."""
        active, nonzeros = (tuple(x is not None for x in xs) for xs in (self.tracers, self.outs))
        return LinearProgram(self.to_jaxpr()[0], active, nonzeros)

    @property
    def residuals(self) -> Sequence[Value]:
        """The values that the program refers to."""
        return self.to_jaxpr()[1]

    def push(self, tangents: Sequence[Value]) -> list[Tangent]:
        """Return output tangents (None for zero) for input tangents."""
        return LinearCall(self.program, self.residuals).push(tangents)

    def pull(self, cts: Sequence[Tangent]) -> list[Tangent]:
        """Return input cotangents for output cotangents (None for zero)."""
        cotangents: dict[Var, Value] = {}
        for tangent, ct in zip(self.outs, cts, strict=True):
            # A known tangent is a constant: it does not depend on the input tangents.
            if ct is not None and isinstance(tangent, PartialEvalTracer) and self.trace.is_unknown(tangent):
                add_cotangent(cotangents, tangent._var, ct)
        return _transpose_in_scope(self.eqns, cotangents, [None if t is None else t._var for t in self.tracers])


_transpose_in_scope = in_scope(TRANSPOSE, transpose_tape)


def linearize_flat(
    fun: FlatFun, primals: Operands, active: Sequence[bool], debug: Debug = None
) -> tuple[list[Any], LinearTape]:
    """Linearise a flat function.

    Args:
        fun: the function.
        primals: its arguments.
        active: for each argument, whether to differentiate with respect to it.
        debug: the user's function, for messages.

    Returns:
        The outputs, and the tape of the tangent part.
    """
    tape = PartialEvalTrace(state.trace, debug)
    trace = JVPTrace(tape, debug)
    tracers = [tape.new_arg(tangent_aval(get_aval(x))) if a else None for x, a in zip(primals, active, strict=True)]
    boxed = [x if t is None else JVPTracer(trace, as_array(x), t) for x, t in zip(primals, tracers, strict=True)]
    try:
        outs = run_with_trace(trace, fun, boxed)
    finally:
        tape.alive = False
    primals_out, tangents_out = unzip_map(trace.unbox, outs)
    refuse_leaks(trace)
    linear = LinearTape(tape, tracers, tangents_out)
    if observed():
        notify(_report(linear))
    return primals_out, linear


def _report(tape: LinearTape) -> Event:
    """Return the event that reports the residuals of a linearisation to observers."""
    jaxpr, residuals = tape.to_jaxpr()
    debug = tape.trace.debug
    facts = {
        "transform": debug.transform if debug is not None else "linearize",
        "residual_bytes": sum(map(_stored_bytes, residuals)),
        "residuals": len(residuals),
        "equations": len(jaxpr.eqns),
    }
    return Event("linearize", debug.name if debug is not None else "", facts=facts)


def _stored_bytes(x: object) -> int:
    """Return the bytes of a value; count the whole batch behind a tracer, and both a primal and its tangent."""
    if isinstance(x, JVPTracer):
        return _stored_bytes(x.primal) + _stored_bytes(x.tangent)
    if isinstance(x, BatchTracer):
        return _stored_bytes(x.val)
    aval = get_aval(x)
    return aval.size * aval.dtype.itemsize
