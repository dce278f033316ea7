"""Examples for `corejax verify`. All functions are contractions, so that a fixed point exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed

_SETTINGS = {"tol": 1e-15, "rtol": 0.0, "max_steps": 1000, "batch_ndim": 0}


def _vector(size: int) -> ShapedArray:
    return ShapedArray((size,), np.float64)


def _program(f: Callable[..., list[Any]], *avals: ShapedArray, num_params: int) -> dict[str, Any]:
    return {"jaxpr": stage_closed(f, avals), "num_params": num_params, **_SETTINGS}


def _sine(w: Any, b: Any, x: Any) -> list[Any]:
    from corejax import lax

    return [w * lax.sin(x) + b]


def _pair(a: Any, x: Any, y: Any) -> list[Any]:
    from corejax import lax

    return [lax.tanh(y) * 0.5 + a, lax.cos(x) * a]


def _affine(a: Any, b: Any, x: Any) -> list[Any]:
    return [a * x + b]


def _iterated(f: Callable[..., list[Any]], num_params: int) -> Callable[..., list[Any]]:
    """Return a reference that runs two hundred iterations in NumPy."""

    def reference(*operands: Any, **params: Any) -> list[Any]:
        fixed, xs = operands[:num_params], list(operands[num_params:])
        for _ in range(200):
            xs = f(*fixed, *xs)
        return xs

    return reference


def examples_of(primitive: str) -> list[Example]:
    """Return the examples of a primitive; the list is empty for primitives of other plugins."""
    if primitive != "fixed_point.fixed_point":
        return []
    one, two = _vector(1), _vector(2)
    return [
        Example(
            [two, two, two],
            _program(_sine, two, two, two, num_params=2),
            low=(-0.6, -1.0, -1.0),
            high=(0.6, 1.0, 1.0),
            reference=_iterated(lambda w, b, x: [w * np.sin(x) + b], 2),
        ),
        Example(
            [one, one, one],
            _program(_pair, one, one, one, num_params=1),
            low=0.1,
            high=0.8,
            reference=_iterated(lambda a, x, y: [np.tanh(y) * 0.5 + a, np.cos(x) * a], 1),
        ),
        # Linear in b and in (b, x), like the programs that the derivative rules create.
        Example(
            [two, two, two],
            _program(_affine, two, two, two, num_params=2),
            low=(-0.6, -1.0, -1.0),
            high=(0.6, 1.0, 1.0),
            reference=lambda a, b, x, **params: [b / (1 - a)],
        ),
    ]
