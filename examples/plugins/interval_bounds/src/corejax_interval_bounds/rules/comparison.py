"""Comparisons, logic and selection: truth values are intervals too, and where they are open both cases count."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant, is_bool, join
from corejax_lax_basic import lax


def negated(truth: Bounds) -> Bounds:
    """Bounds of "not"."""
    return Bounds(lax.bitwise_not(truth.upper), lax.bitwise_not(truth.lower))


# Each is certain if it holds for the worst ends, and possible unless its opposite is certain: NaN leaves all open.


def less(x: Bounds, y: Bounds) -> Bounds:
    """Bounds of `x < y`."""
    return Bounds(lax.lt(x.upper, y.lower), lax.bitwise_not(lax.ge(x.lower, y.upper)))


def less_equal(x: Bounds, y: Bounds) -> Bounds:
    """Bounds of `x <= y`."""
    return Bounds(lax.le(x.upper, y.lower), lax.bitwise_not(lax.gt(x.lower, y.upper)))


def equal(x: Bounds, y: Bounds) -> Bounds:
    """Bounds of `x == y`."""
    known = lax.bitwise_and(lax.eq(x.lower, x.upper), lax.eq(y.lower, y.upper))
    apart = lax.bitwise_or(lax.lt(x.upper, y.lower), lax.lt(y.upper, x.lower))
    return Bounds(lax.bitwise_and(known, lax.eq(x.lower, y.lower)), lax.bitwise_not(apart))


interval_rules.register(lax.lt_p, less)
interval_rules.register(lax.le_p, less_equal)
interval_rules.register(lax.eq_p, equal)


@interval_rules.register(lax.gt_p)
def greater(x: Bounds, y: Bounds) -> Bounds:
    """Bounds of `x > y`."""
    return less(y, x)


@interval_rules.register(lax.ge_p)
def greater_equal(x: Bounds, y: Bounds) -> Bounds:
    """Bounds of `x >= y`."""
    return less_equal(y, x)


@interval_rules.register(lax.ne_p)
def not_equal(x: Bounds, y: Bounds) -> Bounds:
    """Bounds of `x != y`."""
    return negated(equal(x, y))


# -- logic -------------------------------------------------------------------------------------------------------


def refuse_bits(name: str, *operands: Bounds) -> None:
    """Bits of a number that is only known to be between two others are not known.

    Raises:
        TypeError: an operand is of integers.
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


# Increasing in every operand, where False is below True.
_on_bools(lax.and_p)
_on_bools(lax.or_p)
_on_bools(lax.reduce_and_p)
_on_bools(lax.reduce_or_p)


@interval_rules.register(lax.not_p)
def not_interval(x: Bounds) -> Bounds:
    """The bounds change places; of signed integers, `~x` is `-x - 1`, and of others also decreasing."""
    return negated(x)


@interval_rules.register(lax.xor_p)
def xor_interval(x: Bounds, y: Bounds) -> Bounds:
    """Of truth values, whether they differ."""
    refuse_bits("xor", x, y)
    return not_equal(x, y)


# -- selection ---------------------------------------------------------------------------------------------------


@interval_rules.register(lax.select_n_p)
def select_n_interval(which: Bounds, *cases: Bounds) -> Bounds:
    """The chosen case; where the choice is open, from the lowest to the highest of those that are possible."""
    out = Bounds(*(lax.select_n_p.bind(which.lower, *column) for column in zip(*cases, strict=True)))
    if which.is_point:
        return out
    if is_bool(which):
        return join(out, cases[-1], lax.ne(which.lower, which.upper))
    for i, case in enumerate(cases):
        i = constant(np.int32(i), which.lower)
        out = join(out, case, lax.bitwise_and(lax.ge(i, which.lower), lax.le(i, which.upper)))
    return out
