"""Calls of functions with rules of their own, and the interpreter that each goes to.

Where everything around a call evaluates, the call is *open*: the user's function and its rules run on the values of the
transformations around it. So Python control flow on them works, and a rule runs only if it is needed. Where something
stages, the call is *closed*: an equation whose program is a parameter, and whose first operands are the values that the
function closes over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from corejax.extend import (
    Array,
    ClosedJaxpr,
    DebugInfo,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    as_array,
    batch_jaxpr,
    bottom_trace,
    close_over_consts,
    current_trace,
    defcall,
    fun_name,
    get_aval,
    inlining,
    set_current_trace,
    stage,
    vmap_rules,
)
from corejax.extend.transforms import BatchTrace, BatchTracer, JVPTrace, mapped_aval
from corejax_control_flow.custom.closed_over import explained

R = TypeVar("R")

__corejax_registers_for_caller__ = True  # the provenance of a primitive and its rules is the primitive's file

# Rules of an equation that calls a program, by `defcall`, whatever rules of its own the function has. Transposed, the
# program is linear, and those rules have no more to say.
PLAIN_RULES = ("impl", "abstract_eval", "transpose", "xla_translation")


class Closed(NamedTuple):
    """A call as an equation: its program, whose first arguments are `consts`, and the rule of its parameters."""

    program: ClosedJaxpr
    consts: list[Any]
    rule: Any


class BatchedRule:
    """A closed call's rule on batches; all that it gives is batched along axis 0."""

    only_for_derivatives = True

    def __init__(self, rule: Any, axis_size: int, dims: Sequence[int | None]) -> None:
        self.rule = rule
        self.axis_size = axis_size
        self.dims = list(dims)
        self.__name__ = f"vmap({getattr(rule, '__name__', 'rule')})"

    def same_as(self, other: BatchedRule, same: Callable[[Any, Any], bool]) -> bool:
        """Whether another one has the same rule for the same batches."""
        return (self.axis_size, self.dims) == (other.axis_size, other.dims) and same(self.rule, other.rule)


def call_primitive(name: str, param: str, batched_rule: type[BatchedRule], **options: Any) -> Primitive:
    """Make a primitive that calls the program in its parameter `call_jaxpr`.

    Args:
        name: of the primitive.
        param: the parameter with the rule, which is for derivatives; of a batched call that is a `batched_rule`.
        batched_rule: a class.
        options: as of `Primitive`.
    """
    primitive = Primitive(name, multiple_results=True, decomposition=inlining("call_jaxpr"), **options)
    defcall(primitive, "call_jaxpr", inline=True, rules=PLAIN_RULES)

    @vmap_rules.register(primitive)
    def vmap(axis_size: int, vals: Any, dims: Any, *, call_jaxpr: ClosedJaxpr, num_consts: int, **params: Any) -> Any:
        """A call of the batched program with the batched rule."""
        batched, dims_out = batch_jaxpr(call_jaxpr, axis_size, dims, True)
        params[param] = batched_rule(params[param], axis_size, dims[num_consts:])
        return primitive.bind(*vals, call_jaxpr=batched, num_consts=num_consts, **params), dims_out

    return primitive


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
    """A call on batches, below the batching trace. The function may close over batches, for the trace is still alive.

    Attributes:
        batched_rule: class of a closed call's rule on batches.
        dims_in, dims_out: batching dimensions of operands and results; the latter once it has run.
    """

    batched_rule: type[BatchedRule]

    def __init__(self, inner: Call, trace: BatchTrace, dims: list[int | None]) -> None:
        self.inner = inner
        self.trace = trace
        self.dims_in = dims
        self.dims_out: list[int | None] = []
        self.primitive, self.transform, self.fun = inner.primitive, inner.transform, inner.fun

    def on_trace(self, fun: Callable[..., R], *args: Any) -> R:
        """`fun(*args)` with the batching trace on top of the current one.

        The batching trace may have been made on top of a trace that differentiates. Here the function or its rule runs
        below that trace, and cannot use what it closes over of it.
        """
        trace, parent = self.trace, self.trace.parent
        try:
            trace.parent = current_trace()
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
        return Closed(batched, consts, self.batched_rule(rule, size, self.dims_in))

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """As the call's."""
        return self.inner.params(program, rule, num_consts)

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """A batch of batches."""
        return type(self)(self, trace, dims)


def bind_call(call: Call, leaves: Sequence[Any]) -> list[Any]:
    """Run a call or, where something stages, record it."""
    trace: Trace = current_trace()
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
    if any(isinstance(x, Tracer) for x in leaves):  # its trace has ended: what uses it raises the error
        return call.run(*leaves)
    with set_current_trace(trace), explained(call.transform, fun_name(call.fun)):
        return [as_array(x) for x in call.run(*map(as_array, leaves))]


def is_plain(args: Sequence[Any], kwargs: Any) -> bool:
    """Whether nothing transforms and all arguments are arrays, so that the function may be called as it is."""
    return current_trace() is bottom_trace() and not kwargs and all(type(x) is Array for x in args)


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
    return [x if d is None else BatchTracer(trace, as_array(x), d) for x, d in zip(vals, dims, strict=True)]


def unboxed(trace: BatchTrace, xs: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """Values and batching dimensions of a batching trace's tracers."""
    pairs = [trace.unbox(x) for x in xs]
    return [x for x, _ in pairs], [d for _, d in pairs]
