"""Calls of programs with callbacks that C++ repeats: what they give and raise, and who waits for whom."""

from __future__ import annotations

import functools
import gc
import signal
import threading
import weakref
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import debug, io_callback, jit, lax, pure_callback, random

pytest.importorskip("jaxlib")

X = jnp.array([3.0, 1.0, 2.0])
LIKE_X = cj.ShapeDtypeStruct((3,), np.float32)
LONG = 60.0


def called(fun: Callable[..., Any], x: Any) -> Any:
    return pure_callback(lambda x: np.asarray(fun(x)), cj.ShapeDtypeStruct(x.shape, x.dtype), x)


def noted(log: list[Any], x: Any, **options: Any) -> None:
    io_callback(lambda x: log.append(np.asarray(x).tolist()), None, x, **options)


WAYS: dict[str, Callable[[list[Any], Any], Any]] = {
    "pure": lambda log, x: called(lambda x: (log.append(x.tolist()), x * 2)[1], x),
    "io": lambda log, x: (noted(log, x), x * 2)[1],
    "ordered": lambda log, x: (noted(log, x, ordered=True), x * 2)[1],
    "debug": lambda log, x: (debug.callback(lambda x: log.append(x.tolist()), x), x * 2)[1],
    "without results": lambda log, x: noted(log, x),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_call_calls_back_once(way: str, slow_runs: list[str]) -> None:
    log: list[Any] = []
    f = jit(functools.partial(WAYS[way], log))
    for i in range(6):
        out = f(X + i)
        if out is not None:
            assert out._buf.is_ready()
            np.testing.assert_array_equal(out, (X + i) * 2)
    assert log == [(X + i).tolist() for i in range(6)]
    assert len(slow_runs) == 2


@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_static_and_donated_arguments(donated: tuple[int, ...], slow_runs: list[str]) -> None:
    log: list[Any] = []
    f = jit(lambda x, n: (WAYS["io"](log, x), x * n)[1], static_argnums=1, donate_argnums=donated)
    for n in (2, 3):
        for i in range(4):
            x = X + i
            np.testing.assert_array_equal(f(x, n), (X + i) * n)
            assert x.is_deleted() is bool(donated)
    assert log == [(X + i).tolist() for i in range(4)] * 2
    if not donated or version("jaxlib") < "0.11":  # later releases do not repeat such programs with donation
        assert len(slow_runs) == 3  # the second program is taught at its first call
    np.testing.assert_array_equal(f(X[:2] * 1, 2), X[:2] * 2)  # a signature that no dispatcher knows
    assert len(log) == 9


def test_compiled_ahead(slow_runs: list[str]) -> None:
    log: list[Any] = []
    compiled = jit(functools.partial(WAYS["io"], log)).lower(X).compile()
    for _ in range(6):
        np.testing.assert_array_equal(compiled(X), X * 2)
    assert len(log) == 6 and len(slow_runs) == 2


def test_signatures_in_turn(slow_runs: list[str]) -> None:
    f = jit(lambda x: called(np.negative, x) if x.ndim < 2 else x + 1)
    operands = [X, X[:2], X[0], X.reshape(3, 1), 1.5, np.ones(2, np.int32)]
    for _ in range(4):
        for x in operands:
            np.testing.assert_array_equal(f(x), jnp.add(x, 1) if jnp.ndim(x) == 2 else -jnp.asarray(x))
    assert len(slow_runs) <= 2 * len(operands)


def test_arguments_of_every_kind(slow_runs: list[str]) -> None:
    @functools.partial(jit, static_argnames=("power",), donate_argnums=2)
    def f(x: Any, tree: Any, given: Any, *, power: int, key: Any) -> Any:
        seen = called(lambda x: x**power, x) + tree["a"][0] * tree["b"] + given
        return {"sum": seen, "key": random.fold_in(key, 1)}

    for i in range(4):
        given = X + i
        tree = {"a": (X, None), "b": 2 if i % 2 else np.float32(2)}
        out = f(np.full(3, i, np.float32), tree, given, power=2, key=random.key(i))
        np.testing.assert_array_equal(out["sum"], i**2 + 2 * X + X + i)
        assert given.is_deleted() and out["key"] == random.fold_in(random.key(i), 1)
    large = np.ones((300, 300), np.float32)
    g = jit(lambda x: called(np.negative, x))
    for i in range(4):
        out = g(large)
        large[0, 0] += 1  # it is the caller's
        assert out[0, 0] == -1.0 - i
    assert len(slow_runs) < 8


class Refused(Exception):
    pass


@pytest.mark.parametrize("wrap", [jit, lambda f: jit(f).lower(X).compile()], ids=["jit", "ahead"])
def test_what_is_raised(wrap: Callable[..., Any], slow_runs: list[str]) -> None:
    def positive(x: Any) -> Any:
        if x.min() < 0:
            raise Refused(x.tolist())
        return x

    f = wrap(lambda x: called(positive, x) + 1)
    for i in range(5):
        np.testing.assert_array_equal(f(X), X + 1)
        with pytest.raises(Refused) as info:
            f(X - 10 * (i + 1))
        assert info.value.args == ((X - 10 * (i + 1)).tolist(),)
        [note] = info.value.__notes__
        assert "the callback '<lambda>' of pure_callback" in note and "test_repeated_calls.py" in note
    assert len(slow_runs) <= 3


def test_programs_on_several_threads(slow_runs: list[str]) -> None:
    """XLA goes on after large operations on threads of its own, and calls back there; the call waits nevertheless."""

    def positive(x: Any) -> Any:
        if x.min() < 0:
            raise Refused
        return x

    large = jnp.ones(1_000_000)
    f = jit(lambda x, y: called(positive, x * y) * 3 + jnp.sum(x))
    g = jit(lambda x, y: debug.callback(positive, x * y))
    for _ in range(6):
        assert f(large, 2.0)._buf.is_ready()
        g(large, 2.0)
        for h in (f, g):
            with pytest.raises(Refused):
                h(large, -2.0)
    assert len(slow_runs) <= 6


def test_an_interrupt_in_a_callback() -> None:
    interrupts = [False]

    def interrupted(x: Any) -> Any:
        if interrupts[0]:
            signal.raise_signal(signal.SIGINT)
        return x

    f = jit(lambda x: called(interrupted, x) + 1)
    for _ in range(4):
        interrupts[0] = False
        np.testing.assert_array_equal(f(X), X + 1)
        interrupts[0] = True
        with pytest.raises(KeyboardInterrupt):
            f(X)


def test_a_callback_that_calls_the_function(slow_runs: list[str]) -> None:
    @jit
    def countdown(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: called(lambda x: countdown(x - 1), x), lambda x: x - 7, x)

    for _ in range(4):
        assert countdown(jnp.float32(5)) == -7.0
    assert len(slow_runs) < 24


def test_callbacks_that_wait_for_each_other() -> None:
    """Each of two threads is in a callback of one function at once, in calls that C++ repeats."""
    together = threading.Barrier(2, timeout=LONG)
    calls: list[int] = []

    def meet(x: Any) -> Any:
        if x.min() > 0:
            calls.append(together.wait())
        return x

    f = jit(lambda x: called(meet, x))
    for _ in range(3):
        f(-X)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                f(X)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(LONG)
    assert not failures and len(calls) == 40


def test_many_threads_call_back_as_often_as_they_call() -> None:
    log: list[Any] = []
    f = jit(lambda x: (noted(log, x.sum()), x + 1)[1])

    def work(i: int) -> None:
        for k in range(30):
            x = jnp.full((1 + (i + k) % 3,), float(k))
            np.testing.assert_array_equal(f(x), x + 1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(log) == sorted(float(k * (1 + (i + k) % 3)) for i in range(4) for k in range(30))


def test_the_barrier_waits_for_calls_of_other_threads() -> None:
    entered, leave, done = threading.Event(), threading.Event(), []

    def slow(x: Any) -> None:
        if float(x) > 0:
            entered.set()
            leave.wait(LONG)

    f = jit(lambda x: (debug.callback(slow, x), x)[1])
    for _ in range(3):
        f(jnp.float32(0))
    cj.effects_barrier()
    thread = threading.Thread(target=lambda: (f(jnp.float32(1)), done.append("call")))
    thread.start()
    assert entered.wait(LONG)
    waits = threading.Thread(target=lambda: (cj.effects_barrier(), done.append("barrier")))
    waits.start()
    assert done == []
    leave.set()
    waits.join(LONG)
    thread.join(LONG)
    assert sorted(done) == ["barrier", "call"]


@pytest.mark.sampled
@pytest.mark.parametrize("size", [100, 16_384, 16_385, 1_000_000])
@pytest.mark.parametrize("put", [lambda x: x, cj.device_put, lambda x: [x, 2.0]], ids=["NumPy", "put", "in a list"])
def test_arguments_that_are_not_computed_yet(size: int, put: Any, slow_runs: list[str]) -> None:
    """A program that waits for its arguments would run on a thread of XLA's, and call back there."""
    threads = set()

    def mine(x: Any) -> Any:
        threads.add(threading.get_ident())
        return x

    f = jit(lambda x: called(mine, x[0]) * x[1] if isinstance(x, list) else called(mine, x))
    value = np.ones(size, np.float32)
    for i in range(5):
        value[:] = i
        x = put(value)
        out = f(x)
        value[:] = -1  # it is the caller's
        assert out[0] == out[-1] == (2 * i if isinstance(x, list) else i)
    assert threads == {threading.get_ident()} and len(slow_runs) < 5


def test_callbacks_that_change_the_arguments_containers() -> None:
    def grow(x: Any) -> Any:
        if len(parts) < 6:
            parts.append(X)
        return x

    parts = [X]
    f = jit(lambda xs: called(grow, sum(xs)))
    for _ in range(9):
        count = len(parts)
        np.testing.assert_array_equal(f(parts), count * X)


def test_functions_and_their_callbacks_are_freed() -> None:
    class Held:
        def __call__(self, x: Any) -> Any:
            return x

    held = Held()
    gone = weakref.ref(held)
    f = jit(lambda x, held=held: called(held, x) + 1)
    for _ in range(4):
        f(X)
    calls = weakref.ref(f)
    del held, f
    cj.clear_caches()
    gc.collect()
    assert calls() is None
    other = jit(jnp.negative)
    for _ in range(100):  # what XLA's threads let go of is freed in the calls that come later
        other(X)
        gc.collect()
        if gone() is None:
            break
    assert gone() is None


def test_caches_that_are_cleared(slow_runs: list[str]) -> None:
    f = jit(lambda x: called(np.negative, x))
    for clear in (f.clear_cache, cj.clear_caches, lambda: None):
        for _ in range(3):
            np.testing.assert_array_equal(f(X), -X)
        clear()
    assert 3 <= len(slow_runs) <= 5


def test_a_deleted_buffer_is_refused() -> None:
    f = jit(lambda x: called(np.negative, x))
    for _ in range(3):
        f(X)
    x = X + 1
    x._buf.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)


def test_under_transformations() -> None:
    f = jit(lambda x: (debug.callback(lambda x: None, x), jnp.sin(x))[1])
    for _ in range(4):
        np.testing.assert_array_equal(f(X), jit(jnp.sin)(X))
    np.testing.assert_allclose(cj.vmap(cj.grad(f))(X), jnp.cos(X), rtol=1e-6)
    np.testing.assert_allclose(jit(lambda x: f(x) * 2)(X), jnp.sin(X) * 2, rtol=1e-6)
    with cj.disable_jit():
        np.testing.assert_allclose(f(X), jnp.sin(X), rtol=1e-6)
