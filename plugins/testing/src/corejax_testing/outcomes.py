"""What a check says: nothing where all is well, `CheckFailure` with numbers, `NotApplicable` with a reason."""

from __future__ import annotations


class CheckFailure(Exception):
    """A rule is wrong.

    Attributes:
        rule: kind of the rule to look at ("jvp"), or None where no single one is at fault.
        hint: what is probably wrong with it, in a few words; empty where the numbers do not tell.
    """

    def __init__(self, message: str, rule: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint


class NotApplicable(Exception):
    """The check says nothing about these operands; the message says why."""
