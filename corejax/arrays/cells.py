"""Cells: variables of Python that a staged program reads and writes, as arguments and results.

Programs have no state. If a function that is being staged uses a cell of an enclosing function, the trace adds an
argument to the program, and the cell's value in the function is that argument (`StagingTrace.open_cell`). The cell's
last value becomes a result. An operator that stages with `stage_with_cells` passes the cell's value to the program, and
writes the result to the cell; one that uses `stage` lets the function read cells, as constants, but not write them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, Protocol

from corejax.base.seams import Slot
from corejax.core.avals import ShapedArray
from corejax.core.trace import Trace, current_trace


class Cell(Protocol):
    """A variable whose value is an array of a fixed type; cells are compared by identity."""

    turn: Any  # a lock that a compiled call holds from `take` to `set`

    @property
    def aval(self) -> ShapedArray:
        """The type of the value."""

    def get(self) -> Any:
        """Return the value in the function that runs."""

    def take(self) -> Any:
        """Return the value as an array with no other owner, so that its memory may be reused."""

    def set(self, value: Any) -> None:
        """Replace the value by an array with no other owner."""

    def enter(self, value: Any, trace: Trace) -> None:
        """Give the cell a value of its own in a function that `trace` interprets."""

    def leave(self) -> None:
        """Forget the value of the last `enter`."""


class CellArguments(NamedTuple):
    """What a plugin knows of the cells in pytrees of arguments, which are nodes without leaves.

    Attributes:
        mapped: `(args, axes) -> [(cell, axis)]`; the axes are a prefix of the pytree.
        keyed: `args -> (args, cells, stand-ins)`. The new pytree has stand-ins for the cells, which a function can be
            staged with; its structure is equal for other cells of the same types.
        accumulate: `(cotangents, places) -> cotangents`: adds cotangents to the cells among the places.
    """

    mapped: Callable[[Any, Any], list[tuple[Cell, int | None]]]
    keyed: Callable[[Any], tuple[Any, list[Cell], list[Cell]]]
    accumulate: Callable[[Any, Any], Any]


cell_arguments: Slot[CellArguments] = Slot("the cells in arguments")


def cells_among(arguments: object, axes: object = None) -> list[tuple[Cell, int | None]]:
    """Return the cells in a pytree, each with its entry of the prefix `axes`; none if no plugin provides cells."""
    return [] if cell_arguments.value is None else cell_arguments.value.mapped(arguments, axes)


def refuse_cells(transform: str, arguments: object) -> None:
    """Raise TypeError if an argument to be differentiated is a cell."""
    if cells := cells_among(arguments):
        raise TypeError(
            f"{transform}: the argument {cells[0][0]!r} is a reference, which has no derivative: pass its value, "
            "ref[...], or close over it"
        )


def with_cells(fun: Callable[..., Sequence[Any]], cells: Sequence[Cell]) -> Callable[..., Sequence[Any]]:
    """Return the flat function with the cells' values as last arguments and their last values as last results."""

    def flat(*leaves: Any) -> Sequence[Any]:
        first = len(leaves) - len(cells)
        with ExitStack() as stack:
            for cell, value in zip(cells, leaves[first:], strict=True):
                cell.enter(value, current_trace())
                stack.callback(cell.leave)
            return [*fun(*leaves[:first]), *[cell.get() for cell in cells]]

    return flat if cells else fun


def write_cells(cells: Sequence[Cell], outs: list[Any]) -> list[Any]:
    """Write the last results of a program to the cells, and return the other results."""
    first = len(outs) - len(cells)
    for cell, value in zip(cells, outs[first:], strict=True):
        cell.set(value)
    return outs[:first]
