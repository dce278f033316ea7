"""`corejax.monitoring`: listeners that are called for events of the whole process, as in `jax.monitoring`.

    corejax.monitoring.register_event_duration_secs_listener(lambda event, duration, **more: ...)

Libraries record events of their own. corejax records the duration of each trace and compilation of a jitted function
under JAX's names. `corejax.extend.messages.observe` has the reasons as well, and is for a block of one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from corejax.extend.messages import observe

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

Listener = Callable[..., Any]

_KINDS = ("event", "duration", "time_span", "scalar")
_lock = threading.Lock()
_listeners: dict[str, tuple[Listener, ...]] = dict.fromkeys(_KINDS, ())  # tuples are not changed while they are read
_NAMES = {"trace": "/jax/core/compile/jaxpr_trace_duration", "compile": "/jax/core/compile/backend_compile_duration"}


def _register(kind: str, callback: Listener) -> None:
    if not callable(callback):
        raise TypeError(f"a listener must be a function, got {callback!r} of type {type(callback).__name__}")
    with _lock:
        _listeners[kind] = (*_listeners[kind], callback)


def _unregister(kind: str, callback: Listener) -> None:
    with _lock:
        rest = list(_listeners[kind])
        if callback not in rest:
            raise ValueError(f"{callback!r} is not registered as a listener of this kind")
        rest.remove(callback)
        _listeners[kind] = tuple(rest)


def _call(kind: str, *args: Any, **more: Any) -> None:
    for callback in _listeners[kind]:
        callback(*args, **more)


def clear_event_listeners() -> None:
    """Remove all listeners, of every kind."""
    with _lock:
        _listeners.update(dict.fromkeys(_KINDS, ()))


def record_event(event: str, **kwargs: str | int) -> None:
    """Call the listeners of events: `listener(event, **kwargs)`."""
    _call("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call the listeners of durations in seconds: `listener(event, duration, **kwargs)`."""
    _call("duration", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call the listeners of time spans: `listener(event, start_time, end_time, **kwargs)`."""
    _call("time_span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call the listeners of numbers: `listener(event, value, **kwargs)`."""
    _call("scalar", event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Add a listener that `record_event` calls. Listeners are called in the order in which they were added."""
    _register("event", callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Add a listener that `record_event_duration_secs` calls, and each trace and compilation of a jitted function."""
    _register("duration", callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Add a listener that `record_event_time_span` calls."""
    _register("time_span", callback)


def register_scalar_listener(callback: Listener) -> None:
    """Add a listener that `record_scalar` calls."""
    _register("scalar", callback)


def unregister_event_listener(callback: Listener) -> None:
    """Remove a listener of events. Raise ValueError if it is not registered."""
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Remove a listener of durations. Raise ValueError if it is not registered."""
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Remove a listener of time spans. Raise ValueError if it is not registered."""
    _unregister("time_span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Remove a listener of numbers. Raise ValueError if it is not registered."""
    _unregister("scalar", callback)


def listening() -> bool:
    """Return whether there is a listener of durations, for which traces and compilations are reported."""
    return bool(_listeners["duration"])


def report(event: observe.Event) -> None:
    """Record the duration of a trace or a compilation."""
    if event.kind in _NAMES and event.ms is not None:
        record_event_duration_secs(_NAMES[event.kind], event.ms / 1000, fun_name=event.name)
