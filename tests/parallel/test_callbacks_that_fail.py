"""What callbacks of programs over several devices raise: the devices that wait for each other go on, and it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, debug, io_callback, jit, lax, pure_callback

VALUE = np.ones((8, 4), np.float32)
LIKE = corejax.ShapeDtypeStruct((8, 4), np.float32)


class Refused(Exception):
    pass


def positive(x: Any) -> Any:
    if np.min(x) < 0:
        raise Refused(float(np.min(x)))
    return np.asarray(x)


def _in_blocks(x: Any) -> Any:
    def blocks(x: Any) -> Any:
        debug.callback(positive, x, partitioned=True)
        return lax.psum(x, "x")

    return corejax.shard_map(blocks, mesh=corejax.make_mesh((8,), ("x",)), in_specs=P("x"), out_specs=P())(x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "pure": lambda x: pure_callback(positive, LIKE, x) + x.sum(),
    "io": lambda x: io_callback(positive, LIKE, x) + x.sum(),
    "ordered": lambda x: io_callback(positive, LIKE, x, ordered=True) + x.sum(),
    "debug": lambda x: (debug.callback(positive, x), x / x.sum())[1],
    "of a sum": lambda x: (debug.callback(positive, x.sum()), {"x": x.T @ x, "sum": x.sum()})[1],
    "without results": lambda x: debug.callback(positive, x),
    "each device": lambda x: (debug.callback(positive, x, partitioned=True), x / x.sum())[1],
    "shard_map": _in_blocks,
    "scan": lambda x: lax.scan(lambda c, _: (pure_callback(positive, LIKE, c) * c.sum(), None), x, None, 3)[0],
    "while": lambda x: lax.while_loop(lambda c: pure_callback(positive, LIKE, c).sum() < 99, lambda c: c + c.sum(), x),
}


def spread(value: Any) -> Any:
    return corejax.device_put(value, NamedSharding(corejax.make_mesh((8,), ("x",)), P("x")))


@pytest.mark.parametrize("way", WAYS)
def test_it_reaches_the_caller_and_nobody_waits_for_ever(way: str) -> None:
    f = jit(WAYS[way])
    x = spread(VALUE)
    with pytest.raises(Refused):
        f(spread(np.where(np.arange(8)[:, None] == 0, -8 * VALUE, VALUE)))
    wanted = [np.asarray(y) for y in corejax.tree.leaves(f(x))]
    for _ in range(3):
        with pytest.raises(Refused) as info:
            f(-x)
        [note] = info.value.__notes__
        assert "'positive'" in note and "test_callbacks_that_fail.py" in note
        for y, expected in zip(corejax.tree.leaves(f(x)), wanted, strict=True):
            assert y._buf.is_ready()
            np.testing.assert_array_equal(y, expected)


def test_compiled_ahead() -> None:
    x = spread(VALUE)
    f = jit(WAYS["pure"]).lower(x).compile()
    for _ in range(3):
        np.testing.assert_array_equal(f(x), VALUE + 32)
        with pytest.raises(Refused):
            f(-x)


def test_threads_get_a_right_result_or_an_error() -> None:
    f, x = jit(WAYS["debug"]), spread(VALUE)
    wrong: list[Any] = []

    def work(sign: int) -> None:
        raised = 0
        for _ in range(10):
            try:
                y = np.asarray(f(sign * x))
                if sign < 0 or not np.array_equal(y, VALUE / 32):
                    wrong.append(y)
            except Refused:
                raised += 1
            except corejax.errors.HostCallbackError as error:  # of the other's call
                assert "at the same time" in str(error)
        if sign < 0 and not raised:
            wrong.append(raised)

    threads = [threading.Thread(target=work, args=(sign,)) for sign in (1, -1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_program_on_one_device_ends_where_it_fails() -> None:
    seen: list[Any] = []

    @jit
    def f(x: Any) -> Any:
        y = io_callback(positive, LIKE, x, ordered=True)
        debug.callback(seen.append, x.sum(), ordered=True)
        return y

    with pytest.raises(Refused):
        f(-jnp.asarray(VALUE))
    assert not seen


def test_blocks_have_no_order() -> None:
    mapped = corejax.pmap(lambda x: io_callback(positive, LIKE.update(shape=(4,)), x, ordered=True))
    with pytest.raises(
        NotImplementedError, match=r"ordered=True\) in the function of a shard_map or pmap.*use ordered=False"
    ):
        mapped(VALUE)
