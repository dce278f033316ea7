"""Operations on symbolic sizes that are not polynomials, and bounds of symbolic sizes.

Such an operation is a variable of a polynomial, named by its text: `floordiv(b, 2)`. The scope maps the name to the
`Operation`. Lower bounds come from three sources: the bounds of the variables, sums of the scope's constraints, and
identities of the operations. The search is limited in depth, so that a bound may be weaker than the best one.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from corejax.extend.types import SymbolicDim, max_dim, min_dim

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max_dim,
    "min": min_dim,
}
_DEPTH = 4  # the most operations that are expanded for a bound, and the most constraints that are added up


class Operation(NamedTuple):
    """An operation of two sizes."""

    name: str
    left: Any
    right: Any

    def at(self, sizes: Any) -> Any:
        """Return the value for sizes of its symbols, which may be symbolic."""
        left, right = (x if isinstance(x, int) else x.at(sizes) for x in (self.left, self.right))
        return OPERATIONS[self.name](left, right)

    def nesting(self) -> int:
        """Return the depth of nested operations, 1 if no operand has an operation."""
        return 1 + max(_nesting(self.left), _nesting(self.right))

    def range(self) -> tuple[float, float]:
        """Return bounds of the operation's value."""
        # Only constraints on less deeply nested operations are used: others may need the bounds of this operation,
        # which would recur forever.
        below = self.nesting()
        (least, most), (low, high) = range_of(self.left, below), range_of(self.right, below)
        if self.name == "max":
            return max(least, low), max(most, high)
        if self.name == "min":
            return min(least, low), min(most, high)
        negative = high < 0  # x // d is -x // -d, and x % d is -(-x % -d)
        if negative:  # so negate both operands
            least, most, low, high = -most, -least, -high, -low
        if low <= 0:  # the divisor may be 0, so nothing is known
            return -math.inf, math.inf
        if self.name == "mod":
            last = min(high - 1, most) if least >= 0 else high - 1
            return (-last, 0) if negative else (0, last)
        ends = [_floor(a, b) for a in (least, most) for b in (low, high)]
        return min(ends), max(ends)


def _floor(x: float, y: float) -> float:
    return -math.inf if x == -math.inf else math.inf if x == math.inf else x // y


def _nesting(x: Any) -> int:
    """Return the depth of nested operations in a size."""
    if isinstance(x, int):
        return 0
    return max((x.scope.operations[n].nesting() for n in x.names() if n in x.scope.operations), default=0)


def range_of(x: Any, below: float = math.inf) -> tuple[float, float]:
    """Return bounds of a size, using only constraints with operations nested less deeply than `below`."""
    return (x, x) if isinstance(x, int) else (_least(x, _DEPTH, below), -_least(x * -1, _DEPTH, below))


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """Return the least and the greatest value of a size that can be proved, which may be infinite.

    Raises:
        TypeError: `dimension` is neither an integer nor a symbolic size.
    """
    if isinstance(dimension, SymbolicDim):
        return range_of(dimension)
    try:
        size = operator.index(dimension)
    except TypeError:
        raise TypeError(
            f"symbolic_dim_bounds: the dimension must be an integer or a symbolic size, got {dimension!r}"
        ) from None
    return size, size


def _least(x: Any, depth: int, below: float) -> float:
    """Return the greatest lower bound that follows from the terms, the constraints and the operations."""
    if isinstance(x, int):
        return x
    key = (x, depth, below)
    cached: float | None = x.scope.lower_bounds.get(key)
    if cached is not None:
        return cached
    bound = _least_by_constraints(x, [known for _, known in x.scope.known if _nesting(known) < below], _DEPTH)
    for names, factor in x.terms if depth else ():
        operation = x.scope.operations.get(names[0]) if len(names) == 1 else None
        if operation is not None:
            bound = max(bound, _least_by_operation(operation, factor, names, x, depth - 1, below))
    x.scope.lower_bounds[key] = bound
    return bound


def _least_by_constraints(x: Any, constraints: list[Any], count: int) -> float:
    """Return a lower bound of `x` that follows from at most `count` constraints, expressions that are not negative.

    If n * x - m * constraint >= b for positive n and m, then x >= b / n. The factors cancel a term of `x`.
    """
    bound = _sum_of_least(x)
    if isinstance(x, int) or not count:
        return bound
    factors = dict(x.terms)
    for known in constraints:
        for names, factor in known.terms:
            if names and factors.get(names, 0) * factor > 0:
                n, m = abs(factor), abs(factors[names])
                bound = max(bound, math.ceil(_least_by_constraints(x * n - known * m, constraints, count - 1) / n))
    return bound


def _least_by_operation(
    operation: Operation, factor: int, names: tuple[str, ...], x: Any, depth: int, below: float
) -> float:
    """Return a lower bound of `x`, which has the term `factor * operation`, by an identity of the operation."""
    kind, left, right = operation
    rest = x.without(names)
    if kind == "floordiv":  # n * floordiv(y, n) == y - mod(y, n)
        positive = isinstance(right, int) and right > 0
        return math.ceil(_least(x * right, depth, below) / right) if positive else -math.inf
    if kind == "mod":  # the remainder is less than a positive divisor, and at most a nonnegative dividend
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
    """Return bounds of a product of numbers in these ranges."""
    ends = [math.prod(each) for each in itertools.product(*ranges)]
    return min(ends), max(ends)
