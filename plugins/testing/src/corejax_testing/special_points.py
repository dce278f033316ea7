"""Operands at which functions often go wrong, made from an application's own: zeros, ties, saturation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corejax.extend import ShapedArray
from corejax_testing.arrays import Array, is_inexact
from corejax_testing.calls import Call, accepts

# Zero, whole numbers (which give ties), saturating and large arguments; fewer numbers for three or more operands.
_SIZES = (1.0, 2.0, 0.5, 3.0, 8.0, 20.0, 60.0, 200.0, 1000.0, 1e5, 1e8)
_MANY = (0.0, *_SIZES, *(-x for x in _SIZES))
_FEW = (0.0, 1.0, -1.0, 2.0, -2.5, 30.0)
_MOST = 3  # the number of operands that are replaced, one at a time


def free_operands(call: Call) -> list[int]:
    """Return the positions of real floating-point operands that the author gave as types, not as numbers."""
    given = call.example.operands
    return [i for i, x in enumerate(call.values)
            if isinstance(given[i], ShapedArray) and is_inexact(x.dtype) and x.dtype.kind != "c"]  # fmt: skip


def is_free_elementwise(call: Call) -> bool:
    """Return whether the primitive is elementwise with real operands that the author gave as types."""
    given = call.example.operands
    no_numbers = all(isinstance(x, ShapedArray) and x.dtype.kind != "c" for x in given)
    return "elementwise" in call.primitive.tags and bool(given) and no_numbers


def special_grid(call: Call) -> Call | None:
    """Return an elementwise application at every combination of special numbers, or None if it is refused."""
    moving = free_operands(call)
    numbers = np.array(_MANY if len(moving) < 3 else _FEW)
    if not moving or len(moving) > 4:
        return None
    grid = np.meshgrid(*[numbers] * len(moving), indexing="ij")
    rest = call.at([np.resize(x.ravel(), grid[0].size) if x.size else x for x in call.values]).values
    places = dict(zip(moving, (g.ravel() for g in grid), strict=True))
    there = call.at([places[i].astype(x.dtype) if i in places else x for i, x in enumerate(rest)])
    return there if accepts(there) else None


def special_patterns(call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the application with one operand's elements zero, equal, or large, each with a description."""
    for i in free_operands(call)[:_MOST]:
        x = call.values[i]
        if not x.size:
            continue
        for name, special in _patterns(x):
            there = call.at([special if k == i else y for k, y in enumerate(call.values)])
            if accepts(there):
                yield f"operand {i} {name}", there


def _patterns(x: Array) -> Iterator[tuple[str, Array]]:
    yield "zero", np.zeros_like(x)
    yield "saturating", np.asarray(x * x.dtype.type(25))
    yield "large", np.asarray(x * x.dtype.type(500))
    if x.size < 2:
        return
    yield "all equal", np.full_like(x, x.flat[0])
    order = np.argsort(x, axis=None)
    for name, places, source in (
        ("with one zero", order[:1], None),
        ("with two zeros", order[:2], None),
        ("with its two largest equal", order[-2:], order[-1]),
        ("with its two smallest equal", order[:2], order[0]),
    ):
        other = x.copy()
        other.flat[places] = 0 if source is None else x.flat[source]
        yield name, other
