"""Functions that are jitted again outside of transformations: traced once more if what they read may be another."""

from __future__ import annotations

import functools
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import same_state, state_of

X = np.arange(3, dtype=np.float32)
FACTOR = 2.0
TABLE = {"a": [1.0, 2.0]}


def traces_of(call: Callable[[], Any], count: int = 4) -> int:
    """How many times of several a call traces."""
    seen: list[Any] = []
    with cj.extend.observe.observing(lambda event: seen.append(event) if event.kind == "trace" else None):
        for _ in range(count):
            call()
    return len(seen)


def scaled(x: Any) -> Any:
    return x * FACTOR


def layer(w: Any, x: Any) -> Any:
    return jnp.tanh(w @ x)


class Point(NamedTuple):
    """A pair."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Options:
    """Of a function."""

    rate: float = 0.5


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


def weights(n: int = 3) -> Any:
    return jnp.eye(3) * n


def test_what_reads_the_same_is_traced_twice() -> None:
    w, options, table = [weights(), weights(2)], Options(), np.arange(3, dtype=np.float32)

    def net(x: Any) -> Any:
        for v in w:
            x = layer(v, x)
        return jnp.sum(Point(x, x).x ** 2) * options.rate + jnp.sum(table)

    model = Model(2.0)
    of_model = lambda x: model.apply(x)
    looped = lambda x: lax.fori_loop(0, 3, lambda i, x: x * TABLE["a"][1], x)
    power = lambda x, n: x**n
    for call in (
        lambda: cj.jit(scaled)(X),
        lambda: cj.jit(net)(X),
        lambda: cj.jit(cj.grad(net))(X),
        lambda: cj.jit(cj.vmap(scaled))(X),
        lambda: cj.jit(looped)(X),
        lambda: cj.jit(of_model)(X),
        lambda: cj.jit(power, static_argnums=1)(X, 3),
    ):
        wanted = call()
        assert traces_of(call) <= 2
        np.testing.assert_array_equal(call(), wanted)


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


def test_a_cleared_cache_is_empty() -> None:
    call = lambda: cj.jit(scaled)(X)
    for _ in range(3):
        call()
    assert traces_of(call, 1) == 0
    cj.clear_caches()
    assert traces_of(call, 1) == 1
    for _ in range(3):
        call()
    cj.jit(scaled).clear_cache()
    assert traces_of(call, 1) == 1


def test_settings_and_types_are_parts_of_what_is_known() -> None:
    f = lambda x: x * 2 + jnp.arange(3)
    for _ in range(3):
        assert cj.jit(f)(X).dtype == np.float32
        assert cj.jit(f)(X.astype(np.int32)).dtype == np.int32
        with cj.enable_x64(True):
            assert cj.jit(f)(X.astype(np.int32)).dtype == np.int64


def test_states() -> None:
    assert state_of(lambda x: x + open) is None
    assert state_of(lambda x: (i for i in x)) is not None
    held = iter([1])
    assert state_of(lambda x: held) is None
    itself: list[Any] = []
    itself.append(itself)
    f = lambda x: itself
    a, b = state_of(f), state_of(f)
    assert a is not None and b is not None and same_state(a, b)
    large = [jnp.ones(1 << 20)]
    assert state_of(lambda x: large) is None  # it would be kept
    many = list(range(100_000))
    assert state_of(lambda x: many) is None
    one, true = (state_of(functools.partial(scaled, v)) for v in (1, True))
    assert one is not None and true is not None and not same_state(one, true)
