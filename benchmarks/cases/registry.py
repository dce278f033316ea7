"""What a case is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Sides = tuple[Callable[[], Any], ...]


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        name: what is timed.
        wanted: the ratio corejax / jax that the project wants.
        make: gives the two sides, ready to be called over and over; a third one is NumPy's, and the ratio then to the
            better of the two.
        short: whether rounds are many and short, which are seldom interrupted: for calls of microseconds.
        apart: whether each side is timed in processes of its own: where programs run on several threads, those of one
            library that wait for work take the processor from the other's.
        devices: how many CPU devices both libraries have to have.
    """

    name: str
    wanted: float | None
    make: Callable[[], Sides]
    short: bool = False
    apart: bool = False
    devices: int = 1


CASES: list[Case] = []


def case(
    name: str, wanted: float | None, short: bool = False, apart: bool = False
) -> Callable[[Callable[[], Sides]], Callable[[], Sides]]:
    """Add a case."""

    def add(make: Callable[[], Sides]) -> Callable[[], Sides]:
        CASES.append(Case(name, wanted, make, short, apart))
        return make

    return add


def blocking(lib: Any, f: Callable[[], Any]) -> Callable[[], Any]:
    """`f`, its results computed when it returns."""
    return lambda: lib.block_until_ready(f())


X = np.arange(8, dtype=np.float32) / 8
