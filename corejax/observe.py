"""Who watches: what happens in a thread is told to the thread's observers, and nothing of it while there are none.

Slow paths (a function traced, a program compiled, a linearisation) report an `Event` to observers. Interpreters and
rules report each `Step` to watchers: a primitive that is given to a trace, a rule that runs.
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
    """Something that happened on a slow path.

    Attributes:
        kind: what: "trace", "compile", "call" (of jitted functions), "linearize".
        name: of the function.
        reasons: why it was necessary, one phrase each.
        ms: milliseconds that it took, what happened inside included.
        facts: what else there is to say, by name; values that JSON has.
    """

    kind: str
    name: str
    reasons: tuple[str, ...] = ()
    ms: float | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


class Step(NamedTuple):
    """A primitive in the hands of an interpreter, or a rule that runs. Steps nest, as calls do.

    Attributes:
        primitive: the primitive.
        trace: the `Trace` that was given it, which may pass it on: the same primitive directly inside, for another
            trace. None where a rule runs.
        kind: the rule kind ("jvp"); None for an interpreter.
        platform: that the rule is for, if it is for one only.
        rule: the rule as registered (`Rule`): by whom, from what derived.
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
    step: Step | None = None  # the innermost one


_state = _State()


# -- events --------------------------------------------------------------------------------------------------------


def observed() -> bool:
    """Whether somebody observes this thread: asked before a report is prepared."""
    return bool(_state.observers)


def notify(event: Event) -> None:
    """Tell the thread's observers."""
    for observer in _state.observers:
        observer(event)


def observing(observer: Observer) -> Restoring:
    """Have `observer` told of this thread's events for a `with` block."""
    return Changed(_state, "observers", (*_state.observers, observer))


# -- steps ---------------------------------------------------------------------------------------------------------

# Whether any thread is watched: what interpreters ask about each primitive, as `observe.watched`.
watched = False

# Whether a check of evaluation is on (`evaluation_checks`): `watched` is True then, too, and NumPy takes no elements.
checking = False

# Sent after `watched` was set, changed or not.
watched_changed = Signal("watchers")

_watching: set[int] = set()  # the blocks that watch, by identity
_changing = threading.Lock()


def watched_here() -> bool:
    """Whether this thread is watched."""
    return bool(_state.watchers)


def interpret(
    trace: Any, process: Callable[..., list[Any]], primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """`process(primitive, args, params)` as the step of a trace, unless that step is reported already."""
    step = _state.step
    if step is not None and step.trace is trace and step.primitive is primitive:
        return process(primitive, args, params)
    outs: list[Any] = run_step(Step(primitive, trace), process, (primitive, args, params), {})
    return outs


def run_step(step: Step, fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`fun(*args, **kwargs)`, as a step that this thread's watchers, if it has any, are told of."""
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
            _tell()
        watchers, _ = self.earlier = (_state.watchers, _state.step)
        _state.watchers = (*watchers, self.watcher)

    def restore(self) -> None:
        """As it was before."""
        _state.watchers, _state.step = self.earlier
        with _changing:
            _watching.discard(id(self))
            _tell()


def _tell() -> None:
    global watched
    watched = bool(_watching) or checking
    watched_changed.send()


def set_checking(on: bool) -> None:
    """Say whether a check of evaluation is on."""
    global checking
    with _changing:
        checking = on
        _tell()


def unwatched(fun: Callable[..., _R], *args: Any) -> _R:
    """Return `fun(*args)`; its steps are reported to no watcher."""
    with Changed(_state, "watchers", ()):
        return fun(*args)


def watching(watcher: Watcher) -> Restoring:
    """Have `watcher` told of this thread's steps for a `with` block, or for a call (`run_within`)."""
    return _Watching(watcher)
