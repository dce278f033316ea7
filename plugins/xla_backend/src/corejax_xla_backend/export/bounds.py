"""What is known of sizes that are symbols: operations that are no polynomials, and bounds.

Such an operation is a name in a polynomial, its text: `floordiv(b, 2)`. A scope has what it is of.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}
_DEPTH = 4  # of what is looked into for a bound


class Operation(NamedTuple):
    """An operation of two sizes."""

    name: str
    left: Any
    right: Any

    def at(self, sizes: Any) -> int:
        """Its value for sizes of its variables."""
        left, right = (x if isinstance(x, int) else x.at(sizes) for x in (self.left, self.right))
        return OPERATIONS[self.name](left, right)  # type: ignore[no-any-return]

    def range(self) -> tuple[float, float]:
        """Bounds of its value."""
        (least, most), (low, high) = range_of(self.left), range_of(self.right)
        if self.name == "max":
            return max(least, low), max(most, high)
        if self.name == "min":
            return min(least, low), min(most, high)
        if low <= 0:  # such divisors are nobody's sizes
            return -math.inf, math.inf
        if self.name == "mod":
            return 0, min(high - 1, most) if least >= 0 else high - 1
        ends = [_floor(a, b) for a in (least, most) for b in (low, high)]
        return min(ends), max(ends)


def _floor(x: float, y: float) -> float:
    return -math.inf if x == -math.inf else math.inf if x == math.inf else x // y


def range_of(x: Any) -> tuple[float, float]:
    """Bounds of a size."""
    return (x, x) if isinstance(x, int) else (_least(x, _DEPTH), -_least(x * -1, _DEPTH))


def _least(x: Any, depth: int) -> float:
    """A lower bound: of the terms one by one, of what constraints say, and of what operations are known to be."""
    if isinstance(x, int):
        return x
    found = max([_sum_of_least(x), *[_sum_of_least(x - known) for _, known in x.scope.known]])
    if not depth:
        return found
    for names, factor in x.terms:
        operation = x.scope.operations.get(names[0]) if len(names) == 1 else None
        if operation is not None:
            found = max(found, _least_by(operation, factor, names, x, depth - 1))
    return found


def _least_by(operation: Operation, factor: int, names: tuple[str, ...], x: Any, depth: int) -> float:
    """A lower bound of `x`, in which an operation times a factor is a term."""
    kind, left, right = operation
    rest = x.without(names)
    if kind == "floordiv":  # n * floordiv(y, n) is y - mod(y, n)
        positive = isinstance(right, int) and right > 0
        return math.ceil(_least(x * right, depth) / right) if positive else -math.inf
    if kind == "mod":  # less than the divisor, and at most the number itself, where those are not negative
        bounds = [-math.inf]
        if factor < 0 and _least(right, depth) >= 1:
            bounds.append(_least(rest + factor * (right - 1), depth))
        if factor < 0 and _least(left, depth) >= 0:
            bounds.append(_least(rest + factor * left, depth))
        return max(bounds)
    either = _least(rest + factor * left, depth), _least(rest + factor * right, depth)
    return max(either) if (kind == "max") == (factor > 0) else min(either)


def _sum_of_least(x: Any) -> float:
    if isinstance(x, int):
        return x
    total = 0.0
    for names, factor in x.terms:
        low, high = product_range([x.scope.range_of_name(name) for name in names])
        total += factor * (low if factor > 0 else high)
    return total


def product_range(ranges: list[tuple[float, float]]) -> tuple[float, float]:
    """Bounds of a product."""
    ends = [math.prod(each) for each in itertools.product(*ranges)]
    return min(ends), max(ends)
