"""The checks by name, in the order of a report's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from corejax.extend import MissingRuleError
from corejax_testing.calls import Call
from corejax_testing.outcomes import CheckFailure, NotApplicable

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
        note: says what the check leaves out here, if anything.
        shrinks: whether what fails is made small; not where the numbers do not matter.
    """

    name: str
    run: Run
    rule: str | None = None
    dtypes: bool = False
    shapes: bool = False
    limit: int = 0
    note: Callable[[], str] = str
    shrinks: bool = True

    @property
    def doc(self) -> str:
        """What holds, in a sentence."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


def check(
    name: str,
    rule: str | None = None,
    *,
    dtypes: bool = False,
    shapes: bool = False,
    limit: int = 0,
    note: Callable[[], str] = str,
    shrinks: bool = True,
) -> Callable[[Run], Run]:
    """A decorator that makes a function a check."""

    def register(run: Run) -> Run:
        CHECKS[name] = Check(name, run, rule, dtypes, shapes, limit, note, shrinks)
        return run

    return register


@contextmanager
def blamed(rule: str) -> Iterator[None]:
    """What raises in the `with` block is this rule's fault.

    Raises:
        CheckFailure: in place of what was raised, except what checks and missing rules raise themselves.
    """
    try:
        yield
    except (CheckFailure, NotApplicable, MissingRuleError):
        raise
    except Exception as error:
        raise CheckFailure(f"{type(error).__name__}: {error}", rule) from error
