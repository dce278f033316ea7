"""Eager operations on large arrays, beside jax and, where it has the same operation, NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import corejax
from cases.registry import Sides, blocking, case

MILLION, MANY = 10**6, 10**5


class Operands(NamedTuple):
    """Large arrays of one side: a million float32, normal and positive, a mask; 100,000, positions, a matrix."""

    x: Any
    positive: Any
    mask: Any
    many: Any
    at: Any
    matrix: Any


def operands(convert: Callable[[Any], Any]) -> Operands:
    """Operands of one side."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(MILLION).astype(np.float32)
    at = rng.integers(0, MANY, MANY).astype(np.int32)
    matrix = rng.standard_normal((512, 512)).astype(np.float32)
    return Operands(*map(convert, (x, np.abs(x) + 0.1, x > 0, x[:MANY].copy(), at, matrix)))


# The function for corejax and jax, n being the `numpy` namespace and v the operands; whether NumPy counts as well.
ELEMENTWISE: dict[str, Callable[[Any, Operands], Any]] = {
    "add": lambda n, v: n.add(v.x, v.positive),
    "mul": lambda n, v: n.multiply(v.x, v.positive),
    "greater": lambda n, v: n.greater(v.x, 0),
    "where": lambda n, v: n.where(v.mask, v.x, v.positive),
    "where of greater": lambda n, v: n.where(n.greater(v.x, 0), v.x, v.positive),
    "exp": lambda n, v: n.exp(v.x),
    "tanh": lambda n, v: n.tanh(v.x),
    "sin": lambda n, v: n.sin(v.x),
    "log": lambda n, v: n.log(v.positive),
    "sqrt": lambda n, v: n.sqrt(v.positive),
    "sum": lambda n, v: n.sum(v.x),
    "max": lambda n, v: n.max(v.x),
}
OTHERS: dict[str, Callable[[Any, Operands], Any]] = {
    "sort": lambda n, v: n.sort(v.many),
    "cumsum": lambda n, v: n.cumsum(v.many),
    "gather": lambda n, v: v.many[v.at],
    "scatter": lambda n, v: v.many.at[v.at].set(v.many),
    "scatter-add": lambda n, v: v.many.at[v.at].add(v.many),
}


def _case(name: str, wanted: float, f: Callable[[Any, Operands], Any], beside_numpy: bool) -> None:
    def side(lib: Any) -> Callable[[], Any]:
        made = functools.cache(lambda: operands(lib.numpy.asarray))  # in its own process only
        return blocking(lib, lambda: f(lib.numpy, made()))

    @case(name, wanted, short=True, apart=True)
    def make() -> Sides:
        if not beside_numpy:
            return side(corejax), side(jax)
        v = operands(np.asarray)
        return side(corejax), side(jax), lambda: f(np, v)


for _name, _call in ELEMENTWISE.items():
    _case(f"eager {_name} of 1,000,000", 1.1, _call, beside_numpy=True)
_case("eager matmul of 512 x 512", 1.1, lambda n, v: n.matmul(v.matrix, v.matrix), beside_numpy=True)
for _name, _call in OTHERS.items():
    _case(f"eager {_name} of 100,000", 1.0, _call, beside_numpy=False)
