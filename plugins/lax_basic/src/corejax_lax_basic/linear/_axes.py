"""The axes of the operands of `dot_general`."""

from __future__ import annotations

from typing import NamedTuple

DimensionNumbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


class Axes(NamedTuple):
    """The axes of one operand by what becomes of them."""

    batch: tuple[int, ...]
    contract: tuple[int, ...]
    free: tuple[int, ...]


def axes_of(dimension_numbers: DimensionNumbers, lhs_ndim: int, rhs_ndim: int) -> tuple[Axes, Axes]:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    return (
        Axes(lhs_batch, lhs_contract, tuple(d for d in range(lhs_ndim) if d not in lhs_batch + lhs_contract)),
        Axes(rhs_batch, rhs_contract, tuple(d for d in range(rhs_ndim) if d not in rhs_batch + rhs_contract)),
    )
