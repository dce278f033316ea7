"""Cells: values that a function reads and writes outside its arguments, as inputs and outputs of a staged program.

A program has no state. If a function uses a cell of an enclosing function while an operator stages it, the cell raises
`OutsideCell`. The operator stages the function again, `threaded`: with the cell's value as a further argument, and the
cell's last value as a further result, which it writes to the cell. So programs, rules and interpreters know no cells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol, TypeVar

from corejax.core.avals import ShapedArray
from corejax.interpreters.staging import stage
from corejax.ir.jaxpr import Jaxpr
from corejax.messages.tracebacks import CallAgain

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Cell(Protocol):
    """A variable whose value is an array of a fixed type."""

    @property
    def aval(self) -> ShapedArray:
        """The type of the value."""

    @property
    def depth(self) -> int:
        """The number of enclosing functions that have a value of their own, see `inside`."""

    def get(self) -> Any:
        """Return the value; raise `OutsideCell` in a function that is staged and does not have the cell."""

    def take(self) -> Any:
        """Return the value as an array that nobody else holds, so that its memory may be reused."""

    def set(self, value: Any) -> None:
        """Replace the value by a result that nobody else holds."""

    def inside(self, value: Any) -> AbstractContextManager[Any]:
        """Give the cell a value of its own in the function that is being staged."""


class OutsideCell(CallAgain):
    """A function that is staged uses a cell of an enclosing function.

    Attributes:
        cell: the cell.
        depth: the cell's depth at the use.
    """

    def __init__(self, message: str, cell: Cell) -> None:
        super().__init__(message)
        self.cell, self.depth = cell, cell.depth

    def is_threaded(self) -> bool:
        """Whether the operator that catches this has threaded the cell, and an operator inside it has not."""
        return self.cell.depth < self.depth

    def other_call(self, operator: Callable[..., Any]) -> Callable[..., Any] | None:
        """Return the call that threads the cell, if the operator declares one by `threads_cells`."""
        way = getattr(operator, "__corejax_threads__", None)
        return None if way is None or self.is_threaded() else functools.partial(way, operator, self.cell)


def threads_cells(way: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate an operator with `way(operator, cell, *args, **kwargs)`, which calls it with a function that has a cell.

    The operator has to be decorated by `api_boundary` as well, below this decorator.
    """

    def mark(operator: F) -> F:
        operator.__corejax_threads__ = way  # type: ignore[attr-defined]  # any function
        return operator

    return mark


def threaded(fun: Callable[..., Any], cells: Sequence[Cell], values: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that runs `fun` with values of its own for cells, and returns `(result, last values)`."""

    def stateful(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        with ExitStack() as stack:
            for cell, value in zip(cells, values, strict=True):
                stack.enter_context(cell.inside(value))
            return fun(*args, **kwargs), [cell.get() for cell in cells]

    return stateful


def with_cells(make: Callable[[tuple[Cell, ...]], T]) -> tuple[T, tuple[Cell, ...]]:
    """Return `make(cells)` for the cells of enclosing functions that `make` uses, and these cells."""
    cells: tuple[Cell, ...] = ()
    while True:
        try:
            return make(cells), cells
        except OutsideCell as use:
            if use.is_threaded():
                raise
            cells = (*cells, use.cell)


def flat_threaded(fun: Callable[..., Sequence[Any]], cells: Sequence[Cell]) -> Callable[..., Sequence[Any]]:
    """Return a function of leaves with the cells' values as last arguments and their last values as last results."""
    if not cells:
        return fun

    def flat(*leaves: Any) -> list[Any]:
        first = len(leaves) - len(cells)
        outs, values = threaded(fun, cells, leaves[first:])(*leaves[:first])
        return [*outs, *values]

    return flat


def write_cells(cells: Sequence[Cell], outs: Sequence[Any]) -> Sequence[Any]:
    """Write the last results of a program to the cells, and return the others."""
    first = len(outs) - len(cells)
    for cell, value in zip(cells, outs[first:], strict=True):
        cell.set(value)
    return outs[:first]


def stage_with_cells(
    fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], debug: Any = None
) -> tuple[Jaxpr, list[Any], tuple[Cell, ...]]:
    """Do as `stage`; return the cells as well, whose values are the program's last arguments and results."""

    def make(cells: tuple[Cell, ...]) -> tuple[Jaxpr, list[Any]]:
        return stage(flat_threaded(fun, cells), [*in_avals, *[cell.aval for cell in cells]], debug)

    (jaxpr, consts), cells = with_cells(make)
    return jaxpr, consts, cells
