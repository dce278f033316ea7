"""Reduce a failing program: hypothesis searches for the fewest parts that still fail in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable

from corejax_testing.fuzzing.builder import DIGITS, Choose, Raised
from corejax_testing.fuzzing.case import Case
from corejax_testing.fuzzing.relations import ask
from corejax_testing.outcomes import NotApplicable

ATTEMPTS = 400
SECONDS = 60.0  # a safeguard; normally the number of attempts ends the search
_CHOICES = 64  # few of the choices are 0, so that the search begins with most of the program


def shrink(generate: Callable[[Choose], Case], case: Case, relation: str, attempts: int = ATTEMPTS) -> Case:
    """Find a smaller case for which the relation fails in the same way.

    Args:
        generate: builds the program again, as `generation.generate` does.
        case: the program for which the relation fails.
        relation: the relation's name, as for `ask`.
        attempts: the maximal number of programs to try.

    Returns:
        The smallest case found, or `case` itself.
    """
    from hypothesis import errors, find, reject, strategies

    from corejax_testing.search import quiet_settings

    kind, deadline = _kind(case, relation), time.monotonic() + SECONDS
    tried: dict[tuple[int, ...], bool] = {}

    @strategies.composite
    def smaller(draw: strategies.DrawFn) -> tuple[tuple[int, ...], Case]:
        chosen: list[int] = []

        def choose() -> int:
            chosen.append(min(draw(strategies.integers(0, _CHOICES - 1)), DIGITS))
            return chosen[-1]

        try:
            found = generate(choose)
        except Raised as raised:
            found = raised.case
        except Exception:  # no equations remain, or a rule raises an error before there is a program to compare
            reject()
        return tuple(chosen), found

    def fails(candidate: tuple[tuple[int, ...], Case]) -> bool:
        chosen, smaller = candidate
        if chosen not in tried:
            if len(tried) >= attempts or time.monotonic() > deadline:
                return False
            tried[chosen] = _kind(smaller, relation) == kind
        return tried[chosen]

    try:
        return case if kind is None else find(smaller(), fails, settings=quiet_settings(max(attempts, 1)))[1]
    except errors.NoSuchExample:
        return case


def _kind(case: Case, relation: str) -> str | None:
    """Return how the relation fails: the type of the error, "" for a difference, None if it holds."""
    try:
        failure = ask(case, relation)
    except NotApplicable:
        return None
    if failure is None:
        return None
    return failure[0].split(":")[0] if failure[1] else ""
