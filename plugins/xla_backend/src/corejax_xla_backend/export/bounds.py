"""What is known of sizes that are symbols: operations that are no polynomials, and bounds.

Such an operation is a name in a polynomial, its text: `floordiv(b, 2)`. A scope has what it is of.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from corejax.extend.types import max_dim, min_dim

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max_dim,
    "min": min_dim,
}
_DEPTH = 4  # of what is looked into for a bound, and how many constraints are added up for one


class Operation(NamedTuple):
    """An operation of two sizes."""

    name: str
    left: Any
    right: Any

    def at(self, sizes: Any) -> Any:
        """Its value for sizes of its variables, symbolic ones too."""
        left, right = (x if isinstance(x, int) else x.at(sizes) for x in (self.left, self.right))
        return OPERATIONS[self.name](left, right)

    def nesting(self) -> int:
        """How many operations are in one another."""
        return 1 + max(_nesting(self.left), _nesting(self.right))

    def range(self) -> tuple[float, float]:
        """Bounds of its value."""
        # A constraint on what an operation is part of would ask for the bounds of this one again.
        below = self.nesting()
        (least, most), (low, high) = range_of(self.left, below), range_of(self.right, below)
        if self.name == "max":
            return max(least, low), max(most, high)
        if self.name == "min":
            return min(least, low), min(most, high)
        negative = high < 0  # x // d is -x // -d, and x % d is -(-x % -d)
        if negative:
            least, most, low, high = -most, -least, -high, -low
        if low <= 0:  # the divisor may be 0
            return -math.inf, math.inf
        if self.name == "mod":
            last = min(high - 1, most) if least >= 0 else high - 1
            return (-last, 0) if negative else (0, last)
        ends = [_floor(a, b) for a in (least, most) for b in (low, high)]
        return min(ends), max(ends)


def _floor(x: float, y: float) -> float:
    return -math.inf if x == -math.inf else math.inf if x == math.inf else x // y


def _nesting(x: Any) -> int:
    """The deepest operation in a size."""
    if isinstance(x, int):
        return 0
    return max((x.scope.operations[n].nesting() for n in x.names() if n in x.scope.operations), default=0)


def range_of(x: Any, below: float = math.inf) -> tuple[float, float]:
    """Return bounds of a size; only constraints count that have operations of less nesting than `below`."""
    return (x, x) if isinstance(x, int) else (_least(x, _DEPTH, below), -_least(x * -1, _DEPTH, below))


def _least(x: Any, depth: int, below: float) -> float:
    """A lower bound: of the terms one by one, of what constraints say, and of what operations are known to be."""
    if isinstance(x, int):
        return x
    key = (x, depth, below)
    found: float | None = x.scope.least.get(key)
    if found is not None:
        return found
    found = _least_by_constraints(x, [known for _, known in x.scope.known if _nesting(known) < below], _DEPTH)
    for names, factor in x.terms if depth else ():
        operation = x.scope.operations.get(names[0]) if len(names) == 1 else None
        if operation is not None:
            found = max(found, _least_by(operation, factor, names, x, depth - 1, below))
    x.scope.least[key] = found
    return found


def _least_by_constraints(x: Any, constraints: list[Any], count: int) -> float:
    """A lower bound that follows from a sum of so many constraints, what they say is not negative."""
    found = _sum_of_least(x)
    if isinstance(x, int) or not count:
        return found
    factors = dict(x.terms)
    for known in constraints:
        for names, factor in known.terms:
            if names and factors.get(names, 0) * factor > 0:  # n * x - m * known is without this term
                n, m = abs(factor), abs(factors[names])
                found = max(found, math.ceil(_least_by_constraints(x * n - known * m, constraints, count - 1) / n))
    return found


def _least_by(operation: Operation, factor: int, names: tuple[str, ...], x: Any, depth: int, below: float) -> float:
    """A lower bound of `x`, in which an operation times a factor is a term."""
    kind, left, right = operation
    rest = x.without(names)
    if kind == "floordiv":  # n * floordiv(y, n) is y - mod(y, n)
        positive = isinstance(right, int) and right > 0
        return math.ceil(_least(x * right, depth, below) / right) if positive else -math.inf
    if kind == "mod":  # less than the divisor, and at most the number itself, where those are not negative
        bounds = [-math.inf]
        if factor < 0 and _least(right, depth, below) >= 1:
            bounds.append(_least(rest + factor * (right - 1), depth, below))
        if factor < 0 and _least(left, depth, below) >= 0:
            bounds.append(_least(rest + factor * left, depth, below))
        return max(bounds)
    either = _least(rest + factor * left, depth, below), _least(rest + factor * right, depth, below)
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
