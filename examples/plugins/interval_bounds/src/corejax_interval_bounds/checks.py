"""The check of `corejax verify` for the interval rules of all plugins. Only corejax-testing imports this module."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax_interval_bounds.api import propagate
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Interval
from corejax_testing import Call, Check, CheckFailure, NotApplicable

_POINTS = 8
_HINT = "a lower bound takes the least value over the operands' bounds; `ulps=` widens by rounding errors"


def check_interval(call: Call, rng: np.random.Generator) -> None:
    """Check that interval bounds contain the primitive's results at points within its operands' bounds."""
    if interval_rules.find(call.primitive) is None:
        raise NotApplicable("no interval rule")
    if call.primitive.effects:
        raise NotApplicable("it has effects: what it gives need not depend on its operands alone")
    boxes = [_box(call, i, rng) for i in range(len(call.values))]
    if not any(isinstance(box, Interval) for box in boxes):
        raise NotApplicable("no operand is of real floating-point numbers that may vary")
    found = propagate(lambda *xs: call(*xs))(*boxes)
    for k in range(_POINTS):
        point = [_point(box, k, rng) if isinstance(box, Interval) else box for box in boxes]
        for i, (bounds, out) in enumerate(zip(found, call(*point), strict=True)):
            value = np.asarray(out)
            if isinstance(bounds, Interval) and not np.all(bounds.contains(value)):
                raise _outside(i, bounds, value)


def _box(call: Call, position: int, rng: np.random.Generator) -> Any:
    """Return an interval of the example's range around the operand, or the operand itself if it may not vary."""
    x, given = call.values[position], call.example.operands[position]
    if not isinstance(given, ShapedArray) or not dtypes.is_float(x.dtype) or not x.size:
        return x
    low, high = call.example.range_of(position)
    radius = rng.uniform(0, 0.25, x.shape) * (high - low)
    lower, upper = (np.clip(x.astype(np.float64) + r, low, high).astype(x.dtype) for r in (-radius, radius))
    return Interval(np.minimum(lower, x), np.maximum(upper, x))


def _point(box: Interval, number: int, rng: np.random.Generator) -> Any:
    lower, upper = np.asarray(box.lower), np.asarray(box.upper)
    if number < 2:
        return (lower, upper)[number]
    where = rng.random(lower.shape)
    if number < 4:  # corners
        where = np.round(where)
    inside = lower.astype(np.float64) * (1 - where) + upper.astype(np.float64) * where
    return np.clip(inside.astype(lower.dtype), lower, upper)


def _outside(position: int, bounds: Interval, value: Any) -> CheckFailure:
    lower, upper = np.asarray(bounds.lower), np.asarray(bounds.upper)
    first = tuple(np.argwhere(~np.asarray(bounds.contains(value)))[0])
    where = f"[{', '.join(map(str, first))}]" if first else ""
    return CheckFailure(
        f"result {position}{where} is {value[first]} at a point within the operands' bounds, outside of the bounds "
        f"[{lower[first]}, {upper[first]}]",
        "interval",
        _HINT,
    )


INTERVAL = Check("interval", check_interval, rule="interval", limit=4)
