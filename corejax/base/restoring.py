"""Temporary changes of settings and of the trace stack, which are undone even if Ctrl-C arrives at a bad moment.

Python may be interrupted at every call: before the first line of an `__exit__` method too, and in the middle of a
`finally`. So `run_within` makes a change inside a `try` and undoes it twice: the second time for an interrupt that
arrives in the first. A `with` statement cannot do that. It is good enough inside of such a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any, TypeVar

R = TypeVar("R")


class Restoring(ContextDecorator):
    """A change for the length of a `with` block, whose exit only calls `restore`.

    It is no generator: one that an interrupt leaves suspended runs its last part whenever it is collected.
    """

    __slots__ = ()

    def __enter__(self) -> Any:
        """Make the change."""
        raise NotImplementedError

    def restore(self) -> None:
        """Take it back; may be called twice, and where nothing has been changed yet."""
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        self.restore()


class Changed(Restoring):
    """Another value of an object's attribute.

    Args:
        holder: the object, such as a thread's state.
        attribute: the attribute's name.
        value: what it is in the block; `with` gives it.
    """

    __slots__ = ("attribute", "earlier", "holder", "value")

    def __init__(self, holder: Any, attribute: str, value: Any) -> None:
        self.holder = holder
        self.attribute = attribute
        self.value = value
        self.earlier = getattr(holder, attribute)

    def __enter__(self) -> Any:
        self.earlier = getattr(self.holder, self.attribute)
        setattr(self.holder, self.attribute, self.value)
        return self.value

    def restore(self) -> None:
        """Put the earlier value back."""
        setattr(self.holder, self.attribute, self.earlier)


def run_within(changes: Sequence[Restoring], fun: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """`fun(*args, **kwargs)` with changes in force, none of which outlasts the call."""
    try:
        try:
            for change in changes:
                change.__enter__()
            return fun(*args, **kwargs)
        finally:
            _restore(changes)
    finally:
        _restore(changes)


def _restore(changes: Sequence[Restoring]) -> None:
    for change in reversed(changes):
        change.restore()


def raise_interrupt(error: BaseException) -> None:
    """Raise the interrupt that is behind an exception, if one is.

    Python 3.11 makes a RuntimeError of what is raised while a class is made (`__set_name__`), in an import say.

    Raises:
        KeyboardInterrupt: `error` is one, or was caused by one.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            raise cause
        cause = cause.__cause__
