"""Cells: variables of Python that a staged program reads and writes, as arguments and results.

Programs have no state. If a function that is being staged uses a cell of an enclosing function, the trace adds an
argument to the program, and the cell's value in the function is that argument (`StagingTrace.open_cell`). The cell's
last value becomes a result. An operator that stages with `stage_with_cells` passes the cell's value to the program, and
writes the result to the cell; one that uses `stage` lets the function read cells, as constants, but not write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from corejax.core.avals import ShapedArray


class Cell(Protocol):
    """A variable whose value is an array of a fixed type; cells are compared by identity."""

    @property
    def aval(self) -> ShapedArray:
        """The type of the value."""

    def get(self) -> Any:
        """Return the value in the function that runs."""

    def take(self) -> Any:
        """Return the value as an array that nobody else holds, so that its memory may be reused."""

    def set(self, value: Any) -> None:
        """Replace the value by an array that nobody else holds."""

    def enter(self, value: Any) -> None:
        """Give the cell a value of its own in the function that is being staged."""

    def leave(self) -> None:
        """Forget the value of the last `enter`."""


def write_cells(cells: Sequence[Cell], outs: Sequence[Any]) -> Sequence[Any]:
    """Write the last results of a program to the cells, and return the other results."""
    first = len(outs) - len(cells)
    for cell, value in zip(cells, outs[first:], strict=True):
        cell.set(value)
    return outs[:first]
