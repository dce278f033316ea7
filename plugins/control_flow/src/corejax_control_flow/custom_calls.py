"""Calls of functions with rules of their own, and which interpreter they go to.

A call is *open* while everything around it evaluates: the user's function and rules run on the values that the
transformations at hand see, so Python control flow on them works, and a rule runs only if it is needed. It is
*closed*, an equation whose program is a parameter, where something stages: one more operand for each value that the
function closes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from corejax.extend import (
    Array,
    BatchTrace,
    BatchTracer,
    ClosedJaxpr,
    DebugInfo,
    JVPTrace,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    UnexpectedTracerError,
    as_array,
    batch_jaxpr,
    bottom_trace,
    close_over_consts,
    fun_name,
    get_aval,
    mapped_aval,
    set_current_trace,
    stage,
    trace_state,
)

R = TypeVar("R")

# Rules of an equation that calls a program, by `defcall`, whatever rules of its own the function has. Transposed, the
# program is linear, and those rules have no more to say.
PLAIN_RULES = ("impl", "abstract_eval", "transpose", "xla_translation")


class Closed(NamedTuple):
    """A call as an equation: its program, whose first arguments are `consts`, and the rule of its parameters."""

    program: ClosedJaxpr
    consts: list[Any]
    rule: Any


class Call:
    """An open call: a function of leaves with a rule.

    Attributes:
        primitive: what the equation applies.
        transform: name of the decorator, for messages.
        fun: the user's function.
    """

    primitive: Primitive
    transform: str
    fun: Any

    def run(self, *leaves: Any) -> list[Any]:
        """The function itself."""
        raise NotImplementedError

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """The call as an equation on operands of these types."""
        raise NotImplementedError

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """Parameters of the equation; of an open call the program is None and the rule the call itself."""
        raise NotImplementedError

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """The call one level further down, on batches."""
        raise NotImplementedError


class BatchedCall(Call):
    """A call below a batching trace that is alive: what the function closes over may be a batch of that trace.

    Attributes:
        dims_in, dims_out: batching dimensions of operands and results; the latter once it has run.
    """

    def __init__(self, inner: Call, trace: BatchTrace, dims: list[int | None]) -> None:
        self.inner = inner
        self.trace = trace
        self.dims_in = dims
        self.dims_out: list[int | None] = []
        self.primitive, self.transform, self.fun = inner.primitive, inner.transform, inner.fun

    def on_trace(self, fun: Callable[..., R], *args: Any) -> R:
        """`fun(*args)` with the batching trace on top of the current one.

        It may have been made on top of another, one that differentiates: below that the function is only evaluated, or
        its rule is run, and what it closes over of that trace is nothing that it can use.
        """
        trace, parent = self.trace, self.trace.parent
        try:
            trace.parent = trace_state.trace
            with set_current_trace(trace):
                return fun(*args)
        finally:
            trace.parent = parent

    def run(self, *vals: Any) -> list[Any]:
        """The function on batches."""
        outs = self.on_trace(self.inner.run, *boxed(self.trace, vals, self.dims_in))
        outs, self.dims_out = unboxed(self.trace, outs)
        return outs

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """The batched program of the call as an equation."""
        mapped = [mapped_aval(a, d) for a, d in zip(avals, self.dims_in, strict=True)]
        program, consts, rule = self.inner.close(mapped)
        consts, const_dims = unboxed(self.trace, consts)
        size = self.trace.axis_size
        batched, self.dims_out = batch_jaxpr(program, size, [*const_dims, *self.dims_in], True)
        return Closed(batched, consts, self.closed_rule(rule, size, self.dims_in))

    def closed_rule(self, rule: Any, size: int, dims: Sequence[int | None]) -> Any:
        """A closed call's rule on batches."""
        raise NotImplementedError

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """As the call's."""
        return self.inner.params(program, rule, num_consts)

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """A batch of batches."""
        return type(self)(self, trace, dims)


def bind_call(call: Call, leaves: Sequence[Any]) -> list[Any]:
    """Run a call or, where something stages, record it."""
    trace: Trace = trace_state.trace
    if not evaluates(trace):
        return _bind_closed(call, leaves, trace)
    trace = _interpreter(trace, leaves)
    if type(trace) is JVPTrace:
        return trace.process_primitive(call.primitive, leaves, call.params(None, call, 0))
    if type(trace) is BatchTrace:
        vals, dims = unboxed(trace, leaves)
        inner = call.batched(trace, dims)
        with set_current_trace(trace.parent):  # type: ignore[arg-type]
            outs = bind_call(inner, vals)
        return boxed(trace, outs, inner.dims_out)
    if trace is not bottom_trace():
        return _bind_closed(call, leaves, trace)
    if any(isinstance(x, Tracer) for x in leaves):  # one that is gone: whatever uses it says so
        return call.run(*leaves)
    with set_current_trace(trace), explained(call.transform, fun_name(call.fun)):
        return [as_array(x) for x in call.run(*map(as_array, leaves))]


def is_plain(args: Sequence[Any], kwargs: Any) -> bool:
    """Whether nothing transforms and all that is passed are arrays: the function may be called as it is."""
    return trace_state.trace is bottom_trace() and not kwargs and all(type(x) is Array for x in args)


def evaluates(trace: Trace) -> bool:
    """Whether a trace ends in evaluation, not in staging."""
    last = trace
    while last.parent is not None:
        last = last.parent
    return last is bottom_trace()


def _interpreter(trace: Trace, leaves: Sequence[Any]) -> Trace:
    """The first trace from the top that has to know of the call: one that a leaf belongs to, or that batches.

    The function may close over a batch, but not over a value that is differentiated, for which there is no rule.
    """
    while trace.parent is not None:
        if type(trace) is BatchTrace or any(isinstance(x, Tracer) and x._trace is trace for x in leaves):
            break
        trace = trace.parent
    return trace


def _bind_closed(call: Call, leaves: Sequence[Any], trace: Trace) -> list[Any]:
    program, consts, rule = call.close([get_aval(x) for x in leaves])
    with set_current_trace(trace):
        params = call.params(program, rule, len(consts))
        return trace.process_primitive(call.primitive, [*consts, *leaves], params)


def staged(call: Call, avals: Sequence[ShapedArray]) -> tuple[ClosedJaxpr, list[Any]]:
    """The program of a call, whose first arguments are what its function closes over, and those values."""
    jaxpr, consts = stage(call.run, avals, DebugInfo(call.fun, call.transform))
    return close_over_consts(jaxpr), consts


def boxed(trace: BatchTrace, vals: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Values as a batching trace's tracers."""
    return [x if d is None else BatchTracer(trace, x, d) for x, d in zip(vals, dims, strict=True)]


def unboxed(trace: BatchTrace, xs: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """Values and batching dimensions of a batching trace's tracers."""
    pairs = [trace.unbox(x) for x in xs]
    return [x for x, _ in pairs], [d for _, d in pairs]


@contextmanager
def explained(transform: str, name: str) -> Iterator[None]:
    """A value that the function or a rule closes over, and cannot, is named as what it is."""
    try:
        yield
    except UnexpectedTracerError as error:
        if isinstance(error, ClosedOverError):
            raise
        raise ClosedOverError(
            f"{transform} function {name}, or a rule of it, closes over a value of a transformation around "
            "the call, for which it has no derivative there (or which is gone by the time that the rule runs). Pass "
            "the value as an argument; in reverse mode a rule's residuals carry it to the backward pass; "
            "closure_convert does so for functions that are arguments themselves."
        ) from error


class ClosedOverError(UnexpectedTracerError):
    """A function with rules of its own, or one of its rules, closes over a traced value that it cannot use."""


def refuse_closed_over(transform: str, name: str, tangents: Sequence[Any]) -> None:
    """Refuse tangents of what a function closes over.

    Raises:
        ClosedOverError: there is one.
    """
    moving = [t for t in tangents if t is not None]
    if moving:
        raise ClosedOverError(
            f"{transform} function {name} closes over a value ({_shown(moving[0])}) that is being differentiated, but "
            "its rule only says how to differentiate with respect to arguments. Pass the value as an argument."
        )


def refuse_closed_over_results(transform: str, name: str, results: Sequence[Any]) -> None:
    """Refuse what a rule returns without having computed with it: values of traces that are gone or above the rule's.

    Raises:
        ClosedOverError: there is one.
    """
    for x in results:
        if isinstance(x, Tracer) and (not x._trace.alive or _is_above(x._trace, trace_state.trace)):
            raise ClosedOverError(
                f"a rule of {transform} function {name} returns a value ({_shown(x)}) that it closes over, of a "
                "transformation around the call. Pass the value as an argument; a rule's residuals carry it to the "
                "backward pass."
            )


def _shown(x: Any) -> str:
    return get_aval(x).str_short(short_dtypes=False)


def _is_above(trace: Trace, other: Trace) -> bool:
    below = trace.parent
    while below is not None and below is not other:
        below = below.parent
    return below is not None
