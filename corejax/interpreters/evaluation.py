"""Evaluation, the interpreter at the bottom of the stack: `bind` computes.

    eval : (a -> b) -> a -> b

It has no tracers. Abstract evaluation (memoised) validates the operands and types the result; the impl rule computes
it on NumPy arrays. Rules run in a context of their own in which NumPy's floating-point warnings are silent: division by
zero and overflow are StableHLO's, not warnings.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax import observe
from corejax.array import Array, as_array, device_buffer, host_value
from corejax.attribution import attribute_to_rule
from corejax.avals import ShapedArray, get_aval
from corejax.backends import Backend, backends
from corejax.caches import clears_cache
from corejax.errors import BackendError
from corejax.interpreters import large_operations, written_operations
from corejax.interpreters.host_functions import ufunc_for
from corejax.interpreters.impl_results import as_promised, check_count, types_of
from corejax.interpreters.written_operations import function_of
from corejax.memory_limit import LARGE, check_memory, keep_freed_memory
from corejax.ownership import SOLE, aligned_empty, in_own_memory, owned
from corejax.primitive import Primitive, promised, results_of_body
from corejax.rules import Derivation, impl_rules, reporting_table
from corejax.seams import Signal
from corejax.source_info import describe, user_line, without_caller
from corejax.trace import Trace, Tracer, escaped, set_bottom, state

_ndarray = np.ndarray
keep_freed_memory()
LARGE_OPERATION = large_operations.SIZE
left_by, by_operands = large_operations.left_by, large_operations.by_operands
left_from = large_operations.left_from
_prepared = written_operations.prepared

# Impl rules that take NumPy arrays, ready to run; while somebody watches they report (`reporting_table`).
host_rules: dict[Any, Callable[..., Any]] = {}
# Primitives with the types of their operands, where the rule is a ufunc without params: the ufunc, and what it gives.
_ufuncs: dict[tuple[Any, ...], tuple[Any, ...]] = {}
clears_cache(_ufuncs.clear)
_LIMIT = 4096
rules_version = 0  # grows with each change of an impl rule
rules_changed = Signal("impl rules")  # sent then


class EvalTrace(Trace, reports=True):
    """The bottom of every thread's stack."""

    __slots__ = ()

    interpreter = "eval"

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Compute: NumPy values to the impl rule, `Array`s back."""
        if observe.watched:
            if observe.unreported(self, primitive):
                return observe.interpret(self, primitive, args, params)
        else:
            found = None if params else _by_ufunc(primitive, args)
            if found is None and primitive in _prepared:
                found = _by_function(primitive, args, params)
            if found is not None:
                return found
        rule = host_rules.get(primitive)
        if rule is None:
            return evaluate_on_arrays(primitive, args, params)
        vals = []
        avals = []
        on_device = False
        for x in args:
            if type(x) is Array:
                host = x._host
                avals.append(x.aval)
                if host is None:
                    on_device = True
            else:
                aval, host = _convert(primitive, x)
                avals.append(aval)
            vals.append(host)
        key = tuple(avals)
        # What `primitive.abstract` does first, without the call: this is the path of every eager operation.
        try:
            avals_out = primitive._memo.get((key, tuple(params.items())) if params else key)
        except TypeError:  # a parameter that has no hash
            avals_out = None
        if avals_out is None:
            avals_out = promised(primitive, key, params)
            for aval in avals_out or ():
                if aval.nbytes > LARGE:
                    check_size(primitive, aval)
        if on_device and (backend := _backend_of_spread(args)) is not None:
            return backend.evaluate(primitive, [as_array(x) for x in args], params)
        if avals_out and (
            avals_out[0]._size >= left_from.get(primitive, LARGE_OPERATION)
            or (primitive in by_operands and _any_large(key))
        ):
            outs = _evaluate_large(primitive, args, vals, key, params, avals_out)
            if outs is not None:
                return outs
        if on_device:
            vals = _fetched(args, vals)
        run = _quiet.run or _new_context()
        try:
            try:
                out = run(rule, *vals, **params) if params else run(rule, *vals)
            except RuntimeError as error:
                out = _nested(error, rule, vals, params)
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
        aval = avals_out[0]
        if type(out) is _ndarray and out.dtype is aval.dtype and out.shape == aval.shape:
            sole = getrefcount(out) <= SOLE
            if not sole or out.base is not None:
                out = in_own_memory(out, vals, sole)
        else:
            out = as_promised(primitive, out, aval)
        if not observe.watched:
            _remember(primitive, key, params, aval)
        return [Array(out, aval)]


def _remember(primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any], aval: ShapedArray) -> None:
    """Keep what the operation is that has been run: a ufunc, or a function once it has come a few times."""
    if primitive in _prepared:
        written_operations.count(primitive, avals, params, aval)
    if not params:
        _remembered_ufunc(primitive, avals, aval)


def _remembered_ufunc(primitive: Primitive, avals: tuple[ShapedArray, ...], aval: ShapedArray) -> tuple[Any, ...]:
    known = (primitive, *avals)
    found = _ufuncs.get(known)
    if found is None:
        if len(_ufuncs) >= _LIMIT:
            _ufuncs.clear()
        found = _ufuncs[known] = as_ufunc(primitive, avals, aval)
    return found


def _by_ufunc(primitive: Primitive, args: Sequence[Any]) -> list[Any] | None:
    """What a primitive without params gives for arrays of types that a ufunc took before; None for others."""
    if len(args) == 2:
        x, y = args
        if type(x) is not Array or type(y) is not Array:
            return None
        found = _ufuncs.get((primitive, x.aval, y.aval))
        if not found or x._host is None or y._host is None:
            return None
        operands: tuple[Any, ...] = (found[0], x._host, y._host)
    elif len(args) == 1 and type(args[0]) is Array:
        [x] = args
        found = _ufuncs.get((primitive, x.aval))
        if not found or x._host is None:
            return None
        operands = (found[0], x._host)
    else:
        return None
    try:
        return [Array((_quiet.run or _new_context())(*operands), found[1])]
    except Exception:  # the long way says where
        return None


def _by_function(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """What an operation gives that has come a few times; None for others."""
    function = function_of(primitive, args, params)
    if function is None:
        return None
    try:
        return [(_quiet.run or _new_context())(function, *args)]
    except Exception:  # the long way says where
        return None


def _any_large(avals: Sequence[ShapedArray]) -> bool:
    return max([aval._size for aval in avals], default=0) >= LARGE_OPERATION


def as_ufunc(primitive: Primitive, avals: Sequence[ShapedArray], aval: ShapedArray) -> tuple[Any, ...]:
    """A function of NumPy arrays of these types, and `aval`, the type of the array that it gives.

    A large array is in memory that compiled programs can share. Nothing where the impl rule, without params, is no
    ufunc, leaves an operation to the derived one, or memory has to be looked at.
    """
    ufunc = ufunc_for(primitive, host_rules.get(primitive), avals, aval)
    if ufunc is None or aval.nbytes > LARGE or large_operations.is_left(primitive, avals, [aval], {}):
        return ()
    if aval.size >= LARGE_OPERATION:
        return (lambda *values: ufunc(*values, aligned_empty(aval.shape, aval.dtype)), aval)
    return (ufunc if aval.shape else lambda *values: np.asarray(ufunc(*values)), aval)


# -- operands and results ----------------------------------------------------------------------------------------


def check_size(primitive: Primitive, aval: ShapedArray, place: Any = None) -> None:
    if aval.nbytes > LARGE:
        line = user_line() if place is None else describe(place)
        result = f"the result of primitive {primitive.name!r} at {line}, an array of shape {aval.shape} and dtype"
        check_memory(aval.nbytes, f"{result} {aval.dtype.name},")


def _fetched(args: Sequence[Any], vals: Sequence[Any]) -> list[Any]:
    """Values of operands, with those that are on a device."""
    return [x._fetch() if val is None else val for x, val in zip(args, vals, strict=True)]


def _backend_of_spread(args: Sequence[Any]) -> Backend | None:
    """The backend of the first operand whose parts are on several devices; None where there is none."""
    for x in args:
        if type(x) is Array and x._host is None:
            buffer = device_buffer(x)
            backend = backends.of_buffer(buffer)
            if backend is not None and backend.is_spread(buffer):
                return backend
    return None


def _wrap(primitive: Primitive, out: Any, aval: ShapedArray) -> Array:
    """Box an impl rule's result, which has to be of the type that abstract evaluation promised."""
    return Array(as_promised(primitive, out, aval), aval)


def _convert(primitive: Primitive, x: Any) -> tuple[ShapedArray, Any]:
    if isinstance(x, Tracer):
        raise escaped(x, f"primitive {primitive.name!r}")
    try:
        aval = get_aval(x)
    except TypeError as error:
        what = without_caller(error)
        raise TypeError(f"operand of primitive {primitive.name!r}: {what}") from None
    # Through `as_array`, for the result of a rule may be a view of its operand.
    host = as_array(x)._fetch() if isinstance(x, np.ndarray) else host_value(x)
    host.setflags(write=False)
    return aval, host


def evaluate_on_arrays(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Impl rules that want `Array`s, and primitives met for the first time."""
    for x in args:
        if isinstance(x, Tracer):
            raise escaped(x, f"primitive {primitive.name!r}")
        if type(x) is not Array:
            _convert(primitive, x)
    rule = impl_rules.lookup(primitive)
    if primitive in host_rules:
        return _bottom.process_primitive(primitive, args, params)
    arrays = [as_array(x) for x in args]
    avals_out = promised(primitive, tuple(x.aval for x in arrays), params)
    for aval in avals_out or ():
        check_size(primitive, aval)
    return _run_on_arrays(rule, primitive, arrays, params, avals_out)


def _run_on_arrays(
    rule: Callable[..., Any],
    primitive: Primitive,
    arrays: Sequence[Array],
    params: dict[str, Any],
    avals_out: tuple[ShapedArray, ...] | None,
) -> list[Any]:
    previous = state.trace
    try:
        state.trace = _bottom
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


def _evaluate_large(
    primitive: Primitive,
    args: Sequence[Any],
    vals: Sequence[Any],
    avals: tuple[ShapedArray, ...],
    params: dict[str, Any],
    avals_out: tuple[ShapedArray, ...],
) -> list[Any] | None:
    """What the derived rule gives, or a ufunc in memory that can be shared; None where the rule in force is to run."""
    outs = _by_derived(primitive, args, vals, avals, params, avals_out)
    if outs is not None or params or observe.watched or avals_out[0]._size < LARGE_OPERATION:
        return outs
    found = _remembered_ufunc(primitive, avals, avals_out[0])
    if not found:
        return None
    try:
        return [Array((_quiet.run or _new_context())(found[0], *_fetched(args, vals)), found[1])]
    except Exception:  # the long way says where
        return None


def _by_derived(
    primitive: Primitive,
    args: Sequence[Any],
    vals: Sequence[Any],
    avals: Sequence[ShapedArray],
    params: dict[str, Any],
    avals_out: tuple[ShapedArray, ...],
) -> list[Any] | None:
    """What the derived rule gives; None where there is none, or it cannot run: in a process that was forked, say."""
    if primitive not in left_by or not large_operations.is_left(primitive, avals, avals_out, params):
        return None
    if not large_operations.gives_other_bits(primitive, avals) and not large_operations.comes_again(
        primitive, avals, params
    ):
        return None
    rule = large_operations.derived_for(primitive)
    if rule is None:
        return None
    arrays = [x if type(x) is Array else Array(v, a) for x, v, a in zip(args, vals, avals, strict=True)]
    try:
        return _run_on_arrays(rule, primitive, arrays, params, avals_out)
    except BackendError:
        return None


def _boxed(primitive: Primitive, out: Any, aval: ShapedArray) -> Array:
    if type(out) is Array and out.aval is aval:
        return out
    if type(out) is Array and out.aval.shape == aval.shape and out.aval.dtype == aval.dtype:
        return out._with_aval(aval)
    return _wrap(primitive, out, aval)


# -- rules ---------------------------------------------------------------------------------------------------------


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


def run_quietly(fun: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """`fun(*operands)` with NumPy's floating-point warnings silent."""
    run = _quiet.run or _new_context()
    try:
        return run(fun, *operands)
    except RuntimeError as error:
        return _nested(error, fun, operands, {})


def _nested(error: RuntimeError, rule: Callable[..., Any], vals: Sequence[Any], params: dict[str, Any]) -> Any:
    """A rule inside another rule: the context is entered already, and silent, so it is simply called."""
    from corejax.texts import message_of  # needed for an error only

    if "cannot enter context" not in message_of(error):
        raise error
    return rule(*vals, **params)


class _OnArrays:
    """An impl rule that takes `Array`s, as somebody calls it who has NumPy arrays, perhaps."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        return self.fn(*map(as_array, arrays), **params)


def _as_declared(primitive: Any, fn: Callable[..., Any], flags: Any) -> Callable[..., Any]:
    return _OnArrays(fn) if flags.get("device", False) else fn


_written_for_host = host_rules


def _file(primitive: Any) -> None:
    global rules_version
    rules_version += 1
    _ufuncs.clear()
    large_operations.follow(primitive)
    written_operations.follow(primitive)
    rule = impl_rules.ready(primitive)
    if rule is None or type(rule) is _OnArrays:
        _written_for_host.pop(primitive, None)
    else:
        _written_for_host[primitive] = rule
    rules_changed.send()


def _follow_watchers() -> None:
    global host_rules
    _ufuncs.clear()
    written_operations.forget()
    host_rules = reporting_table(impl_rules, _written_for_host)


impl_rules.adapt = _as_declared
impl_rules.changed.connect(_file)
observe.watched_changed.connect(_follow_watchers)


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


_bottom = EvalTrace(None)
set_bottom(_bottom)
