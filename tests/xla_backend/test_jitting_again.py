"""A new `jit` of a function traces the function, so that it sees what has changed since."""

from __future__ import annotations

import abc
import contextlib
import enum
import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp

X = np.arange(3, dtype=np.float32)
FACTOR = 2.0
TABLE = {"a": [1.0, 2.0]}


def traces_of(call: Callable[[], Any], count: int = 4) -> int:
    """How many times of several a call traces."""
    seen: list[Any] = []
    with cj.extend.messages.observe.observing(lambda event: seen.append(event) if event.kind == "trace" else None):
        for _ in range(count):
            call()
    return len(seen)


def scaled(x: Any) -> Any:
    return x * FACTOR


class Model:
    """An object with state."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.calls = 0

    def apply(self, x: Any) -> Any:
        return x * self.factor

    def counted(self, x: Any) -> Any:
        self.calls += 1
        return x


def test_what_has_changed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    factors, model, w, table = [2.0], Model(2.0), {"w": jnp.ones(3)}, np.ones(3, np.float32)
    cell = 2.0

    def use(x: Any) -> Any:
        return helper(x) * factors[0] * model.factor * w["w"] * table * FACTOR * cell * TABLE["a"][0]

    helper = lambda x: x + 1

    def jitted() -> Any:
        return cj.jit(use)(X)

    def check() -> None:
        for _ in range(3):
            np.testing.assert_array_equal(jitted(), use(jnp.asarray(X)))

    check()
    factors[0] = 3.0
    check()
    factors.insert(0, 5.0)
    check()
    model.factor = -1.0
    check()
    w["w"] = jnp.full(3, 7.0)
    check()
    table[1] = 4
    check()
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    check()
    monkeypatch.setitem(TABLE, "a", [3.0])
    check()
    cell = -0.0
    check()
    cell = 0.0
    check()
    assert np.signbit(jitted()).tolist() == np.signbit(use(jnp.asarray(X))).tolist()
    helper = lambda x: x - 1
    check()
    cosine = lambda x: jnp.cos(x)
    for f in (np.cos, np.cos, np.sin, np.sin):
        monkeypatch.setattr(jnp, "cos", jnp.tan if f is np.cos else jnp.sin)
        wanted = (jnp.tan if f is np.cos else jnp.sin)(X)
        for _ in range(3):
            np.testing.assert_allclose(cj.jit(cosine)(X), wanted, rtol=1e-6)


def test_what_can_change_unseen_is_traced_each_time() -> None:
    numbers, model, seen = itertools.count(), Model(1.0), []
    generator = np.random.default_rng(0)
    count = 0

    def counted(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count

    for f in (
        lambda x: x * next(numbers),
        lambda x: x + random.random(),
        lambda x: x + time.perf_counter(),
        lambda x: x + float(generator.normal()),
        lambda x: x + float(np.random.normal()),
        lambda x: seen.append(0) or x,
        model.counted,
        counted,
    ):
        assert traces_of(lambda f=f: cj.jit(f)(X)) == 4
    assert count == 4 and model.calls == 4 and len(seen) == 4


def test_effects_of_tracing_stay(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: Any) -> Any:
        print("traced")
        return x

    for _ in range(3):
        cj.jit(loud)(X)
    assert capsys.readouterr().out == "traced\n" * 3


def test_callbacks_are_those_of_the_function_that_is_called() -> None:
    def make() -> tuple[Callable[[Any], Any], list[Any]]:
        got: list[Any] = []
        return lambda x: cj.debug.callback(got.append, x), got

    f, got = make()
    for count in range(1, 5):
        cj.jit(f)(1.0)
        cj.effects_barrier()
        assert len(got) == count


def test_settings_and_types_are_parts_of_what_is_known() -> None:
    f = lambda x: x * 2 + jnp.arange(3)
    for _ in range(3):
        assert cj.jit(f)(X).dtype == np.float32
        assert cj.jit(f)(X.astype(np.int32)).dtype == np.int32
        with cj.enable_x64(True):
            assert cj.jit(f)(X.astype(np.int32)).dtype == np.int64


class Sign(enum.Enum):
    """Members have an attribute that a test changes."""

    PLUS = 1


class Node:
    """A pytree node whose `unflatten` a test changes."""

    def __init__(self, x: Any) -> None:
        self.x = x


class Shape(abc.ABC):  # noqa: B024
    """A class with which a test registers another class."""


def test_changes_behind_other_objects_are_seen() -> None:
    """Attributes of enumeration members, functions of nodes, settings, NumPy's error state, print options, ABCs."""
    unflatten = [lambda x: Node(x)]
    cj.tree_util.register_pytree_node(Node, lambda n: ((n.x,), None), lambda _, xs: unflatten[0](*xs))
    Sign.PLUS.scale = 2.0  # type: ignore[attr-defined]

    def mapped(x: Any) -> Any:
        return cj.tree_util.tree_map(lambda leaf: leaf, Node(x)).x

    with contextlib.ExitStack() as stack:
        changes: list[tuple[Callable[[Any], Any], Callable[[], Any]]] = [
            (lambda x: x * Sign.PLUS.scale, lambda: setattr(Sign.PLUS, "scale", 3.0)),  # type: ignore[attr-defined]
            (mapped, lambda: unflatten.__setitem__(0, lambda x: Node(x * 2))),
            (
                lambda x: x + (1 if cj.config.default_dtype_bits == 64 else 0),
                lambda: stack.enter_context(cj.config.override(default_dtype_bits=64)),
            ),
            (
                lambda x: x + (1 if np.geterr()["over"] == "raise" else 0),
                lambda: stack.enter_context(np.errstate(over="raise")),
            ),
            (
                lambda x: x + np.get_printoptions()["precision"],
                lambda: stack.enter_context(np.printoptions(precision=3)),
            ),
            (lambda x: x + (1 if isinstance(3, Shape) else 0), lambda: Shape.register(int)),
        ]
        for f, change in changes:
            before = [np.asarray(cj.jit(f)(X)) for _ in range(3)][-1]
            change()
            assert not np.array_equal(cj.jit(f)(X), before)
