"""Applications of `cond` and `scan`, for whoever checks their rules (`corejax verify control_flow`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_control_flow.cond import cond
from corejax_control_flow.scan import scan

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def _x(*shape: int, dtype: Any = F32) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _traced(fun: Callable[..., list[Any]], *avals: ShapedArray, first: tuple[Any, ...] = ()) -> Example:
    """The last equation of a function's program; `first` are operands that are given as numbers."""
    eqn = stage_closed(fun, avals).jaxpr.eqns[-1]
    return Example((*first, *(atom.aval for atom in eqn.invars[len(first) :])), eqn.params)


def _cond() -> list[Example]:
    from corejax_lax_basic import lax

    def choose(index: Any, x: Any, y: Any) -> list[Any]:
        return [cond(lax.gt(index, 0), lambda a, b: a * b, lambda a, b: lax.sin(a) + b, x, y)]

    def pass_on(index: Any, x: Any, y: Any) -> list[Any]:
        return list(cond(lax.gt(index, 0), lambda a, b: (a, a * b), lambda a, b: (a, b), x, y))

    index = _x(dtype=I32)
    return [_traced(fun, index, _x(3), _x(3), first=(np.asarray(k, I32),)) for fun in (choose, pass_on) for k in (0, 1)]


def _scan() -> list[Example]:
    from corejax_lax_basic import lax

    def products(carry: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (c * lax.sin(x) + c, c * x), carry, xs))

    def recurrence(carry: Any, w: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (lax.sin(c * w) + x, c * c), carry, xs, reverse=True))

    def sums(carry: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (c + x, c), carry, xs, unroll=2))

    return [
        _traced(products, _x(), _x(4)),
        _traced(recurrence, _x(2), _x(2), _x(4, 2)),
        _traced(sums, _x(2), _x(3, 2)),
    ]


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    made = {"cond": _cond, "scan": _scan}
    return made[primitive]() if primitive in made else []
