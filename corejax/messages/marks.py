"""The mark on an exception that says which rule it came out of, so that no second rule is blamed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)
_MARK = "__corejax_rule__"


def mark(error: BaseException, primitive: Any, kind: str | None = None) -> None:
    """Say that an exception names the rule itself, of this kind: no note is added to it."""
    with suppress(Exception):  # an exception with slots, say: a second note does no harm
        setattr(error, _MARK, (primitive.name, kind))


def not_of_rule(error: E) -> E:
    """Say that an exception tells what the user did, whichever rule finds out: no note names the rule.

    Returns:
        The exception, to be raised.
    """
    if not hasattr(error, _MARK):
        with suppress(Exception):
            setattr(error, _MARK, None)
    return error


def is_noted(error: BaseException) -> bool:
    """Return whether an exception has its note."""
    return hasattr(error, _MARK)


def attributed_rule(error: BaseException) -> tuple[str, str | None] | None:
    """Return the primitive's name and the kind of the rule that an exception was attributed to, or None."""
    found: tuple[str, str | None] | None = getattr(error, _MARK, None)
    return found
