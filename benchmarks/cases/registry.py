"""What a case is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Sides = tuple[Callable[[], Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        name: what is timed.
        wanted: the ratio corejax / jax that the project wants.
        make: gives the two sides, ready to be called over and over.
    """

    name: str
    wanted: float | None
    make: Callable[[], Sides]


CASES: list[Case] = []


def case(name: str, wanted: float | None) -> Callable[[Callable[[], Sides]], Callable[[], Sides]]:
    """Add a case."""

    def add(make: Callable[[], Sides]) -> Callable[[], Sides]:
        CASES.append(Case(name, wanted, make))
        return make

    return add


X = np.arange(8, dtype=np.float32) / 8
