"""Evaluation, the interpreter at the bottom of the stack: `bind` computes.

    eval : (a -> b) -> a -> b

It has no tracers. For each primitive, abstract evaluation (memoised) checks the operands and infers the types of the
results; the impl rule computes the results on NumPy arrays; these are checked against the types and boxed as `Array`s.

Layers. This file contains neither fast paths nor checks of values. `EvalTrace.process_primitive` and
`EvalTrace.run_program` are attributes, and `set_layer` composes them from `evaluate`, `run_program` and the active
layers (a faster engine, checks, reports) whenever a layer changes. Evaluation itself tests no flags.

Invariants. Operands and results are read-only, and no other code writes to a result's memory; see `arrays.ownership`.
Rules run without NumPy's floating-point warnings, because division by zero and overflow have results in StableHLO.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from corejax import observe
from corejax.arrays.array import Array, as_array, backend_of_parts
from corejax.arrays.array import boxed as boxed
from corejax.arrays.ownership import owned
from corejax.base.texts import message_of
from corejax.core.avals import Avals, FlatFun, Operands, Params, ShapedArray
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace, Tracer, escaped, set_bottom, state
from corejax.core.value_types import Packed
from corejax.errors import CorejaxError
from corejax.interpreters.impl_results import as_promised, check_count, types_of
from corejax.ir.interpret import host_literal, last_uses
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.messages.source_info import describe_source, user_line, without_caller
from corejax.rules import RuleFn, impl_rules
from corejax.rules.abstract_eval import promised
from corejax.rules.attribution import attribute_to_rule
from corejax.rules.run_rule import fits, run_rule
from corejax.settings.memory_limit import LARGE, check_memory

Evaluate = Callable[[Primitive, Sequence[Any], dict[str, Any]], list[Any]]
RunProgram = Callable[[Jaxpr, Sequence[Any]], list[Any]]

_ndarray = np.ndarray
_BOXES = (Array, Packed)

# Primitives with an impl rule that takes `Array`s rather than NumPy arrays.
_takes_arrays: set[Any] = set()


class EvalTrace(Trace):
    """The bottom of every thread's stack.

    Attributes:
        process_primitive: `evaluate`, behind the active layers.
        run_program: `run_program`, behind the active layers.
    """

    __slots__ = ("process_primitive", "run_program")

    interpreter = "eval"

    process_primitive: Evaluate  # type: ignore[assignment]  # an attribute here, a method of other traces
    run_program: RunProgram

    def __init__(self) -> None:
        super().__init__(None)
        self.process_primitive = evaluate
        self.run_program = run_program


def evaluate(primitive: Primitive, args: Operands, params: Params) -> list[Any]:
    """Run the impl rule on the operands and box what it returns."""
    arrays = [x if type(x) is Array else as_operand(primitive, x) for x in args]
    rule = impl_rules.table.get(primitive) or impl_rules.lookup(primitive)
    avals_out = promised(primitive, tuple([x.aval for x in arrays]), params)
    for aval in avals_out or ():
        check_size(primitive, aval)
    return evaluate_arrays(rule, primitive, arrays, params, avals_out)


def evaluate_arrays(
    rule: RuleFn, primitive: Primitive, arrays: Sequence[Array], params: Params, avals_out: Avals | None
) -> list[Array]:
    """Run an impl rule as `run_impl` does, or let the backend of a sharded operand evaluate; box the results."""
    if primitive in _takes_arrays:
        return box_results(run_impl(rule, primitive, arrays, params, avals_out))
    for x in arrays:
        if x._host is None and (backend := backend_of_parts(x)) is not None:
            return backend.evaluate(primitive, arrays, params)
    return box_results(run_impl(partial(run_quietly, rule), primitive, [x._fetch() for x in arrays], params, avals_out))


def run_impl(
    rule: RuleFn, primitive: Primitive, operands: Operands, params: Params, avals_out: Avals | None
) -> list[tuple[Any, ShapedArray]]:
    """Run an impl rule and check its results.

    Args:
        rule: the rule, ready to run.
        primitive: the primitive that is applied.
        params: its parameters.
        operands: read-only NumPy arrays, or `Array`s for a rule that takes these.
        avals_out: types of the results; None if the primitive has no abstract-eval rule.

    Returns:
        The results, NumPy arrays or `Array`s, and their types.
    """
    out = run_rule(impl_rules, primitive, rule, bottom, operands, params)
    if avals_out is None:
        avals_out = types_of(primitive, out)
    if primitive.multiple_results:
        check_count(primitive, out, len(avals_out))
        outs = list(out)
    else:
        outs = [out]
    del out  # `owned` needs the reference counts without this variable
    outs = owned(outs, [x for x in operands if type(x) is _ndarray])
    return [
        (o if type(o) in _BOXES and fits(o, aval) else as_promised(primitive, o, aval), aval)
        for o, aval in zip(outs, avals_out, strict=True)
    ]


def box_results(results: Sequence[tuple[object, ShapedArray]]) -> list[Array]:
    """Box what `run_impl` returns."""
    return [
        boxed(x, aval) if type(x) is not Array else x if x.aval is aval else x._with_aval(aval) for x, aval in results
    ]


# -- programs --------------------------------------------------------------------------------------------------------


def run_program(
    jaxpr: Jaxpr, values: Sequence[Any], run_equation: Callable[[JaxprEqn, list[Any]], list[Any]] | None = None
) -> list[Any]:
    """Evaluate a program on NumPy arrays without boxing; free each intermediate value after its last use.

    Args:
        jaxpr: the program.
        values: read-only NumPy arrays: its constants, then its arguments.
        run_equation: evaluates one equation; by default by its impl rule.

    Returns:
        NumPy arrays, read-only.
    """
    run_equation = run_equation or evaluate_equation
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))

    def read(atom: object) -> Any:
        if type(atom) is Var:
            return env[atom]
        value = host_literal(atom)
        value.setflags(write=False)
        return value

    previous = state.source
    try:
        for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            state.source = eqn.source_info
            env.update(zip(eqn.outvars, run_equation(eqn, [read(v) for v in eqn.invars]), strict=True))
            for v in dead:
                del env[v]
    except Exception as error:
        attribute_to_rule(error, eqn.primitive, eqn.source_info, "impl")
        raise
    finally:
        state.source = previous
    return [read(v) for v in jaxpr.outvars]


def evaluate_equation(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Evaluate one equation on read-only NumPy arrays and return read-only arrays of the types of its outputs."""
    primitive, avals = eqn.primitive, [v.aval for v in eqn.outvars]
    for aval in avals:
        check_size(primitive, aval)
    rule = impl_rules.table.get(primitive) or impl_rules.lookup(primitive)
    if primitive in _takes_arrays:
        operands = [boxed(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
    outs = [x._fetch() if type(x) is Array else x for x, _ in run_impl(rule, primitive, operands, eqn.params, avals)]
    for out in outs:
        out.setflags(write=False)
    return outs


# -- layers ----------------------------------------------------------------------------------------------------------


class Layer(NamedTuple):
    """Functions that wrap evaluation; each takes the function that it wraps.

    Attributes:
        process: wraps `EvalTrace.process_primitive`.
        run_program: wraps `EvalTrace.run_program`; None if the layer does not change how programs run.
    """

    process: Callable[[Evaluate], Evaluate]
    run_program: Callable[[RunProgram], RunProgram] | None = None


# From the inside out: the engine computes the same results faster; `values` checks results for NaNs, `checks` runs
# plugins' checks before operations, `reports` reports steps to observers, `abandon` ends programs that are not needed.
_layers: dict[str, Layer | None] = dict.fromkeys(("engine", "values", "checks", "reports", "abandon"))
_composing = threading.Lock()


def set_layer(name: str, layer: Layer | None) -> None:
    """Set the layer "engine", "values", "checks", "reports" or "abandon" in front of evaluation; None removes it.

    Raises:
        ValueError: `name` is not one of these.
    """
    if name not in _layers:
        raise ValueError(f"no layer {name!r}; layers are {', '.join(map(repr, _layers))}")
    with _composing:
        _layers[name] = layer
        process: Evaluate = evaluate
        run: RunProgram = run_program
        for active in _layers.values():
            if active is not None:
                process = active.process(process)
                run = active.run_program(run) if active.run_program is not None else run
        bottom.process_primitive, bottom.run_program = process, run


def _reporting(below: Evaluate) -> Evaluate:
    return partial(observe.interpret, bottom, below)


# -- operands and results --------------------------------------------------------------------------------------------


def check_size(primitive: Primitive, aval: ShapedArray) -> None:
    """Check that a result fits into memory.

    Raises:
        MemoryError: it does not; the message names the primitive and the user's line.
    """
    if aval.nbytes > LARGE:
        line = user_line() if state.source is None else describe_source(state.source)
        result = f"the result of primitive {primitive.name!r} at {line}, an array of shape {aval.shape} and dtype"
        check_memory(aval.nbytes, f"{result} {aval.dtype.name},")


def as_operand(primitive: Primitive, x: object) -> Array:
    """Convert an operand to an `Array`.

    Raises:
        UnexpectedTracerError: it is a tracer, which has escaped from its transformation.
        TypeError: it is not an array.
    """
    if isinstance(x, Tracer):
        raise escaped(x, f"primitive {primitive.name!r}")
    try:
        return as_array(x)  # type: ignore[return-value]  # no tracer, so an array
    except CorejaxError:
        raise
    except TypeError as error:
        problem = without_caller(error)
        raise TypeError(f"operand of primitive {primitive.name!r}: {problem}") from None


# -- rules -----------------------------------------------------------------------------------------------------------


class Quiet(threading.local):
    """The thread's context without NumPy's floating-point warnings.

    NumPy keeps its error state in a context variable. Calling a rule in a context that has been prepared once costs a
    tenth of entering `numpy.errstate` for each operation.

    Attributes:
        run: `run(fun, *args, **kwargs)` calls a function in the context; None before the thread's first evaluation.
    """

    run: Any = None

    def new(self) -> RuleFn:
        """Create the thread's context and return `run`."""
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run
        return context.run


quiet = Quiet()


def run_quietly(fun: Callable[..., object], /, *operands: object, **params: object) -> Any:
    """Call a function without NumPy's floating-point warnings."""
    run = quiet.run or quiet.new()
    try:
        return run(fun, *operands, **params)
    except RuntimeError as error:
        if "cannot enter context" not in message_of(error):
            raise
    # The rule runs inside another rule, which has entered the context already.
    return fun(*operands, **params)


class _OnArrays:
    """Wrap an impl rule that takes `Array`s so that it also accepts NumPy arrays."""

    def __init__(self, fn: RuleFn) -> None:
        self.fn = fn

    def __call__(self, *arrays: object, **params: object) -> Any:
        return self.fn(*map(as_array, arrays), **params)


@impl_rules.adapt.provide
def _as_declared(primitive: object, fn: RuleFn, flags: Any) -> RuleFn:
    return _OnArrays(fn) if flags.get("device", False) else fn


@impl_rules.changed.connect
def _on_rule_changed(primitive: Primitive) -> None:
    (_takes_arrays.add if type(impl_rules.ready(primitive)) is _OnArrays else _takes_arrays.discard)(primitive)


def host_rule(primitive: Primitive) -> RuleFn | None:
    """Return the impl rule ready to run on NumPy arrays; None if it takes `Array`s, or is missing."""
    rule = impl_rules.table.get(primitive) or impl_rules.find(primitive)
    return None if primitive in _takes_arrays else rule


@observe.watched_changed.connect
def _on_watched_changed() -> None:
    set_layer("reports", Layer(_reporting) if observe.watched else None)


@impl_rules.derivations.from_decomposition(device=True)
def _impl_of_decomposition(primitive: Primitive, body: FlatFun) -> RuleFn:
    def impl(*arrays: object, **params: object) -> Any:
        outs = [as_array(o) for o in body(*arrays, **params)]
        return outs if primitive.multiple_results else outs[0]

    return impl


bottom = EvalTrace()
set_bottom(bottom)
