"""The mark on an exception that names the rule that raised it, so that no outer rule is blamed as well."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)
_MARK = "__corejax_rule__"


def mark(error: BaseException, primitive: Any, kind: str | None = None) -> None:
    """Mark an exception as attributed to a rule of this kind, so that no further note is added."""
    with suppress(Exception):  # an exception with slots cannot be marked; a second note does no harm
        setattr(error, _MARK, (primitive.name, kind))


def not_of_rule(error: E) -> E:
    """Mark an exception as the user's mistake, which a rule only detects, so that no note names the rule.

    Returns:
        The exception, to be raised.
    """
    if not hasattr(error, _MARK):
        with suppress(Exception):
            setattr(error, _MARK, None)
    return error


def is_noted(error: BaseException) -> bool:
    """Return True if an exception is marked, so that it needs no note."""
    return hasattr(error, _MARK)


def attributed_rule(error: BaseException) -> tuple[str, str | None] | None:
    """Return the primitive's name and the kind of the rule that an exception was attributed to, or None."""
    rule: tuple[str, str | None] | None = getattr(error, _MARK, None)
    return rule
