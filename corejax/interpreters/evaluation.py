"""Evaluation, the interpreter at the bottom of the stack: `bind` computes.

    eval : (a -> b) -> a -> b

Abstract evaluation (memoised) validates the operands and types the result; the impl rule computes it on NumPy
arrays. A program is evaluated on NumPy arrays from end to end. Rules run in a context of their own in which
NumPy's floating-point warnings are silent: division by zero and overflow are StableHLO's, not warnings.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.array import Array, as_array, host_value
from corejax.avals import ShapedArray, get_aval
from corejax.ir.interpret import last_uses, set_concrete_runner
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.memory import LARGE, check_memory
from corejax.primitive import Primitive, results_of_body
from corejax.rules import Derivation, impl_rules
from corejax.source_info import describe, user_line
from corejax.trace import Trace, Tracer, escaped, set_bottom, state

_ndarray = np.ndarray
_host_rules: dict[Any, Callable[..., Any]] = {}
_device_rules: dict[Any, Callable[..., Any]] = {}


def _split_by_flag(primitive: Any, fn: Callable[..., Any], flags: Any) -> Callable[..., Any]:
    device = flags.get("device", False)
    _host_rules.pop(primitive, None)
    _device_rules.pop(primitive, None)
    (_device_rules if device else _host_rules)[primitive] = fn
    return fn


def _forget(primitive: Any) -> None:
    if primitive not in impl_rules.table:
        _host_rules.pop(primitive, None)
        _device_rules.pop(primitive, None)


impl_rules.adapt = _split_by_flag
impl_rules.on_change = _forget


class _Quiet(threading.local):
    run: Any = None  # calls a rule with NumPy's warnings silent; made at the thread's first evaluation


_quiet = _Quiet()


def _new_context() -> Callable[..., Any]:
    """A function that calls a rule with NumPy's floating-point warnings silent, kept by the thread.

    Running in a prepared context costs a tenth of entering `numpy.errstate` around each operation.
    """
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    _quiet.run = context.run
    return context.run


def _nested(error: RuntimeError, rule: Callable[..., Any], vals: Sequence[Any], params: dict[str, Any]) -> Any:
    """A rule inside another rule: the context is entered already, and silent, so it is simply called."""
    if "cannot enter context" not in str(error):
        raise error
    return rule(*vals, **params)


class EvalTrace(Trace):
    """The bottom of every thread's stack."""

    __slots__ = ()

    interpreter = "eval"

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Compute: NumPy values to the impl rule, `Array`s back."""
        rule = _host_rules.get(primitive)
        if rule is None:
            return _evaluate_on_arrays(primitive, args, params)
        vals = []
        avals = []
        for x in args:
            if type(x) is Array:
                host = x._host
                vals.append(x._fetch() if host is None else host)
                avals.append(x.aval)
            else:
                aval, host = _convert(primitive, x)
                vals.append(host)
                avals.append(aval)
        key = tuple(avals)
        # What `primitive.abstract` does first, without the call: this is the path of every eager operation.
        avals_out = None if params else primitive._memo.get(key)
        if avals_out is None:
            avals_out = primitive.abstract(key, params)
            for aval in avals_out:
                if aval.nbytes > LARGE:
                    _check_size(primitive, aval)
        run = _quiet.run or _new_context()
        try:
            out = run(rule, *vals, **params)
        except RuntimeError as error:
            out = _nested(error, rule, vals, params)
        if primitive.multiple_results:
            _check_results(primitive, out, avals_out)
            return [_wrap(primitive, o, a) for o, a in zip(out, avals_out, strict=True)]
        aval = avals_out[0]
        if type(out) is _ndarray and out.dtype is aval.dtype and out.shape == aval.shape:
            return [Array(out, aval)]
        return [_wrap(primitive, out, aval)]


def _check_size(primitive: Primitive, aval: ShapedArray, place: Any = None) -> None:
    if aval.nbytes > LARGE:
        line = user_line() if place is None else describe(place)
        result = f"the result of primitive {primitive.name!r} at {line}, an array of shape {aval.shape} and dtype"
        check_memory(aval.nbytes, f"{result} {aval.dtype.name},")


_PYTHON_NUMBERS = {bool: "b", int: "iuVfc", float: "Vfc", complex: "c"}  # type -> kinds of dtypes that take it


def _from_python(x: Any, aval: ShapedArray) -> np.ndarray[Any, Any]:
    """An impl rule's result that is no array: Python numbers take the promised dtype if that can hold them."""
    if type(x) in _PYTHON_NUMBERS and aval.dtype.kind in _PYTHON_NUMBERS[type(x)]:
        with contextlib.suppress(OverflowError, ValueError):
            return np.asarray(x, aval.dtype)
    return np.asarray(x)


def _wrap(primitive: Primitive, out: Any, aval: ShapedArray) -> Array:
    """Box an impl rule's result, which has to be of the type that abstract evaluation promised."""
    if isinstance(out, Tracer):
        raise escaped(out, f"the impl rule of primitive {primitive.name!r}")
    given = out
    if type(out) is not np.ndarray:
        out = given._fetch() if type(given) is Array else _from_python(given, aval)
    if out.dtype != aval.dtype or out.shape != aval.shape:
        got = f"{out.dtype.name}[{','.join(map(str, out.shape))}]"
        if out.dtype == object or out.dtype.kind in "US":
            got = "None" if given is None else f"{given!r} of type {type(given).__name__}"
        elif type(given) in _PYTHON_NUMBERS:
            got = f"{given!r}, of type {type(given).__name__},"
        raise TypeError(
            f"primitive {primitive.name!r}: its impl rule gives {got} where its abstract-eval rule promises "
            f"{aval.str_short(short_dtypes=False)}; one of the two (from {primitive.provenance.owner}) is wrong"
        )
    return Array(out, aval)


def _check_results(primitive: Primitive, outs: Any, avals_out: Sequence[ShapedArray]) -> None:
    """Check that the impl rule of a primitive with several results gives as many as abstract evaluation promised."""
    if not isinstance(outs, tuple | list) or len(outs) != len(avals_out):
        got = f"{len(outs)} results" if isinstance(outs, tuple | list) else f"one value of type {type(outs).__name__}"
        raise TypeError(
            f"primitive {primitive.name!r}: its impl rule gives {got} where its abstract-eval rule promises a list of "
            f"{len(avals_out)}; one of the two (from {primitive.provenance.owner}) is wrong"
        )


def _convert(primitive: Primitive, x: Any) -> tuple[ShapedArray, Any]:
    if isinstance(x, Tracer):
        raise escaped(x, f"primitive {primitive.name!r}")
    try:
        aval = get_aval(x)
    except TypeError as error:
        raise TypeError(f"operand of primitive {primitive.name!r}: {error}") from None
    # Through `as_array`, for the result of a rule may be a view of its operand.
    host = as_array(x)._fetch() if isinstance(x, np.ndarray) else host_value(x)
    return aval, (host if type(host) is np.ndarray else np.asarray(host, dtype=aval.dtype))


def _evaluate_on_arrays(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Impl rules that want `Array`s, and primitives met for the first time."""
    for x in args:
        if isinstance(x, Tracer):
            raise escaped(x, f"primitive {primitive.name!r}")
        if type(x) is not Array:
            _convert(primitive, x)
    rule = _device_rules.get(primitive)
    if rule is None:
        impl_rules.lookup(primitive)
        if primitive in _host_rules:
            return _bottom.process_primitive(primitive, args, params)
        rule = _device_rules[primitive]
    arrays = [as_array(x) for x in args]
    avals_out = primitive.abstract(tuple(x.aval for x in arrays), params)
    for aval in avals_out:
        _check_size(primitive, aval)
    previous = state.trace
    state.trace = _bottom
    try:
        out = rule(*arrays, **params)
    finally:
        state.trace = previous
    outs = out if primitive.multiple_results else [out]
    _check_results(primitive, outs, avals_out)
    return [_settle(primitive, o, aval) for o, aval in zip(outs, avals_out, strict=True)]


def _settle(primitive: Primitive, out: Any, aval: ShapedArray) -> Array:
    if type(out) is Array and out.aval is aval:
        return out
    if type(out) is Array and out.aval.shape == aval.shape and out.aval.dtype == aval.dtype:
        return out._with_aval(aval)
    return _wrap(primitive, out, aval)


# -- programs ----------------------------------------------------------------------------------------------------


def eval_jaxpr_on_host(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program on NumPy arrays; for impl rules of higher-order primitives.

    Args:
        closed: the program.
        args: NumPy arrays of its argument types.

    Returns:
        NumPy arrays.
    """
    return _run_program(closed.jaxpr, [*(host_value(c) for c in closed.consts), *args])


def _literals(jaxpr: Jaxpr) -> dict[Any, Any]:
    found = jaxpr.memo.get("host_literals")
    if found is None:
        for eqn in jaxpr.eqns:  # once for each program, too
            for v in eqn.outvars:
                _check_size(eqn.primitive, v.aval, eqn.source_info)
        atoms = [*jaxpr.outvars, *(v for eqn in jaxpr.eqns for v in eqn.invars)]
        found = {v: np.asarray(host_value(v.val), dtype=v.aval.dtype) for v in atoms if type(v) is not Var}
        jaxpr.memo["host_literals"] = found
    return found


def _run_program(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))
    env.update(_literals(jaxpr))
    for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        primitive = eqn.primitive
        rule = _host_rules.get(primitive)
        operands = [env[v] for v in eqn.invars]
        if rule is None:
            arrays = [Array(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
            outs = [o._fetch() for o in _evaluate_on_arrays(primitive, arrays, eqn.params)]
        else:
            out = rule(*operands, **eqn.params)
            outs = out if primitive.multiple_results else [out]
        for v, o in zip(eqn.outvars, outs, strict=True):
            env[v] = o if type(o) is np.ndarray else np.asarray(o, dtype=v.aval.dtype)
        for v in dead:
            del env[v]
    return [env[v] for v in jaxpr.outvars]


def _run_concrete(jaxpr: Jaxpr, values: list[Any]) -> list[Any] | None:
    if type(state.trace) is not EvalTrace or any(isinstance(x, Tracer) for x in values):
        return None
    run = _quiet.run or _new_context()
    operands = (jaxpr, [host_value(as_array(x)) for x in values])
    try:
        outs = run(_run_program, *operands)
    except RuntimeError as error:
        outs = _nested(error, _run_program, operands, {})
    return [Array(o, v.aval) for o, v in zip(outs, jaxpr.outvars, strict=True)]


_bottom = EvalTrace(None)
set_concrete_runner(_run_concrete)
set_bottom(_bottom)


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
