"""What grows with what: times against the depth of a nest, memory against the length of a program and policies."""

from __future__ import annotations

import gc
import time
import tracemalloc
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

DEPTHS = range(1, 8)


def best(make: Callable[[], Callable[[], Any]], rounds: int) -> float:
    """Return the least CPU time of a call of what `make` returns."""
    times = []
    for _ in range(rounds):
        call = make()
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def mebibytes(lib: Any) -> float:
    """Return the memory that a traced program of 20,000 equations takes, without the library's own caches."""
    a = lib.numpy.asarray(X)
    lib.make_jaxpr(chain(lib.lax, 100))(a)
    gc.collect()
    tracemalloc.start()
    jaxpr = lib.make_jaxpr(chain(lib.lax, 20000))(a)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del jaxpr
    return taken / 2**20


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


__all__ = ["DEPTHS", "Curve", "depths", "mebibytes", "memory"]
