"""`io_callback`: as often as the program says, in order where that is asked for; refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import ShapeDtypeStruct, io_callback, jit, lax
from corejax.errors import NotDifferentiableError

pytest.importorskip("jaxlib")

WAYS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit}
way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
ordering = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
I32 = ShapeDtypeStruct((), np.int32)


class Log(list[Any]):
    """What callbacks were called with."""

    def __call__(self, *args: Any) -> None:
        self.append(float(args[0]) if len(args) == 1 else tuple(map(float, args)))


def test_the_namespace_of_jax() -> None:
    from corejax.experimental import io_callback as there

    assert there is io_callback is cj.experimental.io_callback


@way
@ordering
def test_unused_calls_are_kept_and_not_repeated(ordered: bool, way: Any) -> None:
    log = Log()

    def f(x: Any) -> Any:
        io_callback(log, None, x, ordered=ordered)
        io_callback(log, None, x, ordered=ordered)  # equal to the first, and no copy of it
        jit(lambda: io_callback(log, None, 7, ordered=ordered))()

    program = way(f)
    assert program(3.0) is None  # a program without results is waited for, too
    program(3.0)
    assert sorted(log) == [3.0] * 4 + [7.0] * 2


@way
@ordering
def test_results_come_from_the_state_outside(ordered: bool, way: Any) -> None:
    counter = iter(range(100))
    f = lambda: [io_callback(lambda: np.int32(next(counter)), I32, ordered=ordered) for _ in range(3)]
    assert sorted(map(int, way(f)())) == [0, 1, 2]


@way
@ordering
def test_in_loops_and_branches(ordered: bool, way: Any) -> None:
    log = Log()
    note = lambda x: io_callback(log, None, x, ordered=ordered)

    def body(c: Any, x: Any) -> Any:
        lax.cond(x > 1, note, lambda x: None, x)
        return c, io_callback(lambda x: np.int32(x * 2), I32, x, ordered=ordered)

    f = way(lambda xs: (lax.scan(body, 0, xs)[1], lax.while_loop(lambda i: i < 12, lambda i: (note(i), i + 1)[1], 10)))
    doubled, _ = f(jnp.arange(4))
    np.testing.assert_array_equal(doubled, [0, 2, 4, 6])
    assert sorted(log) == [2.0, 3.0, 10.0, 11.0]


@way
def test_vmap_calls_for_each_element(way: Any) -> None:
    log = Log()
    f = lambda x, y: io_callback(lambda x, y: (log(x, y), np.int32(x + y))[1], I32, x, y)
    out = way(cj.vmap(f, in_axes=(0, None)))(np.arange(3), 10)
    np.testing.assert_array_equal(out, [10, 11, 12])
    assert sorted(log) == [(0, 10), (1, 10), (2, 10)]
    assert way(cj.vmap(f))(np.arange(0), np.arange(0)).shape == (0,)
    assert len(log) == 3
    way(cj.vmap(lambda x: io_callback(log, None, 5.0, ordered=True)))(np.arange(3))
    assert log[3:] == [5.0], "it does not depend on the batch"


@way
def test_vmap_of_ordered_ones_is_refused(way: Any) -> None:
    with pytest.raises(
        ValueError, match=r"vmap of an ordered io_callback, of .*: the elements of a batch have no order"
    ):
        way(cj.vmap(lambda x: io_callback(print, None, x, ordered=True)))(jnp.arange(3))
    log = Log()
    way(lambda xs: lax.map(lambda x: io_callback(log, None, x, ordered=True), xs))(jnp.arange(3.0))
    assert log == [0.0, 1.0, 2.0]


@way
@ordering
def test_vmap_where_every_branch_runs_is_refused(ordered: bool, way: Any) -> None:
    note = lambda x: io_callback(print, None, x, ordered=ordered)
    with pytest.raises(NotImplementedError, match="a branch has effects"):
        way(cj.vmap(lambda x: lax.cond(x > 0, note, lambda x: None, x)))(jnp.arange(3))
    if not ordered:
        with pytest.raises(NotImplementedError, match="the loop has effects"):
            way(cj.vmap(lambda x: lax.while_loop(lambda c: c < 2, lambda c: (note(c), c + 1)[1], x)))(jnp.arange(3))


@way
@ordering
def test_derivatives(ordered: bool, way: Any) -> None:
    log = Log()
    note = lambda x: io_callback(log, None, x, ordered=ordered)
    with pytest.raises(NotDifferentiableError, match=r"custom_jvp or custom_vjp around io_callback"):
        way(cj.grad(lambda x: (note(x), x * x)[1]))(2.0)
    assert not log
    stopped = lambda x: (note(lax.stop_gradient(x)), jnp.sin(x))[1]
    for transform in (
        cj.grad,
        lambda f: cj.grad(cj.checkpoint(f)),
        lambda f: cj.grad(jit(f)),
        lambda f: cj.grad(cj.grad(f)),
    ):
        assert np.isfinite(way(transform(stopped))(2.0))
        assert log == [2.0], "once, also where it is computed again"
        log.clear()
    scanned = lambda x: lax.scan(lambda c, i: (stopped(c), None), x, np.arange(3))[0]
    assert way(cj.grad(cj.checkpoint(scanned)))(0.0) == 1.0
    assert log == [0.0] * 3


@way
def test_what_it_raises_and_what_it_gives(way: Any) -> None:
    error = RuntimeError("cannot enter the harbour")

    def refuse(x: Any) -> Any:
        raise error

    for ordered in (False, True):
        with pytest.raises(RuntimeError) as info:
            way(lambda x, ordered=ordered: io_callback(refuse, None, x, ordered=ordered))(1.0)
        assert info.value is error
    assert "refuse' of io_callback, called at" in error.__notes__[0]
    with pytest.raises(TypeError, match=r"structure .*but result_shape_dtypes has"):
        way(lambda x: io_callback(lambda x: 5, None, x))(1.0)


def test_after_a_failure_nothing_of_the_program_is_called_any_more() -> None:
    log = Log()

    def f(x: Any) -> Any:
        for i in range(4):
            io_callback(lambda x: (log(x), 1 // (2 - int(x)))[0], None, x + i, ordered=True)

    with pytest.raises(ZeroDivisionError):
        jit(f)(0)
    assert log == [0.0, 1.0, 2.0]


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_effects_barrier_waits_for_other_threads() -> None:
    started, go, log = threading.Event(), threading.Event(), Log()

    def slow(x: Any) -> None:
        started.set()
        assert go.wait(60)
        cj.effects_barrier()  # in a callback: at once
        log(x)

    worker = threading.Thread(target=jit(lambda x: io_callback(slow, None, x)), args=(1.0,))
    worker.start()
    assert started.wait(60)
    waited: list[Any] = []
    waiting = threading.Thread(target=lambda: (cj.effects_barrier(), waited.append(list(log))))
    waiting.start()
    waiting.join(0.05)
    assert not waited
    go.set()
    waiting.join(60)
    worker.join(60)
    assert waited == [[1.0]]
    cj.effects_barrier()


def test_a_callback_that_calls_its_own_program() -> None:
    def below(n: Any) -> Any:
        return 0 if n == 0 else int(depth(n - 1)) + 1

    depth = jit(lambda n: io_callback(below, I32, n, ordered=True))
    assert depth(4) == depth(4) == 4
    with cj.debug_nans():
        assert depth(4) == 4


def test_threads_with_callbacks_that_call_programs() -> None:
    inner = jit(lambda x: x * 2 + 1)
    f = jit(lambda x: io_callback(lambda y: inner(y), ShapeDtypeStruct((64, 64), np.float32), x @ x).sum())
    x = np.eye(64, dtype=np.float32)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.extend(float(f(x)) for _ in range(5))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [64 * 64 + 128.0] * 30
