"""What grows with what: times against the length of a program and the depth of a nest, memory against policies."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from cases.basic import chain
from cases.loops import fresh, nested_scans
from cases.registry import X

import corejax
import corejax.lax as clax
import corejax.numpy as cnp

DEPTHS = range(1, 8)


def best(make: Callable[[], Callable[[], Any]], rounds: int) -> float:
    """Best time of a call of what `make` gives."""
    times = []
    for _ in range(rounds):
        call = make()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def lengths() -> tuple[float, float]:
    """Seconds to trace 2,000 and 20,000 equations with corejax: the second is to be at most 11 times the first."""
    a = cnp.asarray(X)
    short, long = (
        best(lambda count=count: lambda: corejax.make_jaxpr(chain(clax, count))(a), 5)  # type: ignore[misc]
        for count in (2000, 20000)
    )
    return short, long


# -- depth -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Times of a nest against its depth.

    Attributes:
        name: what is timed.
        ours, theirs: seconds at each of `DEPTHS`.
    """

    name: str
    ours: list[float]
    theirs: list[float]

    @staticmethod
    def doubling(times: list[float]) -> float:
        """Time at depth 6 over time at depth 3: 2 if it grows linearly, 8 if each level doubles it."""
        return times[5] / times[2]


def _traced(lib: Any, depth: int, gradient: bool) -> Callable[[], Any]:
    f = nested_scans(lib, depth, fresh())
    if gradient:
        f = lib.grad(lambda x, f=f: lib.numpy.sum(f(x)))
    return lambda: lib.make_jaxpr(f)(X)


def depths(rounds: int) -> list[Curve]:
    """Tracing scans nested one to seven deep, and their gradients; every function is a new one."""
    curves = []
    for name, gradient in (("tracing", False), ("tracing grad of", True)):
        times: dict[Any, list[float]] = {corejax: [], jax: []}
        for depth in DEPTHS:
            for lib, column in times.items():
                column.append(best(partial(_traced, lib, depth, gradient), rounds))
        curves.append(Curve(name, *times.values()))
    return curves


# -- memory ----------------------------------------------------------------------------------------------------

LAYERS, ROWS, WIDTH = 64, 512, 64


def _temporaries(lib: Any, wrap: Callable[[Any], Any]) -> int:
    """Bytes of temporaries of the compiled gradient of a scan over layers."""

    def layer(w: Any, x: Any) -> Any:
        for _ in range(3):
            x = lib.numpy.tanh(x @ w)
        return x

    def loss(ws: Any, x: Any) -> Any:
        return lib.numpy.sum(lib.lax.scan(lambda c, w: (wrap(layer)(w, c), None), x, ws)[0])

    weights, x = np.full((LAYERS, WIDTH, WIDTH), 0.01, np.float32), np.ones((ROWS, WIDTH), np.float32)
    found = lib.jit(lib.grad(loss)).lower(weights, x).compile().memory_analysis()
    return int(found["temp"] if isinstance(found, dict) else found.temp_size_in_bytes)


def memory() -> dict[str, tuple[int, int]]:
    """Bytes for 64 layers, plain and checkpointed: corejax and jax."""
    policies = {
        "plain": lambda lib: lambda f: f,
        "checkpoint": lambda lib: lib.checkpoint,
        "checkpoint, dots_saveable": lambda lib: (
            lambda f: lib.checkpoint(f, policy=lib.checkpoint_policies.dots_saveable)
        ),
    }
    return {name: (_temporaries(corejax, p(corejax)), _temporaries(jax, p(jax))) for name, p in policies.items()}


__all__ = ["DEPTHS", "Curve", "depths", "lengths", "memory"]
