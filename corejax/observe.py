"""Observation of what happens in a thread. Reports are made only while the thread has observers or watchers.

Slow paths (tracing a function, compiling a program, linearising) report an `Event` to observers. Interpreters and rules
report each `Step` to watchers: a trace that processes a primitive, or a rule that runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from corejax.base.restoring import Changed, Restoring
from corejax.base.seams import Signal

_R = TypeVar("_R")


class Event(NamedTuple):
    """An event on a slow path.

    Attributes:
        kind: kind of the event: "trace", "compile", "call" (of jitted functions) or "linearize".
        name: name of the function.
        reasons: reasons why the event was necessary, one phrase each.
        ms: duration in milliseconds, nested events included.
        facts: further facts by name, with values that JSON has.
    """

    kind: str
    name: str
    reasons: tuple[str, ...] = ()
    ms: float | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


class Step(NamedTuple):
    """A trace that processes a primitive, or a rule that runs. Steps nest, as calls do.

    Attributes:
        primitive: the primitive.
        trace: the `Trace` that processes the primitive, or None for a rule. A trace may pass the primitive on; the
            step of the other trace is then nested in this one.
        kind: the rule kind ("jvp"), or None for a trace.
        platform: platform of a rule that is for one platform only.
        rule: the `Rule` as registered, with its provenance and derivation.
    """

    primitive: Any
    trace: Any = None
    kind: str | None = None
    platform: str | None = None
    rule: Any = None


Observer = Callable[[Event], None]
Watcher = Callable[[Step, bool], None]  # called with True when a step begins, with False when it has ended


class _State(threading.local):
    observers: tuple[Observer, ...] = ()
    watchers: tuple[Watcher, ...] = ()
    step: Step | None = None  # the innermost step that runs


_state = _State()


# -- events --------------------------------------------------------------------------------------------------------


def observed() -> bool:
    """Return True if this thread has observers; called before a report is prepared."""
    return bool(_state.observers)


def notify(event: Event) -> None:
    """Report an event to the thread's observers."""
    for observer in _state.observers:
        observer(event)


def observing(observer: Observer) -> Restoring:
    """Report this thread's events to `observer` for a `with` block."""
    return Changed(_state, "observers", (*_state.observers, observer))


# -- steps ---------------------------------------------------------------------------------------------------------

# Whether any thread is watched. Interpreters read it for each primitive, as `observe.watched`, so it must be cheap.
watched = False

# Whether a check of evaluation is on (`evaluation_checks`). `watched` is then True, and NumPy takes no elements.
checking = False

# Sent after each assignment of `watched`, even if the value is the same.
watched_changed = Signal("watchers")

_watching: set[int] = set()  # ids of the blocks that watch
_changing = threading.Lock()


def watched_here() -> bool:
    """Return True if this thread is watched."""
    return bool(_state.watchers)


def interpret(
    trace: object, process: Callable[..., list[Any]], primitive: object, args: Sequence[object], params: dict[str, Any]
) -> list[Any]:
    """Call `process(primitive, args, params)` as a step of a trace, unless the running step is the same one."""
    step = _state.step
    if step is not None and step.trace is trace and step.primitive is primitive:
        return process(primitive, args, params)
    outs: list[Any] = run_step(Step(primitive, trace), process, (primitive, args, params), {})
    return outs


def run_step(step: Step, fun: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
    """Call `fun(*args, **kwargs)` as a step, and report its begin and end to this thread's watchers."""
    outer, watchers = _state.step, _state.watchers
    try:
        _state.step = step
        for watcher in watchers:
            watcher(step, True)
        return fun(*args, **kwargs)
    finally:
        _state.step = outer
        for watcher in watchers:
            watcher(step, False)


class _Watching(Restoring):
    __slots__ = ("earlier", "watcher")

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.earlier = (_state.watchers, _state.step)

    def __enter__(self) -> None:
        with _changing:
            _watching.add(id(self))
            _update_watched()
        watchers, _ = self.earlier = (_state.watchers, _state.step)
        _state.watchers = (*watchers, self.watcher)

    def restore(self) -> None:
        """Restore the earlier watchers and step."""
        _state.watchers, _state.step = self.earlier
        with _changing:
            _watching.discard(id(self))
            _update_watched()


def _update_watched() -> None:
    global watched
    watched = bool(_watching) or checking
    watched_changed.send()


def set_checking(on: bool) -> None:
    """Declare whether a check of evaluation is on."""
    global checking
    with _changing:
        checking = on
        _update_watched()


def unwatched(fun: Callable[..., _R], *args: object) -> _R:
    """Call `fun(*args)` without reporting its steps to watchers."""
    with Changed(_state, "watchers", ()):
        return fun(*args)


def watching(watcher: Watcher) -> Restoring:
    """Report this thread's steps to `watcher` for a `with` block, or for a call (`run_within`)."""
    return _Watching(watcher)
