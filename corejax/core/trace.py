"""The trace stack: one per thread, `EvalTrace` at the bottom; the trace on top interprets every `bind`.

Each trace knows its parent, the trace below it. A trace treats tracers that are not its own as constants and
runs its rules with the parent on top, so that what a rule binds is interpreted one level further down. A
staging trace has no parent: it records everything (omnistaging). There are no levels to compare.
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

    A transformation's own subclass has the rest of its parameters as attributes, and `process_primitive`, which
    treats its own tracers (`x._trace is self`) and takes all other operands, tracers of other traces included, for
    constants. What it does not need it hands to `self.parent.process_primitive`; its rules it runs with the parent
    on top (`set_current_trace(self.parent)`), so that what they bind is interpreted one level further down.

    Attributes:
        interpreter: what reports call it, by class; an empty text stands for the class's name.
        parent: the trace below, which interprets what this one's rules bind; None for a staging trace.
        alive: False once the transformation has ended; its tracers are then refused.
        debug: what is being transformed (`DebugInfo`), for messages.
    """

    __slots__ = ("__weakref__", "_kept", "alive", "debug", "parent")

    interpreter: ClassVar[str] = ""

    def __init__(self, parent: Trace | None, debug: Any = None) -> None:
        self.parent = parent
        self.alive = True
        self.debug = debug

    def process_primitive(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Interpret one application; always gives a list of outputs."""
        raise NotImplementedError(f"{type(self).__name__}.process_primitive")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Note the interpreter, whose `process_primitive` reports while a thread is watched (`corejax.observe`)."""
        super().__init_subclass__(**kwargs)
        if isinstance(vars(cls).get("process_primitive"), FunctionType):
            _interpreters.add(cls)
            _set_reporting(cls)

    @property
    def main(self) -> Trace:
        """The trace itself; JAX's name for what tracers of one transformation have in common."""
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


# Classes with a `process_primitive` of their own. While any thread is watched each has a reporting one in its place, so
# that none of them asks at each primitive whether it is watched. (`EvalTrace` has a layer for that.)
_interpreters: weakref.WeakSet[type[Trace]] = weakref.WeakSet()


def _set_reporting(cls: type[Trace]) -> None:
    current = vars(cls)["process_primitive"]
    process = getattr(current, "__corejax_reports__", current)
    cls.process_primitive = _reporting(process) if observe.watched else process  # type: ignore[method-assign]


@observe.watched_changed.connect
def _on_watched_changed() -> None:
    for cls in list(_interpreters):
        _set_reporting(cls)


def _reporting(process: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    @functools.wraps(process)
    def process_primitive(self: Trace, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        return observe.interpret(self, functools.partial(process, self), primitive, args, params)

    vars(process_primitive)["__corejax_reports__"] = process
    return process_primitive


class MappedAxis(NamedTuple):
    """What a mapped axis is called.

    Attributes:
        name: its name for collectives, or None.
        spmd: names of the axes of a mesh over which it is split.
    """

    name: Any = None
    spmd: tuple[Any, ...] = ()


class _State(threading.local):
    """The thread's interpreter state. Class attributes are what a new thread starts with, as its own: these are read
    in half of the time.
    """

    trace: Trace = None  # type: ignore[assignment]  # EvalTrace, set by interpreters.evaluation
    source: Any = None  # source of the equation that eval_jaxpr replays, else None
    scope: tuple[Any, ...] = ()  # names and transformations that equations are recorded under (source_info.Scope)
    axis_env: tuple[tuple[Any, int | None], ...] = ()
    rule_axis: MappedAxis | None = None  # names of the mapped axis that a vmap rule is running for
    contexts: int = 0  # staging traces and named axes in force
    told: bool | None = False  # whether the context hooks have last been told that there are any

    def __init__(self) -> None:
        self.trace, self.source, self.scope = _State.trace, _State.source, _State.scope
        self.axis_env, self.rule_axis = _State.axis_env, _State.rule_axis


state = _State()


def set_bottom(trace: Trace) -> None:
    """Install the trace at the bottom of every thread's stack."""
    _State.trace = state.trace = trace


_contexts_changed = Signal("staging traces and named axes in force")


def in_context() -> bool:
    """Whether a staging trace or a named axis is in force: concrete operands do not mean "compute now"."""
    return state.contexts > 0


def on_context(hook: Callable[[bool], None]) -> Callable[[bool], None]:
    """Have `hook` called with True when a thread enters its first context, and with False when it leaves its last one.

    A context is a staging trace or a named axis, as for `in_context`; outside of contexts, a backend's dispatcher may
    take its fast path. If this thread is in a context already, the hook is called at once.

    Returns:
        The hook.
    """
    _contexts_changed.connect(hook)
    if in_context():
        hook(True)
    return hook


def set_contexts(count: int) -> None:
    """Set how many staging traces and named axes are in force in this thread; if interrupted, to be repeated."""
    state.contexts = count
    inside = count > 0
    if state.told is not inside:
        state.told = None  # if what follows is interrupted, it is repeated
        _contexts_changed.send(inside)
        state.told = inside


class _Scope(Changed):
    __slots__ = ("name",)

    def __init__(self, name: Any) -> None:
        super().__init__(state, "scope", state.scope)
        self.name = name

    def _recreate_cm(self) -> _Scope:
        return _Scope(self.name)

    def __enter__(self) -> None:
        self.value = (*state.scope, self.name)
        super().__enter__()


def scope(name: str) -> Restoring:
    """One more name that equations are recorded under, for a `with` block or, as a decorator, for each call."""
    return _Scope(name)


def replaying(source: Any) -> Restoring:
    """Errors name the user's line `source` (of an equation: `eqn.source_info`), for a `with` block."""
    return Changed(state, "source", source)


def replayed_source() -> Any:
    """The source of the equation that is being evaluated again, as `replaying` set it; None where none is."""
    return state.source


def in_scope(name: str, fun: Callable[..., R]) -> Callable[..., R]:
    """`fun`, what it binds being inside one more scope: a name, or a `source_info.Transform`."""

    def scoped(*args: Any) -> R:
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


def bottom_trace() -> Trace:
    """The trace at the bottom of every thread's stack."""
    return _State.trace


def current_trace() -> Trace:
    """The trace on top, which interprets the next `bind`."""
    return state.trace


def recording_trace() -> Trace | None:
    """The staging trace that what is bound now ends in, whatever transforms it before; None where it is evaluated."""
    trace = state.trace
    while trace.parent is not None:
        trace = trace.parent
    return None if trace is _State.trace else trace


def trace_stack() -> list[Trace]:
    """The thread's traces from the bottom up; the last one interprets the next `bind`."""
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
        """Put the earlier trace back; this one has ended."""
        super().restore()
        self.value.alive = False


def new_main(trace: Trace) -> Restoring:
    """Put `trace` on top for a `with` block and mark it dead afterwards, whatever happens inside."""
    return _Main(state, "trace", trace)


def set_current_trace(trace: Trace) -> Restoring:
    """Put `trace` on top for a `with` block; it stays alive."""
    return Changed(state, "trace", trace)


def run_with_trace(trace: Trace, fun: Callable[..., R], args: Iterable[Any]) -> R:
    """`fun(*args)` with `trace` on top, which has ended afterwards: how a transformation runs a function.

    Wherever an interrupt arrives (`corejax.base.restoring`), the stack is what it was, and so are the scopes.
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


_WHOLE = (int, math.trunc, math.floor, math.ceil, operator.index)  # conversions to integers, for control flow


class Tracer(ArrayMethods):
    """A boxed value. Subclasses hold what their interpreter adds to it.

    Attributes:
        aval: the value's type.
    """

    __slots__ = ("__weakref__", "_trace")

    _trace: Trace
    aval: Any

    def __init__(self, trace: Trace, aval: Any = None) -> None:
        self._trace = trace
        if aval is not None:
            self.aval = aval

    def concrete(self) -> Any:
        """The value behind the tracer where it is known now and is all there is to it, else None."""
        return None

    def steering(self) -> Any:
        """The value that `bool` and `int` see, where it is known now, else None.

        A value with a tangent has one: Python control flow is constant piecewise. It is not `concrete`, for what
        is made of a converted value has lost the tangent.
        """
        return self.concrete()

    def origin(self) -> str:
        """Sentences that say which transformation traced the value and why it is not known."""
        debug = self._trace.debug
        return f"The error occurred while {debug.description()}." if debug is not None else ""

    def made_at(self) -> str | None:
        """The user's line that made the value, where the trace knows it."""
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
        """Which differentiation would lose the value's tangent where, and what to do."""
        debug = self._trace.debug
        what = f"{debug.transform} of the function {debug.name}" if debug is not None else "a derivative"
        where = f" at {debug.location}" if debug is not None and debug.location else ""
        return (
            f"It is differentiated by {what}{where}, and the converted value would count as a constant at "
            f"{source_info.user_line()}: its derivative would be lost.",
            "Use the corejax.numpy function of that name (jnp.sin for np.sin and math.sin) and keep the value an "
            "array; corejax.lax.stop_gradient(x) where a constant is meant. bool() and int() work, for control flow.",
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

    def _scalar(self, kind: Callable[[Any], R], what: str, value: Any = None) -> R:
        if value is None:
            value = self.steering() if kind in _WHOLE else self.concrete()
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
        """The value as a Python scalar, where it is known now."""
        return self._scalar(lambda value: value.item(*args), "item()")

    def tolist(self) -> Any:
        """The value as nested Python lists, where it is known now."""
        return self._scalar(lambda value: value.tolist(), "tolist()")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
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
        """None: a traced value is wherever the program will run."""
        return None

    def to_device(self, device: Any, /, *, stream: None = None) -> Tracer:
        """The value itself: a program runs on one device."""
        return self

    def __format__(self, spec: str) -> str:
        return self._scalar(lambda value: format(value, spec), "format()", self.steering()) if spec else str(self)

    __hash__ = None  # type: ignore[assignment]  # they are compared elementwise, and `Hashable` says so

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short(short_dtypes=False)})"

    def __reduce__(self) -> Any:
        raise TypeError(f"a traced value has no copy outside of its transformation: cannot pickle {self!r}")

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self


def escaped(tracer: Tracer, where: str) -> UnexpectedTracerError:
    """The error for a tracer that is used outside its transformation."""
    trace = tracer._trace
    made = trace.debug.description() if trace.debug is not None else f"running {type(trace).__name__}"
    line = tracer.made_at()
    at = f" at {line}" if line else ""
    ended = (
        "that transformation has ended"
        if not trace.alive
        else "it does not belong to the transformations that are running here (another thread, say)"
    )
    return UnexpectedTracerError(
        f"Encountered an unexpected tracer, which escaped from its transformation: {tracer!r} was made{at} while "
        f"{made}, and {ended}.\n"
        f"It was used by {where} at {source_info.user_line()}.\n"
        "Return the value from the transformed function instead of storing it in global state, an attribute or a list; "
        "jvp, vjp and grad take has_aux=True for extra outputs."
    )
