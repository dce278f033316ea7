"""The exceptions of checks: `CheckFailure` if a rule is wrong, `NotApplicable` if a check does not apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CheckFailure(Exception):
    """A rule is wrong.

    Attributes:
        rule: kind of the rule to look at ("jvp"), or None if no single rule is at fault.
        hint: the probable mistake, in a few words; empty if the numbers do not show it.
    """

    def __init__(self, message: str, rule: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint


class NotApplicable(Exception):
    """The check does not apply to these operands; the message says why."""


@contextmanager
def hinting(hint_of: Callable[[CheckFailure], str]) -> Iterator[None]:
    """Give a failure in the `with` block the hint `hint_of(failure)`."""
    try:
        yield
    except CheckFailure as failure:
        failure.hint = hint_of(failure)
        raise
