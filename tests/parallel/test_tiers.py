"""`tier="auto"` on several devices: a call waits for the program, whose results are where the program puts them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.sharding import Mesh, NamedSharding
from corejax.sharding import PartitionSpec as P

VALUE = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
ROWS = P("a")


@pytest.fixture
def mesh() -> Mesh:
    return corejax.make_mesh((8,), ("a",))


def loss(x: Any) -> Any:
    step = lambda i, x: jnp.where(i % 2 == 0, jnp.tanh(x), x + 1)
    return jnp.sum(lax.fori_loop(0, 3, step, x) ** 2)


def of_arguments(mesh: Mesh, tier: str) -> Callable[[Any], Any]:
    f = corejax.jit(corejax.value_and_grad(loss), tier=tier)
    return lambda x: f(corejax.device_put(x, NamedSharding(mesh, ROWS)))


def of_shardings(mesh: Mesh, tier: str) -> Callable[[Any], Any]:
    return corejax.jit(corejax.value_and_grad(loss), tier=tier, in_shardings=NamedSharding(mesh, ROWS))


def of_blocks(mesh: Mesh, tier: str) -> Callable[[Any], Any]:
    blocks = corejax.shard_map(lambda x: lax.psum(loss(x), "a"), mesh=mesh, in_specs=ROWS, out_specs=P())
    return corejax.jit(corejax.value_and_grad(blocks), tier=tier)


PROGRAMS = [of_arguments, of_shardings, of_blocks]


@pytest.mark.parametrize("make", PROGRAMS)
def test_results_are_those_of_the_program(make: Callable[..., Callable[[Any], Any]], mesh: Mesh) -> None:
    wanted = make(mesh, "compiled")(VALUE)
    f = make(mesh, "auto")
    for _ in range(3):
        for got, right in zip(f(VALUE), wanted, strict=True):
            np.testing.assert_array_equal(got, right)
            assert got.sharding == right.sharding and len(got.sharding.device_set) == 8
    value, slopes = corejax.value_and_grad(loss)(VALUE)  # by the eager rules
    np.testing.assert_allclose(f(VALUE)[0], value, rtol=1e-5)
    np.testing.assert_allclose(f(VALUE)[1], slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", PROGRAMS)
def test_explain_says_why_a_call_waits(make: Callable[..., Callable[[Any], Any]], mesh: Mesh) -> None:
    report = corejax.explain(make(mesh, "auto"))(VALUE)
    reasons = [event.reasons[0] for event in report.jit if event.kind == "tier"]
    assert len(reasons) == 1 and reasons[0].startswith('tier="auto" waits for the compiler')


def test_threads_that_call_programs_with_collectives(mesh: Mesh) -> None:
    """Programs on several devices and eager first tiers at the same time; no thread waits for another for ever."""
    results: dict[tuple[int, int], Any] = {}

    def work(number: int) -> None:
        spread = of_blocks(mesh, "auto")
        alone = corejax.jit(lambda x: jnp.sum(jnp.sin(x) * number), tier="auto")
        for i in range(5):
            results[number, i] = np.asarray(spread(VALUE)[0]), np.asarray(alone(VALUE))

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread waits for ever"
    value = corejax.value_and_grad(loss)(VALUE)[0]
    assert len(results) == 20
    for (number, _), (spread, alone) in results.items():
        np.testing.assert_allclose(spread, value, rtol=1e-5)
        np.testing.assert_allclose(alone, number * np.sin(VALUE).sum(), rtol=1e-4)
