"""Programs with callbacks while other programs run in the background: calls wait, and C++ repeats them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import debug, io_callback, jit, lax, pure_callback

pytest.importorskip("jaxlib")

pytestmark = pytest.mark.own_process  # the setting applies to the client, which a process creates once

SIZE = 512  # a power of 2: products are exact
LONG = 60.0


@pytest.fixture(scope="module", autouse=True)
def background() -> Iterator[None]:
    with cj.config.override(cpu_enable_async_dispatch=True):
        yield


def called(fun: Callable[..., Any], x: Any) -> Any:
    return pure_callback(lambda x: np.asarray(fun(x)), cj.ShapeDtypeStruct(x.shape, x.dtype), x)


def matrix(value: float) -> Any:
    """Return a matrix that products leave unchanged, and which is being computed."""
    return jit(lambda x: x @ x @ x)(np.full((SIZE, SIZE), 1 / SIZE, np.float32)) * value


WAYS: dict[str, Callable[[list[float], Any], Any]] = {
    "pure": lambda log, x: called(lambda x: (log.append(float(x[0, 0])), x)[1], x @ x) @ x,
    "io": lambda log, x: (io_callback(lambda x: log.append(float(x)), None, x[0, 0]), x @ x)[1],
    "ordered": lambda log, x: (io_callback(lambda x: log.append(float(x)), None, x[0, 0], ordered=True), x @ x)[1],
    "debug": lambda log, x: (debug.callback(lambda x: log.append(float(x)), x[0, 0]), x @ x)[1],
    "branch": lambda log, x: lax.cond(x[0, 0] >= 0, lambda x: WAYS["pure"](log, x @ x), lambda x: x, x),
    "without results": lambda log, x: io_callback(lambda x: log.append(float(x)), None, (x @ x)[0, 0]),
}


@pytest.mark.parametrize("loop", [False, True], ids=["once", "in a loop"])
@pytest.mark.parametrize("way", WAYS)
def test_calls_wait_and_take_the_fast_path(way: str, loop: bool, slow_runs: list[str]) -> None:
    log: list[float] = []
    fun = WAYS[way]
    has_results = way != "without results"

    @jit
    def f(x: Any) -> Any:
        if not loop:
            return fun(log, x)
        return lax.fori_loop(0, 3, lambda i, x: fun(log, x) if has_results else (fun(log, x), x)[1], x)

    x = matrix(1.0)
    for i in range(6):
        out = f(x)
        assert len(log) == (i + 1) * (3 if loop else 1)
        if has_results:
            assert out._buf.is_ready()
            np.testing.assert_array_equal(out, x)
    assert slow_runs.count("f") == (2 if has_results or loop else 6)


@pytest.mark.parametrize("way", ["pure", "debug"])
def test_exceptions_are_raised_by_the_call(way: str, slow_runs: list[str]) -> None:
    class Refused(Exception):
        pass

    def positive(x: Any) -> Any:
        if x.min() < 0:
            raise Refused
        return x

    @jit
    def f(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return called(positive, x @ x) @ x if way == "pure" else (debug.callback(positive, x @ x @ x), x)[1]

        return lax.fori_loop(0, 2, body, x)

    good, bad = matrix(1.0), matrix(-1.0) if way == "debug" else matrix(1.0).at[0, 1].set(-SIZE)
    for _ in range(4):
        np.testing.assert_array_equal(f(good), good)
        with pytest.raises(Refused):
            f(bad)
    assert slow_runs.count("f") <= 3


def test_an_interrupt_in_a_callback() -> None:
    interrupts = [False]

    def interrupted(x: Any) -> Any:
        if interrupts[0]:
            signal.raise_signal(signal.SIGINT)
        return x

    f = jit(lambda x: lax.fori_loop(0, 3, lambda i, x: called(interrupted, x @ x) @ x, x))
    x = matrix(1.0)
    for _ in range(4):
        interrupts[0] = False
        np.testing.assert_array_equal(f(x), x)
        interrupts[0] = True
        with pytest.raises(KeyboardInterrupt):
            f(x)


def test_callbacks_that_call_jitted_functions_here_and_in_other_threads() -> None:
    g = jit(lambda x: x @ x @ x)

    def elsewhere(x: Any) -> Any:
        outs: list[Any] = []
        thread = threading.Thread(target=lambda: outs.append(np.asarray(g(x))), daemon=True)
        thread.start()
        thread.join(LONG)
        return outs[0]

    f = jit(lambda x: called(elsewhere, called(g, x @ x)) @ x)
    x = matrix(1.0)
    for _ in range(10):
        for _ in range(5):
            x = g(x)  # queued before the program with callbacks
        x = f(x)
    np.testing.assert_array_equal(x, matrix(1.0))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                f(g(x))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(LONG)
    assert not failures and not any(t.is_alive() for t in threads)
