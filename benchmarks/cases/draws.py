"""Random numbers: keys and small draws, eagerly; a million numbers of compiled draws."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cases.loops import both
from cases.registry import Sides, blocking, case

MILLION = 10**6

# r is the `random` namespace, k a key; and the ratio that is wanted.
EAGER: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "key": (lambda r, k: r.key(0), 0.5),
    "split": (lambda r, k: r.split(k), 0.3),
    "fold_in": (lambda r, k: r.fold_in(k, 3), 0.5),
    "bits of 10": (lambda r, k: r.bits(k, (10,)), 0.5),
    "uniform of 10": (lambda r, k: r.uniform(k, (10,)), 0.5),
    "normal of 10": (lambda r, k: r.normal(k, (10,)), 0.5),
    "normal of 100": (lambda r, k: r.normal(k, (100,)), 0.5),
    "normal of 1,000": (lambda r, k: r.normal(k, (1000,)), 0.5),
    "uniform of 1,000": (lambda r, k: r.uniform(k, (1000,)), 0.5),
    "randint of 10": (lambda r, k: r.randint(k, (10,), 0, 100), 0.5),
    "randint of 1,000": (lambda r, k: r.randint(k, (1000,), 0, 100), 0.5),
    "bernoulli of 10": (lambda r, k: r.bernoulli(k, 0.3, (10,)), 0.5),
    "permutation of 10": (lambda r, k: r.permutation(k, 10), 0.5),
    "categorical of 10": (lambda r, k: r.categorical(k, np.zeros(10, np.float32)), 0.5),
    "gamma of 10": (lambda r, k: r.gamma(k, 2.0, (10,)), 0.5),
}

# The same compiled, a million numbers each.
COMPILED: dict[str, Callable[[Any, Any], Any]] = {
    "bits": lambda r, k: r.bits(k, (MILLION,)),
    "uniform": lambda r, k: r.uniform(k, (MILLION,)),
    "normal": lambda r, k: r.normal(k, (MILLION,)),
    "permutation": lambda r, k: r.permutation(k, MILLION),
    "gamma": lambda r, k: r.gamma(k, 2.5, (MILLION,)),
    "categorical": lambda r, k: r.categorical(k, np.linspace(0, 1, 10, dtype=np.float32), shape=(MILLION // 10,)),
}


def _namespace(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.random")


def _eager(name: str, f: Callable[[Any, Any], Any], wanted: float) -> None:
    def side(lib: Any) -> Callable[[], Any]:
        namespace = _namespace(lib)
        key = namespace.key(7)
        return blocking(lib, lambda: f(namespace, key))

    @case(f"eager random {name}", wanted, short=True)
    def make() -> Sides:
        return both(side)


def _compiled(name: str, f: Callable[[Any, Any], Any]) -> None:
    def side(lib: Any) -> Callable[[], Any]:
        namespace = _namespace(lib)
        draw = lib.jit(lambda key: f(namespace, key))
        key = namespace.key(7)
        return blocking(lib, lambda: draw(key))

    @case(f"compiled random {name} of 1,000,000", 1.05)
    def make() -> Sides:
        return both(side)


for _name, (_call, _wanted) in EAGER.items():
    _eager(_name, _call, _wanted)
for _name, _draw in COMPILED.items():
    _compiled(_name, _draw)
