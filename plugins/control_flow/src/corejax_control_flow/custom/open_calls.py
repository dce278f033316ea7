"""Calls of functions with custom rules, and their dispatch to interpreters.

If no transformation around a call stages, the call is *open*: the user's function and its rules run on the values of
these transformations. So Python control flow on the values works, and a rule runs only if it is needed. If a
transformation stages, the call is *closed*: it becomes an equation with the program as a parameter and the values that
the function closes over as its first operands.
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
from corejax_control_flow.custom.closed_over import explain

R = TypeVar("R")

__corejax_registers_for_caller__ = True  # rules registered here are attributed to the file of the primitive

# Rules that `defcall` derives from the called program, as custom rules do not concern them. A program that is
# transposed is linear already, so that custom rules for derivatives no longer apply.
PLAIN_RULES = ("impl", "abstract_eval", "transpose", "xla_translation")


class Closed(NamedTuple):
    """A closed call: its program, with `consts` as first arguments, and the value of the rule's parameter."""

    program: ClosedJaxpr
    consts: list[Any]
    rule: Any


class BatchedRule:
    """The batched rule of a closed call; all of its results are batched along axis 0."""

    only_for_derivatives = True

    def __init__(self, rule: Any, axis_size: int, dims: Sequence[int | None]) -> None:
        self.rule = rule
        self.axis_size = axis_size
        self.dims = list(dims)
        self.__name__ = f"vmap({getattr(rule, '__name__', 'rule')})"

    def same_as(self, other: BatchedRule, same: Callable[[Any, Any], bool]) -> bool:
        """Return whether another batched rule has the same rule and batch dims."""
        return (self.axis_size, self.dims) == (other.axis_size, other.dims) and same(self.rule, other.rule)


def call_primitive(
    name: str, param: str, batched_rule: type[BatchedRule], kind: type[Primitive] = Primitive, **options: Any
) -> Primitive:
    """Define a primitive that calls the program in its parameter `call_jaxpr`.

    Args:
        name: name of the primitive.
        param: name of the parameter that holds the custom rule for derivatives.
        batched_rule: class of the parameter's value in a batched call.
        kind: class of the primitive.
        **options: further arguments of `Primitive`.
    """
    primitive = kind(name, multiple_results=True, decomposition=inlining("call_jaxpr"), **options)
    defcall(primitive, "call_jaxpr", inline=True, rules=PLAIN_RULES)

    @vmap_rules.register(primitive)
    def vmap(axis_size: int, vals: Any, dims: Any, *, call_jaxpr: ClosedJaxpr, num_consts: int, **params: Any) -> Any:
        """Bind a call of the batched program with the batched rule."""
        batched, dims_out = batch_jaxpr(call_jaxpr, axis_size, dims, True)
        params[param] = batched_rule(params[param], axis_size, dims[num_consts:])
        return primitive.bind(*vals, call_jaxpr=batched, num_consts=num_consts, **params), dims_out

    return primitive


class Call:
    """An open call: a function of leaves with a custom rule.

    Attributes:
        primitive: primitive of the equation if the call is closed.
        transform: name of the decorator, for messages.
        fun: the user's function.
    """

    primitive: Primitive
    transform: str
    fun: Any

    def run(self, *leaves: Any) -> list[Any]:
        """Run the function."""
        raise NotImplementedError

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """Stage the call on operands of these types."""
        raise NotImplementedError

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """Return the parameters of the equation; for an open call, `program` is None and `rule` is the call itself."""
        raise NotImplementedError

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """Return the call on batches, below the batching trace."""
        raise NotImplementedError


class BatchedCall(Call):
    """A call on batches, below the batching trace. The function may close over batches, as the trace is still alive.

    Attributes:
        batched_rule: class of the batched rule of a closed call.
        dims_in, dims_out: batch dims of operands and results; `dims_out` is set when the call has run.
    """

    batched_rule: type[BatchedRule]

    def __init__(self, inner: Call, trace: BatchTrace, dims: list[int | None]) -> None:
        self.inner = inner
        self.trace = trace
        self.dims_in = dims
        self.dims_out: list[int | None] = []
        self.primitive, self.transform, self.fun = inner.primitive, inner.transform, inner.fun

    def on_trace(self, fun: Callable[..., R], *args: Any) -> R:
        """Call `fun(*args)` with the batching trace on top of the current trace.

        The batching trace may have been created on top of a differentiating trace. The function or its rule now runs
        below the differentiating trace, and cannot use closed-over values of it.
        """
        trace, parent = self.trace, self.trace.parent
        try:
            trace.parent = current_trace()
            with set_current_trace(trace):
                return fun(*args)
        finally:
            trace.parent = parent

    def run(self, *vals: Any) -> list[Any]:
        """Run the function on batches."""
        outs = self.on_trace(self.inner.run, *boxed(self.trace, vals, self.dims_in))
        outs, self.dims_out = unboxed(self.trace, outs)
        return outs

    def close(self, avals: Sequence[ShapedArray]) -> Closed:
        """Stage the call and batch its program."""
        mapped = [mapped_aval(a, d) for a, d in zip(avals, self.dims_in, strict=True)]
        program, consts, rule = self.inner.close(mapped)
        consts, const_dims = unboxed(self.trace, consts)
        size = self.trace.axis_size
        batched, self.dims_out = batch_jaxpr(program, size, [*const_dims, *self.dims_in], True)
        return Closed(batched, consts, self.batched_rule(rule, size, self.dims_in))

    def params(self, program: ClosedJaxpr | None, rule: Any, num_consts: int) -> dict[str, Any]:
        """Return the parameters of the inner call's equation."""
        return self.inner.params(program, rule, num_consts)

    def batched(self, trace: BatchTrace, dims: list[int | None]) -> BatchedCall:
        """Return the call on batches of batches."""
        return type(self)(self, trace, dims)


def bind_call(call: Call, leaves: Sequence[Any]) -> list[Any]:
    """Run a call, or record it if a trace stages.

    The traces between the top and evaluation are visited in order, and each processes the call: a JVP trace runs the
    rule, a batching trace runs the call below itself on batches, and the bottom runs the function.
    """
    trace: Trace = current_trace()
    if not evaluates(trace):
        return _bind_closed(call, leaves, trace)
    trace = _interpreter(trace, leaves)
    if type(trace) is JVPTrace:
        return trace.process_primitive(call.primitive, leaves, call.params(None, call, 0))
    if type(trace) is BatchTrace:
        vals, dims = unboxed(trace, leaves)
        inner = call.batched(trace, dims)
        with set_current_trace(trace.parent):
            outs = bind_call(inner, vals)
        return boxed(trace, outs, inner.dims_out)
    if trace is not bottom_trace():
        return _bind_closed(call, leaves, trace)
    if any(isinstance(x, Tracer) for x in leaves):  # the tracer has escaped; its first use raises the error
        return call.run(*leaves)
    try:
        with set_current_trace(trace):
            return [as_array(x) for x in call.run(*map(as_array, leaves))]
    except Exception as error:
        explain(error, call.transform, fun_name(call.fun))
        raise


def is_plain(args: Sequence[Any], kwargs: Any) -> bool:
    """Return whether no transformation is active and all arguments are arrays, so that no rule is needed."""
    return current_trace() is bottom_trace() and not kwargs and all(type(x) is Array for x in args)


def evaluates(trace: Trace) -> bool:
    """Return whether the lowest trace below `trace` evaluates, and does not stage."""
    lowest = trace
    while lowest.parent is not None:
        lowest = lowest.parent
    return lowest is bottom_trace()


def _interpreter(trace: Trace, leaves: Sequence[Any]) -> Trace:
    """Return the first trace from the top that must process the call: a batching trace, or the trace of a leaf.

    The function may close over a batch, hence every batching trace counts. It may not close over a value that is being
    differentiated, as its rule has no tangent for it.
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
    """Stage a call; return its program, with closed-over values as first arguments, and these values."""
    jaxpr, consts = stage(call.run, avals, DebugInfo(call.fun, call.transform))
    return close_over_consts(jaxpr), consts


def boxed(trace: BatchTrace, vals: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Box values as tracers of a batching trace."""
    return [x if d is None else BatchTracer(trace, as_array(x), d) for x, d in zip(vals, dims, strict=True)]


def unboxed(trace: BatchTrace, xs: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """Unbox the tracers of a batching trace to values and batch dims."""
    pairs = [trace.unbox(x) for x in xs]
    return [x for x, _ in pairs], [d for _, d in pairs]
