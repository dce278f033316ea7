"""Making a failing program small: hypothesis looks for the fewest parts of it that still fail in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable

from corejax_testing.fuzzing.builder import DIGITS, Choose, Raised
from corejax_testing.fuzzing.case import Case
from corejax_testing.fuzzing.relations import ask
from corejax_testing.outcomes import NotApplicable

ATTEMPTS = 400
SECONDS = 60.0  # a safeguard: what is bounded is the number of attempts
_CHOICES = 64  # of which few are 0, so that most of a program is there when the search begins


def shrink(generate: Callable[[Choose], Case], case: Case, relation: str, attempts: int = ATTEMPTS) -> Case:
    """Find a small case of which the relation does not hold either.

    Args:
        generate: builds the program again, as `generation.generate` does.
        case: the program, of which the relation does not hold.
        relation: as for `ask`.
        attempts: at most so many programs are tried.
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
        except Exception:  # nothing is left, or a rule raises: the very mistake that is looked for, perhaps
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
    """How the relation fails: with an error of this type, or "" with a difference; None if it does not."""
    try:
        failure = ask(case, relation)
    except NotApplicable:
        return None
    if failure is None:
        return None
    return failure[0].split(":")[0] if failure[1] else ""
