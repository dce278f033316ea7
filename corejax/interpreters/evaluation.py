"""Evaluation, the interpreter at the bottom of the stack: `bind` computes.

    eval : (a -> b) -> a -> b

It has no tracers. Abstract evaluation (memoised) checks the operands and gives the types of the results; the impl rule
computes them on NumPy arrays; what it returns is boxed as `Array`s, after it was checked to be of the promised types.

Layers. What makes evaluation fast, or looks at what is evaluated, is not in this file. `EvalTrace.process_primitive`
and `EvalTrace.run_program` are slots: `set_layer` puts a layer in front of `evaluate` and `run_program` and takes it
away again. They are composed when a layer changes and never looked at when a primitive is evaluated.

Invariants: operands and results are read-only, and nothing else writes to a result's memory (`corejax.core.ownership`);
rules run with NumPy's floating-point warnings silent, because division by zero and overflow are StableHLO's.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from corejax import observe
from corejax.base.seams import Signal
from corejax.core.array import Array, as_array, device_buffer, host_value
from corejax.core.avals import ShapedArray, get_aval
from corejax.core.backends import Backend, backends
from corejax.core.ownership import SOLE, in_own_memory, owned
from corejax.core.primitive import Primitive, results_of_body
from corejax.core.trace import Trace, Tracer, escaped, set_bottom, state
from corejax.interpreters.impl_results import as_promised, check_count, types_of
from corejax.ir.interpret import host_literal, last_uses
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.messages.source_info import Source, describe_source, user_line, without_caller
from corejax.rules import Derivation, impl_rules, reporting_table
from corejax.rules.abstract_eval import promised
from corejax.rules.attribution import attribute_to_rule
from corejax.settings.memory_limit import LARGE, check_memory, keep_freed_memory

Evaluate = Callable[[Primitive, Sequence[Any], dict[str, Any]], list[Any]]
RunProgram = Callable[[Jaxpr, Sequence[Any]], list[Any]]

_ndarray = np.ndarray
keep_freed_memory()

# Impl rules that take NumPy arrays, ready to run. While a thread is watched they report (`reporting_table`).
host_rules: dict[Any, Callable[..., Any]] = {}
rules_version = 0  # grows with each change of an impl rule
rules_changed = Signal("impl rules")  # sent after it, with the primitive


class EvalTrace(Trace):
    """The bottom of every thread's stack.

    Attributes:
        process_primitive: `evaluate`, behind the layers that are set.
        run_program: `run_program`, behind the layers that are set.
    """

    __slots__ = ("process_primitive", "run_program")

    interpreter = "eval"

    process_primitive: Evaluate  # type: ignore[assignment]
    run_program: RunProgram

    def __init__(self) -> None:
        super().__init__(None)
        self.process_primitive = evaluate
        self.run_program = run_program


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Run the impl rule on the operands' NumPy arrays and box what it returns."""
    rule = host_rules.get(primitive)
    if rule is None:
        return evaluate_on_arrays(primitive, args, params)
    arrays = [x if type(x) is Array else as_operand(primitive, x) for x in args]
    avals_out = promised(primitive, tuple([x.aval for x in arrays]), params)
    for aval in avals_out or ():
        check_size(primitive, aval)
    if (backend := _backend_of_sharded(arrays)) is not None:
        return backend.evaluate(primitive, arrays, params)
    vals = [x._fetch() for x in arrays]
    try:
        out = run_quietly(rule, vals, params)
    except Exception as error:
        attribute_to_rule(error, primitive, state.source, "impl")
        raise
    if avals_out is None:
        avals_out = types_of(primitive, out)
    if primitive.multiple_results:
        check_count(primitive, out, len(avals_out))
        outs = list(out)
        del out
        return [_wrap(primitive, o, a) for o, a in zip(owned(outs, vals), avals_out, strict=True)]
    # The reference count tells whether the rule keeps the result: it is held in no other variable here.
    aval = avals_out[0]
    if type(out) is _ndarray and out.dtype is aval.dtype and out.shape == aval.shape:
        sole = getrefcount(out) <= SOLE
        if not sole or out.base is not None:
            out = in_own_memory(out, vals, sole)
    else:
        out = as_promised(primitive, out, aval)
    return [Array(out, aval)]


# -- programs --------------------------------------------------------------------------------------------------------


def run_program(
    jaxpr: Jaxpr, values: Sequence[Any], run_equation: Callable[[JaxprEqn, list[Any]], list[Any]] | None = None
) -> list[Any]:
    """Evaluate a program on NumPy arrays from end to end, nothing boxed in between.

    Args:
        jaxpr: the program.
        values: read-only NumPy arrays: its constants, then its arguments.
        run_equation: evaluates one equation; by default its impl rule does.

    Returns:
        NumPy arrays, read-only.
    """
    run_equation = run_equation or evaluate_equation
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is Var:
            return env[atom]
        value = host_literal(atom)
        value.setflags(write=False)
        return value

    for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        try:
            env.update(zip(eqn.outvars, run_equation(eqn, [read(v) for v in eqn.invars]), strict=True))
        except Exception as error:
            attribute_to_rule(error, eqn.primitive, eqn.source_info, "impl")
            raise
        for v in dead:
            del env[v]
    return [read(v) for v in jaxpr.outvars]


def evaluate_equation(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Evaluate one equation on NumPy arrays.

    Args:
        eqn: the equation.
        operands: read-only NumPy arrays.

    Returns:
        NumPy arrays of the types of its variables, read-only.
    """
    primitive, source = eqn.primitive, eqn.source_info
    for v in eqn.outvars:
        check_size(primitive, v.aval, source)
    rule = host_rules.get(primitive)
    if rule is None:
        arrays = [Array(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
        return [o._fetch() for o in evaluate_on_arrays(primitive, arrays, eqn.params)]
    out = rule(*operands, **eqn.params)
    if primitive.multiple_results:
        check_count(primitive, out, len(eqn.outvars), source)
        outs = list(out)
    else:
        outs = [out]
    del out
    found = [as_promised(primitive, o, v.aval, source) for o, v in zip(owned(outs, operands), eqn.outvars, strict=True)]
    for value in found:
        value.setflags(write=False)
    return found


# -- layers ----------------------------------------------------------------------------------------------------------


class Layer(NamedTuple):
    """What stands in front of evaluation: each function is given what runs behind it.

    Attributes:
        process: of `EvalTrace.process_primitive`.
        run_program: of `EvalTrace.run_program`; None leaves programs alone.
    """

    process: Callable[[Evaluate], Evaluate]
    run_program: Callable[[RunProgram], RunProgram] | None = None


# From the inside out. The engine computes the same results faster, without evaluating each primitive; `values` looks at
# results, `checks` at operations that the user asks for, `reports` tells watchers of each step.
_layers: dict[str, Layer | None] = {"engine": None, "values": None, "checks": None, "reports": None}
_composing = threading.Lock()


def set_layer(name: str, layer: Layer | None) -> None:
    """Put a layer in front of evaluation, or take it away.

    Args:
        name: "engine", "values", "checks" or "reports".
        layer: the layer; None for none.

    Raises:
        ValueError: there is no layer of that name.
    """
    if name not in _layers:
        raise ValueError(f"no layer {name!r}; layers are {', '.join(map(repr, _layers))}")
    with _composing:
        _layers[name] = layer
        process: Evaluate = evaluate
        run: RunProgram = run_program
        for found in _layers.values():
            if found is not None:
                process = found.process(process)
                run = found.run_program(run) if found.run_program is not None else run
        bottom.process_primitive, bottom.run_program = process, run


def is_plain() -> bool:
    """Whether a primitive bound now would be evaluated, and nothing looks at it or its results."""
    return state.trace is bottom and not observe.watched and _layers["values"] is None


def _reporting(below: Evaluate) -> Evaluate:
    def process(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        if observe.unreported(bottom, primitive):
            return observe.interpret(bottom, primitive, args, params)
        return below(primitive, args, params)

    return process


# -- operands and results --------------------------------------------------------------------------------------------


def check_size(primitive: Primitive, aval: ShapedArray, place: Source | None = None) -> None:
    """Check that a result fits into memory.

    Raises:
        MemoryError: it does not; names the primitive and the line of `place`, by default the user's.
    """
    if aval.nbytes > LARGE:
        line = user_line() if place is None else describe_source(place)
        result = f"the result of primitive {primitive.name!r} at {line}, an array of shape {aval.shape} and dtype"
        check_memory(aval.nbytes, f"{result} {aval.dtype.name},")


def _backend_of_sharded(arrays: Sequence[Array]) -> Backend | None:
    """Return the backend of the first operand whose parts are on several devices, or None."""
    for x in arrays:
        if x._host is None:
            buffer = device_buffer(x)
            backend = backends.of_buffer(buffer)
            if backend is not None and backend.is_spread(buffer):
                return backend
    return None


def _wrap(primitive: Primitive, out: Any, aval: ShapedArray) -> Array:
    """Box a result of an impl rule, which has to be of the promised type."""
    return Array(as_promised(primitive, out, aval), aval)


def as_operand(primitive: Primitive, x: Any) -> Array:
    """Convert an operand that is no `Array`.

    Raises:
        UnexpectedTracerError: it is a tracer, of a transformation that has ended.
        TypeError: it is no array.
    """
    if isinstance(x, Tracer):
        raise escaped(x, f"primitive {primitive.name!r}")
    try:
        aval = get_aval(x)
    except TypeError as error:
        what = without_caller(error)
        raise TypeError(f"operand of primitive {primitive.name!r}: {what}") from None
    # Through `as_array`, because the result of a rule may be a view of its operand.
    host = as_array(x)._fetch() if isinstance(x, np.ndarray) else host_value(x)
    host.setflags(write=False)
    return Array(host, aval)


def evaluate_on_arrays(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Evaluate a primitive whose impl rule takes `Array`s, or whose rule is not loaded yet."""
    for x in args:
        if type(x) is not Array:
            as_operand(primitive, x)
    rule = impl_rules.lookup(primitive)
    if primitive in host_rules:
        return bottom.process_primitive(primitive, args, params)
    arrays = [as_array(x) for x in args]
    avals_out = promised(primitive, tuple(x.aval for x in arrays), params)
    for aval in avals_out or ():
        check_size(primitive, aval)
    return run_on_arrays(rule, primitive, arrays, params, avals_out)


def run_on_arrays(
    rule: Callable[..., Any],
    primitive: Primitive,
    arrays: Sequence[Array],
    params: dict[str, Any],
    avals_out: tuple[ShapedArray, ...] | None,
) -> list[Any]:
    """Run an impl rule that takes `Array`s; its results are checked to be of the types `avals_out`."""
    previous = state.trace
    try:
        state.trace = bottom
        out = rule(*arrays, **params)
    except Exception as error:
        attribute_to_rule(error, primitive, state.source, "impl")
        raise
    finally:
        state.trace = previous
    if avals_out is None:
        avals_out = types_of(primitive, out)
    if primitive.multiple_results:
        check_count(primitive, out, len(avals_out))
        outs = list(out)
    elif type(out) is Array and out.aval is avals_out[0]:
        return [out]
    else:
        outs = [out]
    del out
    return [_boxed(primitive, o, aval) for o, aval in zip(owned(outs, ()), avals_out, strict=True)]


def _boxed(primitive: Primitive, out: Any, aval: ShapedArray) -> Array:
    if type(out) is Array and out.aval is aval:
        return out
    if type(out) is Array and out.aval.shape == aval.shape and out.aval.dtype == aval.dtype:
        return out._with_aval(aval)
    return _wrap(primitive, out, aval)


# -- rules -----------------------------------------------------------------------------------------------------------


class Quiet(threading.local):
    """The thread's context in which NumPy's floating-point warnings are silent.

    Running in a prepared context costs a tenth of entering `numpy.errstate` around each operation.

    Attributes:
        run: `run(fun, *args, **kwargs)` calls a function in it; None before the thread's first evaluation.
    """

    run: Any = None

    def new(self) -> Callable[..., Any]:
        """Make the thread's context; return `run`."""
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run
        return context.run


quiet = Quiet()


def run_quietly(fun: Callable[..., Any], operands: Sequence[Any], params: dict[str, Any] | None = None) -> Any:
    """Call `fun(*operands, **params)` with NumPy's floating-point warnings silent."""
    run = quiet.run or quiet.new()
    try:
        return run(fun, *operands, **params) if params else run(fun, *operands)
    except RuntimeError as error:
        from corejax.base.texts import message_of  # needed for an error only

        if "cannot enter context" not in message_of(error):
            raise
    # A rule inside another rule: the context is entered already, and silent.
    return fun(*operands, **params or {})


class _OnArrays:
    """Wrap an impl rule that takes `Array`s so that it accepts NumPy arrays, too."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        return self.fn(*map(as_array, arrays), **params)


@impl_rules.adapt.provide
def _as_declared(primitive: Any, fn: Callable[..., Any], flags: Any) -> Callable[..., Any]:
    return _OnArrays(fn) if flags.get("device", False) else fn


_unreported_rules = host_rules


def _on_rule_changed(primitive: Any) -> None:
    global rules_version
    rules_version += 1
    rule = impl_rules.ready(primitive)
    if rule is None or type(rule) is _OnArrays:
        _unreported_rules.pop(primitive, None)
    else:
        _unreported_rules[primitive] = rule
    rules_changed.send(primitive)


def _on_watched_changed() -> None:
    global host_rules
    host_rules = reporting_table(impl_rules, _unreported_rules)
    set_layer("reports", Layer(_reporting) if observe.watched else None)


impl_rules.changed.connect(_on_rule_changed)
observe.watched_changed.connect(_on_watched_changed)


def _impl_from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    body = primitive.decomposition
    if body is None:
        return None

    def impl(*arrays: Any, **params: Any) -> Any:
        outs = [as_array(o) for o in results_of_body(primitive, body(*arrays, **params))]
        return outs if primitive.multiple_results else outs[0]

    return impl


impl_rules.derivations.append(
    Derivation("decomposition", _impl_from_decomposition, needs="a decomposition", flags={"device": True})
)


bottom = EvalTrace()
set_bottom(bottom)
