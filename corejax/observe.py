"""Who watches: slow paths (a function traced, a program compiled, a linearisation) report to the thread's observers.

Fast paths report nothing. A slow path asks `observed()` before it prepares a report, so that it costs one attribute
of a thread-local when nobody watches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corejax.restoring import Restoring


@dataclass(frozen=True)
class Event:
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
    facts: Mapping[str, Any] = field(default_factory=dict)


Observer = Callable[[Event], None]


class _State(threading.local):
    observers: tuple[Observer, ...] = ()


_state = _State()


def observed() -> bool:
    """Whether somebody watches this thread."""
    return bool(_state.observers)


def notify(event: Event) -> None:
    """Tell the thread's observers."""
    for observer in _state.observers:
        observer(event)


class _Observing(Restoring):
    __slots__ = ("earlier", "observer")

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.earlier = _state.observers

    def __enter__(self) -> None:
        self.earlier = _state.observers
        _state.observers = (*self.earlier, self.observer)

    def restore(self) -> None:
        """As it was before."""
        _state.observers = self.earlier


def observing(observer: Observer) -> Restoring:
    """Have `observer` told of this thread's events for a `with` block."""
    return _Observing(observer)
