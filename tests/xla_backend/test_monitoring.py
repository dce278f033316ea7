"""`corejax.monitoring`: listeners of events, called as JAX's are."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import corejax
import corejax.numpy as jnp
from corejax import monitoring

KINDS: dict[str, tuple[str, str, str, tuple[Any, ...]]] = {
    "event": ("record_event", "register_event_listener", "unregister_event_listener", ()),
    "duration": (
        "record_event_duration_secs",
        "register_event_duration_secs_listener",
        "unregister_event_duration_listener",
        (0.5,),
    ),
    "span": (
        "record_event_time_span",
        "register_event_time_span_listener",
        "unregister_event_time_span_listener",
        (1.0, 2.5),
    ),
    "scalar": ("record_scalar", "register_scalar_listener", "unregister_scalar_listener", (3,)),
}


@pytest.fixture(autouse=True)
def no_listeners() -> Iterator[None]:
    yield
    monitoring.clear_event_listeners()


@pytest.mark.parametrize("root", ["corejax", "jax"])
@pytest.mark.parametrize("kind", KINDS)
def test_listeners(kind: str, root: str) -> None:
    if root == "jax":
        pytest.importorskip("jax")
    module = importlib.import_module(f"{root}.monitoring")
    record, register, unregister = (getattr(module, name) for name in KINDS[kind][:3])
    seen: list[Any] = []

    def first(*args: Any, **more: Any) -> None:
        seen.append((1, args, more))

    def second(*args: Any, **more: Any) -> None:
        seen.append((2, args, more))

    register(first)
    register(second)
    values = KINDS[kind][3]
    record("/acme/event", *values, source="a")
    assert seen == [(i, ("/acme/event", *values), {"source": "a"}) for i in (1, 2)]
    unregister(first)
    record("/acme/event", *values)
    assert len(seen) == 3 and seen[-1] == (2, ("/acme/event", *values), {})
    unregister(second)


def test_traces_and_compilations() -> None:
    seen: list[Any] = []
    monitoring.register_event_duration_secs_listener(lambda event, secs, **more: seen.append((event, secs, more)))

    def scaled(x: Any) -> Any:
        return x * 3.5 + 0.125

    corejax.jit(scaled)(jnp.ones(7))
    found = {event: (secs, more) for event, secs, more in seen if more["fun_name"] == "scaled"}
    assert set(found) == {
        "/jax/core/compile/jaxpr_trace_duration",
        "/jax/core/compile/backend_compile_duration",
    }
    assert all(0 < secs < 100 for secs, _ in found.values())
    monitoring.clear_event_listeners()
    count = len(seen)
    corejax.jit(lambda x: x * 4.5 + 1)(jnp.ones(7))
    assert len(seen) == count


def test_errors() -> None:
    with pytest.raises(TypeError, match="a listener must be a function, got 3 of type int"):
        monitoring.register_event_listener(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not registered as a listener of this kind"):
        monitoring.unregister_event_listener(print)
