"""Tracing and compiling in many threads at once: nobody waits for what waits for him."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import grad, jit
from corejax_xla_backend._jit import traces as trace_cache

pytest.importorskip("jaxlib")

X = np.arange(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for another thread's trace, which waits for him, gives up soon."""
    monkeypatch.setattr(trace_cache, "PATIENCE", 0.2)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives up."""
    monkeypatch.setattr(trace_cache, "PATIENCE", LONG)


LONG = 60  # seconds after which a thread that should have ended counts as stuck


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Results of functions that run at the same time; an error is raised here."""
    results: list[Any] = [None] * len(functions)

    def run(i: int) -> None:
        try:
            results[i] = functions[i]()
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a thread is stuck"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.parametrize("static", [{}, {"static_argnums": 1}])
def test_a_thread_started_inside_a_trace_calls_the_same_function(static: dict[str, Any]) -> None:
    inner: list[Any] = []

    def fun(x: Any, n: int) -> Any:
        if not inner:
            inner.append(None)
            inner[:] = in_threads(lambda: f(X, 2))
        return x * n

    f = jit(fun, **static)
    np.testing.assert_array_equal(f(X, 2), 2 * X)
    np.testing.assert_array_equal(inner[0], 2 * X)
    np.testing.assert_array_equal(f(X, 2), 2 * X)


def test_threads_that_trace_one_function_meet_in_it() -> None:
    barrier = threading.Barrier(4, timeout=LONG)
    inside = [threading.Event() for _ in range(4)]
    entering = iter(inside)

    def fun(x: Any) -> Any:
        next(entering).set()
        barrier.wait()
        return x + 1

    f = jit(fun)

    def call(i: int) -> Any:
        # One after the other: a call that finds another's signature just being entered waits for its end, in jaxlib.
        assert i == 0 or inside[i - 1].wait(LONG)
        return f(X)

    for result in in_threads(*[lambda i=i: call(i) for i in range(4)]):
        np.testing.assert_array_equal(result, X + 1)
    np.testing.assert_array_equal(f(X), X + 1)  # the barrier would break: it is traced no more


def test_many_threads_compile_a_program_once() -> None:
    from corejax_xla_backend import _jaxlib

    def count() -> int:
        return len(_jaxlib.client().live_executables())

    f = jit(lambda x: jnp.sin(x) * 3 + 1)
    before = count()
    for result in in_threads(*[lambda: f(X)] * 100):
        np.testing.assert_allclose(result, np.sin(X) * 3 + 1, rtol=1e-6)
    assert count() <= before + 1


def test_one_thread_compiles_while_another_traces() -> None:
    traced, compiled = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        traced.set()
        assert compiled.wait(LONG)
        return x - 1

    def compiles() -> Any:
        assert traced.wait(LONG)
        result = jit(lambda x: jnp.cos(x))(X)
        compiled.set()
        return result

    f = jit(waits)
    first, second = in_threads(lambda: f(X), compiles)
    np.testing.assert_array_equal(first, X - 1)
    np.testing.assert_allclose(second, np.cos(X), rtol=1e-6)


def test_caches_are_cleared_while_others_call() -> None:
    shared = jit(lambda x: jnp.sum(x * x))
    done = threading.Event()

    def clears() -> None:
        while not done.is_set():
            corejax.clear_caches()

    def calls(i: int) -> Any:
        f = jit(lambda x: shared(x * i))
        return [float(f(X)), float(f(X)), float(grad(shared)(X * i).sum())]

    def all_calls() -> list[Any]:
        try:
            return in_threads(*[lambda i=i: calls(i) for i in range(6)])
        finally:
            done.set()

    results = in_threads(clears, all_calls)[1]
    assert results == [[5.0 * i * i, 5.0 * i * i, 6.0 * i] for i in range(6)]


def test_a_function_that_calls_itself_while_it_is_traced() -> None:
    f = jit(lambda x: f(x) + 1)
    with pytest.raises(RecursionError):
        f(X)
    countdown = jit(lambda x, n: x if n == 0 else countdown(x, n - 1) + 1, static_argnums=1)
    np.testing.assert_array_equal(countdown(X, 5), X + 5)


pause = threading.Event()  # that nobody sets


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    for _ in range(LONG * 1000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not happen")


def waits(thread: threading.Thread) -> bool:
    """Whether a thread waits for another's trace."""
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code is trace_cache.TraceCache.trace_once.__code__:
            return True
        frame = frame.f_back
    return False


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("fails", [False, True])
def test_a_function_is_traced_by_one_of_many_threads(fails: bool) -> None:
    traces: list[int] = []
    come = threading.Event()

    @jit
    def f(x: Any) -> Any:
        traces.append(threading.get_ident())
        if len(traces) == 1:
            assert come.wait(LONG)
            if fails:
                raise KeyError("the first one")
        return jnp.sin(x) * 2

    def first() -> Any:
        try:
            return f(X)
        except KeyError:
            return None

    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(f(X)), daemon=True) for _ in range(7)]
    starter = threading.Thread(target=lambda: results.append(first()), daemon=True)
    starter.start()
    until(lambda: bool(traces))
    for thread in threads:  # one by one: a call that finds another's signature just being entered waits in jaxlib
        thread.start()
        until(lambda thread=thread: waits(thread))
    come.set()
    for thread in (starter, *threads):
        thread.join(LONG)
        assert not thread.is_alive()
    assert len(traces) == 1 + fails
    assert [x is None for x in results].count(True) == fails
    for x in results:
        assert x is None or np.allclose(np.asarray(x), 2 * np.sin(X))


@pytest.mark.usefixtures("patient")
def test_two_functions_that_call_each_other_are_traced_in_two_threads() -> None:
    """Each thread traces one of them, and meets the other's trace inside of it."""
    meet = threading.Barrier(2, timeout=LONG)
    depth = threading.local()

    def body(name: str) -> Callable[[Any], Any]:
        def fun(x: Any) -> Any:
            if getattr(depth, "inside", False):
                return x + 1
            depth.inside = True
            meet.wait()
            out = functions["g" if name == "f" else "f"](x) * 2
            depth.inside = False
            return out

        return fun

    functions = {name: jit(body(name)) for name in "fg"}
    for found in in_threads(lambda: functions["f"](X), lambda: functions["g"](X)):  # whichever trace was there first
        assert found.shape == X.shape


@pytest.mark.usefixtures("patient")
def test_who_waits_can_be_interrupted() -> None:
    begun, release = threading.Event(), threading.Event()

    @jit
    def f(x: Any) -> Any:
        begun.set()
        assert release.wait(LONG)
        return x * 2

    other = threading.Thread(target=lambda: f(X))
    other.start()
    assert begun.wait(LONG)
    interrupting = threading.Thread(target=_interrupt_when_waiting)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            f(X)
    finally:
        signal.signal(signal.SIGINT, before)
        release.set()
        interrupting.join(LONG)
        other.join(LONG)
    np.testing.assert_array_equal(f(X), 2 * X)


def _interrupt_when_waiting() -> None:
    until(lambda: waits(threading.main_thread()))
    os.kill(os.getpid(), signal.SIGINT)
