"""Interval rules of comparisons, logic and selection. An undecided truth value is the interval [False, True]."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant, is_bool, join
from corejax_lax_basic import lax


def negated(truth: Bounds) -> Bounds:
    """Return the bounds of the negation."""
    return Bounds(lax.bitwise_not(truth.upper), lax.bitwise_not(truth.lower))


# A comparison is certainly true if it holds for the worst bounds, and possibly true unless its opposite is certain.
# With NaN as a bound the result is undecided.


def less(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of `x < y`."""
    return Bounds(lax.lt(x.upper, y.lower), lax.bitwise_not(lax.ge(x.lower, y.upper)))


def less_equal(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of `x <= y`."""
    return Bounds(lax.le(x.upper, y.lower), lax.bitwise_not(lax.gt(x.lower, y.upper)))


def equal(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of `x == y`."""
    known = lax.bitwise_and(lax.eq(x.lower, x.upper), lax.eq(y.lower, y.upper))
    apart = lax.bitwise_or(lax.lt(x.upper, y.lower), lax.lt(y.upper, x.lower))
    return Bounds(lax.bitwise_and(known, lax.eq(x.lower, y.lower)), lax.bitwise_not(apart))


interval_rules.register(lax.lt_p, less)
interval_rules.register(lax.le_p, less_equal)
interval_rules.register(lax.eq_p, equal)


@interval_rules.register(lax.gt_p)
def greater(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of `x > y`."""
    return less(y, x)


@interval_rules.register(lax.ge_p)
def greater_equal(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of `x >= y`."""
    return less_equal(y, x)


@interval_rules.register(lax.ne_p)
def not_equal(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of `x != y`."""
    return negated(equal(x, y))


# -- logic -------------------------------------------------------------------------------------------------------


def refuse_bits(name: str, *operands: Bounds) -> None:
    """Raise TypeError if an operand has an integer dtype, because bounds do not determine bits.

    Raises:
        TypeError: an operand has an integer dtype.
    """
    for x in operands:
        if not is_bool(x):
            shown = get_aval(x.lower).str_short(short_dtypes=False)
            raise TypeError(
                f"primitive {name!r} has an interval rule for bool operands only, got {shown}: bounds of integers say "
                "nothing about their bits"
            )


def _on_bools(primitive: Primitive) -> None:
    def rule(*operands: Bounds, **params: Any) -> Bounds:
        refuse_bits(primitive.name, *operands)
        return Bounds(*(primitive.bind(*column, **params) for column in zip(*operands, strict=True)))

    rule.__name__ = f"{primitive.name}_interval"
    interval_rules.register(primitive, rule)


# These primitives increase in every operand, with False below True.
_on_bools(lax.and_p)
_on_bools(lax.or_p)
_on_bools(lax.reduce_and_p)
_on_bools(lax.reduce_or_p)


@interval_rules.register(lax.not_p)
def not_interval(x: Bounds) -> Bounds:
    """Negate and swap the bounds, because `~x` is decreasing for all integers (`-x - 1` for signed ones)."""
    return negated(x)


@interval_rules.register(lax.xor_p)
def xor_interval(x: Bounds, y: Bounds) -> Bounds:
    """Return whether two truth values differ."""
    refuse_bits("xor", x, y)
    return not_equal(x, y)


# -- selection ---------------------------------------------------------------------------------------------------


@interval_rules.register(lax.select_n_p)
def select_n_interval(which: Bounds, *cases: Bounds) -> Bounds:
    """Select the bounds of the chosen case; if the choice is undecided, join the bounds of all possible cases."""
    out = Bounds(*(lax.select_n_p.bind(which.lower, *column) for column in zip(*cases, strict=True)))
    if which.is_point:
        return out
    if is_bool(which):
        return join(out, cases[-1], lax.ne(which.lower, which.upper))
    for i, case in enumerate(cases):
        i = constant(np.int32(i), which.lower)
        out = join(out, case, lax.bitwise_and(lax.ge(i, which.lower), lax.le(i, which.upper)))
    return out
