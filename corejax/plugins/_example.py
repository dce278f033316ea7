"""`Example`: operands that a primitive is meant for, as its author gives them to whoever checks its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Range = float | Sequence[float]


@dataclass(frozen=True)
class Example:
    """One application of a primitive: types of operands, or operands, and parameters.

    Attributes:
        operands: a `ShapedArray` where any numbers of the range will do, an array where these ones matter.
            Arrays of integers or booleans, unless they are scalars, are used as they are, and with no other numbers.
        params: the primitive's static parameters.
        low, high: range that numbers are drawn from, one for all operands or one for each; the author keeps it
            away from points where the function has no derivative.
        prepare: `f(*drawn, **params)` gives the operands to use, of the same shapes, from what was drawn: sorts a
            table, adds to a matrix's diagonal. It may be applied to what it gave.
        within: `f(apply)` gives the function that is checked in place of `apply`, `(*operands) -> list of results`: for
            what can be applied only inside of something, as a collective where a named axis is bound. Operands are that
            function's.
        requires: `f(*arrays, **params)` says whether operands go together: an index pointer that fits the data.
            Whatever varies operands keeps to it.
        reference: the same function in NumPy, `f(*arrays, **params)`, written independently of the impl rule.
        finite: compare only finite results of finite operands: rules may give NaN and infinities in different places,
            as a matrix product and an FFT do.
        tolerance: relative error that is allowed, in units of the dtype's own usual one.
        skip: check -> why it says nothing about this example.
        fails: check -> why it fails, by design; where it does not, something is wrong.
    """

    operands: Sequence[Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    low: Range = -2.0
    high: Range = 2.0
    reference: Callable[..., Any] | None = None
    finite: bool = False
    tolerance: float = 1.0
    skip: Mapping[str, str] = field(default_factory=dict)
    fails: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[..., Sequence[Any]] | None = None
    requires: Callable[..., bool] | None = None
    within: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None

    def range_of(self, operand: int) -> tuple[float, float]:
        """The range of one operand's numbers."""
        low, high = (r if isinstance(r, int | float) else r[operand] for r in (self.low, self.high))
        return float(low), float(high)
