"""The trace stack: one per thread, `EvalTrace` at the bottom; the trace on top interprets every `bind`.

The stack is a linked list: each trace knows its parent, the trace below it. A trace treats the tracers of other traces
as constants and runs its rules with the parent on top, so that the primitives that a rule binds are interpreted one
level down. A staging trace has no parent: it records every `bind` (omnistaging). Autodidax compares the levels of the
operands' tracers to find the interpreter; here the top of the stack is always the interpreter.

The invariant that all code here preserves: when a transformation ends, normally or by an exception, the stack is the
same as before it, and its trace is marked as ended (`alive` is False), so that tracers that escaped are recognised.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, TypeVar

from corejax import observe
from corejax.base.restoring import Changed, Restoring
from corejax.base.seams import Signal
from corejax.core.array_methods import ArrayMethods
from corejax.core.avals import Operands, Params
from corejax.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from corejax.messages import source_info

R = TypeVar("R")


class Trace:
    """An interpreter at work: one instance per application of a transformation.

    A subclass has the parameters of its transformation as attributes and defines `process_primitive`. That method
    recognises its own tracers (`x._trace is self`) and treats all other operands, including tracers of other traces,
    as constants. If no operand is its own, it calls `self.parent.process_primitive`. It runs rules with the parent on
    top (`set_current_trace(self.parent)`), which then interprets the primitives that the rules bind.

    Attributes:
        interpreter: the name of the class in reports; if empty, the class's own name.
        parent: the trace below, which interprets the primitives that this trace's rules bind; None for a staging trace.
        alive: False once the transformation has ended; using its tracers is an error from then on.
        debug: the function that is transformed (`DebugInfo`), for messages.
    """

    __slots__ = ("__weakref__", "_kept", "alive", "debug", "parent")

    interpreter: ClassVar[str] = ""

    def __init__(self, parent: Trace | None, debug: Any = None) -> None:
        self.parent: Trace = parent  # type: ignore[assignment]  # only a staging trace has None, and never reads it
        self.alive = True
        self.debug = debug

    def process_primitive(self, primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
        """Interpret one application and return the list of its outputs."""
        raise NotImplementedError(f"{type(self).__name__}.process_primitive")

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Register the class, so that `process_primitive` reports while a thread is watched (`corejax.observe`)."""
        super().__init_subclass__(**kwargs)
        if isinstance(vars(cls).get("process_primitive"), FunctionType):
            _interpreters.add(cls)
            _set_reporting(cls)

    @property
    def main(self) -> Trace:
        """The trace itself; in JAX, the object that the tracers of one transformation share."""
        return self

    def kept(self) -> dict[Any, Any]:
        """Return a dict that lives as long as the trace, created on first use."""
        try:
            return self._kept
        except AttributeError:
            self._kept: dict[Any, Any] = {}
            return self._kept

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{'' if self.alive else ', ended'}>"


# Classes that define `process_primitive`. While any thread is watched, each class gets a wrapper that reports. Because
# the method is replaced, unwatched traces need not test a flag at each primitive. (`EvalTrace` reports by a layer.)
_interpreters: weakref.WeakSet[type[Trace]] = weakref.WeakSet()


def _set_reporting(cls: type[Trace]) -> None:
    current = vars(cls)["process_primitive"]
    process = getattr(current, "__corejax_reports__", current)
    process = _reporting(process) if observe.watched else process
    cls.process_primitive = process  # type: ignore[method-assign]  # replaced, as the comment above says


@observe.watched_changed.connect
def _on_watched_changed() -> None:
    for cls in list(_interpreters):
        _set_reporting(cls)


def _reporting(process: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    @functools.wraps(process)
    def process_primitive(self: Trace, primitive: object, args: Operands, params: Params) -> list[Any]:
        return observe.interpret(self, functools.partial(process, self), primitive, args, params)

    vars(process_primitive)["__corejax_reports__"] = process
    return process_primitive


class MappedAxis(NamedTuple):
    """The names of a mapped axis.

    Attributes:
        name: its name for collectives, or None.
        spmd: names of the mesh axes over which it is split.
    """

    name: Any = None
    spmd: tuple[Any, ...] = ()


class _State(threading.local):
    """The thread's interpreter state; class attributes are the initial values of a new thread."""

    trace: Trace = None  # type: ignore[assignment]  # EvalTrace, set by interpreters.evaluation
    source: Any = None  # source of the equation that eval_jaxpr replays, else None
    scope: tuple[Any, ...] = ()  # names and transformations that equations are recorded under (source_info.Scope)
    axis_env: tuple[tuple[Any, int | None], ...] = ()
    rule_axis: MappedAxis | None = None  # names of the mapped axis that a vmap rule is running for
    contexts: int = 0  # number of active staging traces and named axes
    last_notified: bool | None = False  # the value that the context hooks last received; None while they are called

    def __init__(self) -> None:
        # Attributes of an instance are read in half of the time of class attributes.
        if _State.trace is not None:  # None in the thread that imports this module; another one may call `set_bottom`
            self.trace = _State.trace
        self.source, self.scope = _State.source, _State.scope
        self.axis_env, self.rule_axis = _State.axis_env, _State.rule_axis


state = _State()


def set_bottom(trace: Trace) -> None:
    """Install the trace at the bottom of every thread's stack."""
    _State.trace = state.trace = trace


_contexts_changed = Signal("staging traces and named axes in force")


def in_context() -> bool:
    """Whether a staging trace or a named axis is active; operations on concrete operands may then be recorded."""
    return state.contexts > 0


def on_context(hook: Callable[[bool], None]) -> Callable[[bool], None]:
    """Register a hook: called with True when a thread enters its first context, with False when it leaves the last one.

    A context is a staging trace or a named axis, as for `in_context`. Outside of contexts, a backend's dispatcher may
    take its fast path. If this thread is in a context already, the hook is called immediately.

    Returns:
        The hook.
    """
    _contexts_changed.connect(hook)
    if in_context():
        hook(True)
    return hook


def set_contexts(count: int) -> None:
    """Set the number of staging traces and named axes in this thread, and call the context hooks if needed."""
    state.contexts = count
    inside = count > 0
    if state.last_notified is not inside:
        state.last_notified = None  # so that, after an interrupt, a second call sends again
        _contexts_changed.send(inside)
        state.last_notified = inside


class _Scope(Changed):
    __slots__ = ("name",)

    def __init__(self, name: object) -> None:
        super().__init__(state, "scope", state.scope)
        self.name = name

    def _recreate_cm(self) -> _Scope:
        return _Scope(self.name)

    def __enter__(self) -> None:
        self.value = (*state.scope, self.name)
        super().__enter__()


def scope(name: str) -> Restoring:
    """Record equations under one more name, in a `with` block or, used as a decorator, in each call."""
    return _Scope(name)


def replaying(source: object) -> Restoring:
    """Make errors inside a `with` block name the user's line `source` (`eqn.source_info` of an equation)."""
    return Changed(state, "source", source)


def replayed_source() -> Any:
    """Return the source that `replaying` has set, that of the equation being replayed; None outside of it."""
    return state.source


def in_scope(name: str, fun: Callable[..., R]) -> Callable[..., R]:
    """Wrap `fun` so that its equations are recorded in one more scope: a name, or a `source_info.Transform`."""

    def scoped(*args: object) -> R:
        earlier = state.scope
        try:
            try:
                state.scope = (*earlier, name)
                return fun(*args)
            finally:
                state.scope = earlier
        finally:
            state.scope = earlier

    return scoped


def current_scope() -> tuple[Any, ...]:
    """Return the names that operations are recorded under: of the equation that is replayed, or else of the thread."""
    return state.scope if state.source is None else source_info.scope_of(state.source)


def bottom_trace() -> Trace:
    """Return the trace at the bottom of every thread's stack."""
    return _State.trace


def current_trace() -> Trace:
    """Return the trace on top, which interprets the next `bind`."""
    return state.trace


def recording_trace() -> Trace | None:
    """Return the staging trace at the bottom of the active stack, or None if operations are evaluated in the end."""
    trace = state.trace
    while trace.parent is not None:
        trace = trace.parent
    return None if trace is _State.trace else trace


def trace_stack() -> list[Trace]:
    """Return the thread's traces from the bottom up; the last one interprets the next `bind`."""
    stack: list[Trace] = []
    trace: Trace | None = state.trace
    while trace is not None:
        stack.append(trace)
        trace = trace.parent
    if stack[-1] is not _State.trace:
        stack.append(_State.trace)
    return stack[::-1]


class _Main(Changed):
    __slots__ = ()

    def restore(self) -> None:
        """Restore the earlier trace and mark this one as ended."""
        super().restore()
        self.value.alive = False


def new_main(trace: Trace) -> Restoring:
    """Put `trace` on top for a `with` block and mark it as ended afterwards, also after an exception."""
    return _Main(state, "trace", trace)


def set_current_trace(trace: Trace) -> Restoring:
    """Put `trace` on top for a `with` block; the trace stays alive afterwards."""
    return Changed(state, "trace", trace)


def run_with_trace(trace: Trace, fun: Callable[..., R], args: Iterable[object]) -> R:
    """Return `fun(*args)`, run with `trace` on top, and mark the trace as ended: how a transformation runs a function.

    The nested `finally` restores the stack and the scopes wherever an interrupt arrives (`corejax.base.restoring`).
    """
    previous = state.trace
    scope = state.scope
    try:
        try:
            state.trace = trace
            return fun(*args)
        finally:
            state.trace = previous
            state.scope = scope
            trace.alive = False
    finally:
        state.trace = previous
        state.scope = scope
        trace.alive = False


_TO_INTEGER = (int, math.trunc, math.floor, math.ceil, operator.index)


class Tracer(ArrayMethods):
    """A boxed value. Subclasses add the data of their interpreter: a tangent, a batch dimension, a variable.

    Attributes:
        aval: the value's type.
    """

    __slots__ = ("__weakref__", "_trace")

    _trace: Trace
    aval: Any

    def __init__(self, trace: Trace, aval: object = None) -> None:
        self._trace = trace
        if aval is not None:
            self.aval = aval

    def concrete(self) -> Any:
        """Return the value if it is known and converting it to a Python or NumPy value loses nothing, else None."""
        return None

    def steering(self) -> Any:
        """Return the value that `bool` and `int` use for Python control flow, or None if it is not known.

        A value with a tangent may have a control-flow value, because control flow is piecewise constant. The value is
        not `concrete`: a result computed from the converted value would lose the tangent.
        """
        return self.concrete()

    def origin(self) -> str:
        """Return sentences that say which transformation traced the value and why it is not known."""
        debug = self._trace.debug
        return f"The error occurred while {debug.description()}." if debug is not None else ""

    def made_at(self) -> str | None:
        """Return the user's line that computed the value, or None if the trace does not record it."""
        return None

    def _refuse(self, error: type[ConcretizationTypeError], what: str, advice: str) -> Exception:
        if not self._trace.alive:
            return escaped(self, what.removeprefix("Attempted "))
        known = f"{what} of traced array with shape {self.aval.str_short(short_dtypes=False)}."
        origin = self.origin()
        if self.steering() is not None:
            origin, advice = self._lost_tangent(advice)
        return error("\n".join(part for part in (known, origin, advice) if part))

    def _lost_tangent(self, advice: str) -> tuple[str, str]:
        """Return the sentence that a conversion would lose the value's tangent, and the advice."""
        debug = self._trace.debug
        transform = f"{debug.transform} of the function {debug.name}" if debug is not None else "a derivative"
        where = f" at {debug.location}" if debug is not None and debug.location else ""
        return (
            f"It is differentiated by {transform}{where}, and the converted value would count as a constant at "
            f"{source_info.user_line()}: its derivative would be lost.",
            "Use the corejax.numpy function of that name (jnp.sin for np.sin and math.sin) and keep the value an "
            "array; use corejax.lax.stop_gradient(x) for a constant. bool() and int() work, for control flow.",
        )

    def __bool__(self) -> bool:
        value = self.steering()
        if value is not None:
            return bool(value)
        raise self._refuse(
            TracerBoolConversionError,
            "Attempted boolean conversion",
            "Use a conditional on the value (cond, select, jnp.where), or mark the argument as static "
            "(static_argnums, static_argnames) so that its value is known while tracing.",
        )

    def _scalar(self, kind: Callable[[Any], R], what: str, value: object = None) -> R:
        if value is None:
            value = self.steering() if kind in _TO_INTEGER else self.concrete()
        if value is not None:
            return kind(value)
        error = TracerIntegerConversionError if what == "__index__" else ConcretizationTypeError
        raise self._refuse(
            error,
            f"Attempted conversion by {what}",
            "A concrete Python number is needed here. Keep the value an array, or mark the argument as static "
            "(static_argnums, static_argnames).",
        )

    def __index__(self) -> int:
        return self._scalar(operator.index, "__index__")

    def item(self, *args: int) -> Any:
        """Return the value as a Python scalar if it is known; raise an error otherwise."""
        return self._scalar(lambda value: value.item(*args), "item()")

    def tolist(self) -> Any:
        """Return the value as nested Python lists if it is known; raise an error otherwise."""
        return self._scalar(lambda value: value.tolist(), "tolist()")

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        value = self.concrete()
        if value is not None:
            return value.__array__(dtype, copy=copy)
        raise self._refuse(
            TracerArrayConversionError,
            "Attempted conversion to a NumPy array",
            "A NumPy function was called on a value that is being traced, or a NumPy array indexed by one; use the "
            "corejax.numpy function of its name, or index corejax.numpy.asarray(array).",
        )

    @property
    def device(self) -> None:
        """Always None: the program determines the device of a traced value."""
        return None

    def to_device(self, device: object, /, *, stream: None = None) -> Tracer:
        """Return the value itself: a program runs on one device."""
        return self

    def __format__(self, spec: str) -> str:
        return self._scalar(lambda value: format(value, spec), "format()", self.steering()) if spec else str(self)

    __hash__ = None  # type: ignore[assignment]  # they are compared elementwise, and `Hashable` says so

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short(short_dtypes=False)})"

    def __reduce__(self) -> Any:
        raise TypeError(f"a traced value exists only inside its transformation: cannot pickle {self!r}")

    def __deepcopy__(self, memo: object) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self


def escaped(tracer: Tracer, where: str) -> UnexpectedTracerError:
    """Return the error for a tracer that is used outside its transformation."""
    trace = tracer._trace
    made = trace.debug.description() if trace.debug is not None else f"running {type(trace).__name__}"
    line = tracer.made_at()
    at = f" at {line}" if line else ""
    ended = (
        "that transformation has ended"
        if not trace.alive
        else "it does not belong to the transformations that are running here (perhaps to another thread's)"
    )
    return UnexpectedTracerError(
        f"Encountered an unexpected tracer, which escaped from its transformation: {tracer!r} was made{at} while "
        f"{made}, and {ended}.\n"
        f"It was used by {where} at {source_info.user_line()}.\n"
        "Return the value from the transformed function instead of storing it in global state, an attribute or a list; "
        "jvp, vjp and grad take has_aux=True for extra outputs."
    )
