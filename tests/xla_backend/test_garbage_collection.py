"""The backend's part in a collection of garbage by Python."""

from __future__ import annotations

import _thread
import functools
import gc
import itertools
import signal

import pytest

pytest.importorskip("jaxlib")


def test_an_interrupt_while_garbage_is_collected_is_not_lost() -> None:
    from corejax_xla_backend._jaxlib import _probe

    class Interrupts(itertools.starmap):  # type: ignore[type-arg]
        stop = property(next)

    # As a signal that arrives while the collector runs: noted in C, before the backend's callback.
    interrupt = functools.partial(getattr, Interrupts(_thread.interrupt_main, itertools.repeat(())))
    callbacks, handler = gc.callbacks[:], signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.callbacks[:] = [interrupt, _probe.on_collection]
    try:
        with pytest.raises(KeyboardInterrupt):
            gc.collect()
            for _ in range(100):
                pass
    finally:
        gc.callbacks[:] = callbacks
        signal.signal(signal.SIGINT, handler)


def test_what_other_threads_dropped_goes_with_a_collection() -> None:
    from corejax_xla_backend._jaxlib import _probe

    assert _probe.on_collection in gc.callbacks
    calls: list[str] = []
    collector = _probe._Collector(lambda: calls.append("called"), itertools.repeat(()))
    for phase in ("start", "stop", "start", "stop"):
        assert getattr(collector, phase) is None
        assert _probe.on_collection(phase, {}) is None
    assert calls == ["called"] * 4
