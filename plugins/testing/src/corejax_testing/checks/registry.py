"""The checks by name, in the order of a report's columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from corejax_testing.calls import Call

Run = Callable[[Call, np.random.Generator], None]

CHECKS: dict[str, Check] = {}


@dataclass(frozen=True)
class Check:
    """One property of a primitive's rules.

    Attributes:
        name: the report's column.
        run: raises `CheckFailure` where the property does not hold, `NotApplicable` where it means nothing.
        rule: kind of the rule that is to blame for what raises.
        dtypes: whether it runs on the examples in other dtypes too.
        shapes: whether hypothesis makes further operands, of elementwise primitives.
        limit: at most so many applications, the smallest first; 0 for all of them.
    """

    name: str
    run: Run
    rule: str | None
    dtypes: bool
    shapes: bool
    limit: int

    @property
    def doc(self) -> str:
        """What holds, in a sentence."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


def check(
    name: str, rule: str | None = None, *, dtypes: bool = False, shapes: bool = False, limit: int = 0
) -> Callable[[Run], Run]:
    """A decorator that makes a function a check."""

    def register(run: Run) -> Run:
        CHECKS[name] = Check(name, run, rule, dtypes, shapes, limit)
        return run

    return register
