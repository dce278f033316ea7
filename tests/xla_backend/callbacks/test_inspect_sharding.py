"""`debug.inspect_array_sharding` and pictures of shardings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import debug, jit

pytest.importorskip("jaxlib")

WAYS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit}
way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
TALL = ["\u2502        \u2502", "\u2502 CPU 0  \u2502", "\u2502        \u2502"]
FLAT = ["\u2502 CPU 0 \u2502"]


@way
def test_once_under_each_transformation(way: Any) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        debug.inspect_array_sharding(x, callback=lambda sharding: seen.append(sharding.device_set))
        return (x * x).sum()

    x = jnp.ones((2, 3))
    for transform in (f, cj.grad(f), cj.vmap(f), cj.vmap(cj.grad(jit(f))), cj.grad(cj.checkpoint(f))):
        way(transform)(x)
    assert seen == [{cj.devices()[0]}] * 5


@way
def test_pictures(way: Any, capsys: Any) -> None:
    way(lambda x: debug.visualize_array_sharding(x, scale=0.4))(jnp.ones((4, 4)))
    debug.visualize_array_sharding(jnp.ones(40))
    tall, flat = (["\u250c{0}\u2510", *lines, "\u2514{0}\u2518"] for lines in (TALL, FLAT))
    wanted = [line.format("\u2500" * 8) for line in tall] + [line.format("\u2500" * 7) for line in flat]
    assert capsys.readouterr().out.splitlines() == wanted


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="takes an array, got 'x' of type str"):
        debug.inspect_array_sharding("x", callback=print)
    with pytest.raises(TypeError, match="the callback must be a function, got 3"):
        debug.inspect_array_sharding(1.0, callback=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"one or two dimensions, got the shape \(\)"):
        debug.visualize_array_sharding(jnp.ones(()))
