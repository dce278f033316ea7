"""`Example`: operands of a primitive, which its author provides for checks of the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Range = float | Sequence[float]


@dataclass(frozen=True)
class Example:
    """One application of a primitive: types of operands, or operands, and parameters.

    Attributes:
        operands: a `ShapedArray` if any numbers in the range will do, an array if the values matter. Arrays of
            integers or booleans that are not scalars are used unchanged; checks do not draw other values for them.
        params: the primitive's static parameters.
        low, high: range that numbers are drawn from, one for all operands or one for each. It should exclude points
            at which the function has no derivative.
        prepare: `f(*drawn, **params)` returns the operands to use, with the same shapes, for drawn numbers: it sorts a
            table, or adds to the diagonal of a matrix. It may be applied again to its own results.
        within: `f(apply)` returns the function to check in place of `apply`, `(*operands) -> list of results`. It is
            for primitives that need a context, such as a collective, which needs a named axis. `operands` are those of
            the returned function.
        requires: `f(*arrays, **params)` returns whether operands fit together: an index pointer must fit the data.
            Checks that vary operands use only those that fit.
        reference: the same function in NumPy, `f(*arrays, **params)`, written independently of the impl rule.
        finite: whether to compare only finite results of finite operands. Rules may return NaN and infinities in
            different places, as a matrix product and an FFT do.
        tolerance: relative error that is allowed, as a multiple of the dtype's usual tolerance.
        skip: check -> reason why the check does not apply to this example.
        fails: check -> reason why the check fails by design. If it does not fail, that is reported as an error.
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
        """Return the range that numbers of operand number `operand` are drawn from."""
        low, high = (r if isinstance(r, int | float) else r[operand] for r in (self.low, self.high))
        return float(low), float(high)
