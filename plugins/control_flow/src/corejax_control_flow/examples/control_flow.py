"""Applications of `cond` and the loops, for whoever checks their rules (`corejax verify control_flow`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_control_flow.branches.cond import cond, switch
from corejax_control_flow.examples import custom as custom_examples
from corejax_control_flow.loops.progress import ProgressBar
from corejax_control_flow.loops.scan import scan
from corejax_control_flow.loops.while_loop import while_loop

_REVERSE = "a loop of unknown length is not differentiated in reverse"
_FORWARD = {"skip": dict.fromkeys(("second_order", "transpose", "vjp", "pairs", "triples"), _REVERSE)}
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def _x(*shape: int, dtype: Any = F32) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _traced(fun: Callable[..., list[Any]], *avals: ShapedArray, first: tuple[Any, ...] = (), **more: Any) -> Example:
    """The last equation of a function's program; `first` are operands that are given as numbers."""
    eqn = stage_closed(fun, avals).jaxpr.eqns[-1]
    return Example((*first, *(atom.aval for atom in eqn.invars[len(first) :])), eqn.params, **more)


def _cond() -> list[Example]:
    from corejax_lax_basic import lax

    def choose(index: Any, x: Any, y: Any) -> list[Any]:
        return [cond(lax.gt(index, 0), lambda a, b: a * b, lambda a, b: lax.sin(a) + b, x, y)]

    def pass_on(index: Any, x: Any, y: Any) -> list[Any]:
        return list(cond(lax.gt(index, 0), lambda a, b: (a, a * b), lambda a, b: (a, b), x, y))

    def one_of_three(index: Any, x: Any, y: Any) -> list[Any]:
        return list(
            switch(index, [lambda a, b: (a * b, b), lambda a, b: (lax.sin(a), a), lambda a, b: (b, a * a)], x, y)
        )

    index = _x(dtype=I32)
    return [
        *(_traced(f, index, _x(3), _x(3), first=(np.asarray(k, I32),)) for f in (choose, pass_on) for k in (0, 1)),
        _traced(one_of_three, index, _x(2), _x(2), low=(0, -2, -2), high=(2, 2, 2)),
    ]


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


def _while() -> list[Example]:
    from corejax_lax_basic import lax

    def counted(n: Any, x: Any, w: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.sin(c[1] * w)), (n, x)))

    def grows(x: Any, limit: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], limit + 3.0), lambda c: (c[0] + 2.0, c[1] * c[0]), (x, x)))

    def moves_on(n: Any, x: Any, y: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 2), lambda c: (c[0] + 1, c[2], c[1] * c[2]), (n, x, y)))

    def adds(n: Any, x: Any, y: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 3), lambda c: (c[0] + 1, c[1] + 1.5, c[2]), (n, x, y)))

    number = _x(dtype=I32)
    return [
        _traced(counted, number, _x(3), _x(3), low=0, high=3, **_FORWARD),
        _traced(grows, _x(), _x(), low=0.5, high=1.0, **_FORWARD),
        _traced(adds, number, _x(3), _x(2), low=0, high=3),  # tangents pass: it is differentiable in reverse, too
        _traced(moves_on, number, _x(2), _x(2), low=0, high=2, **_FORWARD),
    ]


def _progress() -> list[Example]:
    operands = (np.asarray(7, I32), np.asarray(True))
    return [Example(operands, {"bar": ProgressBar(every=3), "total": total}) for total in (10, None)]


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    from corejax_control_flow.examples import checkpoint as examples_checkpoint

    made = {
        "cond": _cond,
        "scan": _scan,
        "while": _while,
        "progress": _progress,
        "progress_report": _progress,
        "remat2": examples_checkpoint.remat,
        "name": examples_checkpoint.name,
        "optimization_barrier": examples_checkpoint.barrier,
    }
    return made[primitive]() if primitive in made else custom_examples.examples_of(primitive)
