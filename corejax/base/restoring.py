"""Temporary changes of settings and of the trace stack, which are undone even if Ctrl-C arrives at a bad moment.

An interrupt may arrive at every call, even before the first line of an `__exit__` method or in the middle of a
`finally`. `run_within` therefore makes changes inside a `try` and undoes them twice; the second time counts if an
interrupt stops the first. A `with` statement undoes them only once, which suffices inside a call of `run_within`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any, TypeVar

R = TypeVar("R")


class Restoring(ContextDecorator):
    """A change that a `with` block makes and undoes.

    It is not a generator: one that an interrupt leaves suspended would undo the change only when it is collected.
    """

    __slots__ = ()

    def __enter__(self) -> Any:
        """Make the change."""
        raise NotImplementedError

    def restore(self) -> None:
        """Undo the change. This method may be called twice, and before the change was made."""
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        self.restore()


class Changed(Restoring):
    """A temporary value of an object's attribute.

    Args:
        holder: the object, such as a thread's state.
        attribute: name of the attribute.
        value: value of the attribute in the block; `with` returns it.
    """

    __slots__ = ("attribute", "earlier", "holder", "value")

    def __init__(self, holder: object, attribute: str, value: Any) -> None:
        self.holder = holder
        self.attribute = attribute
        self.value = value
        self.earlier = getattr(holder, attribute)

    def __enter__(self) -> Any:
        self.earlier = getattr(self.holder, self.attribute)
        setattr(self.holder, self.attribute, self.value)
        return self.value

    def restore(self) -> None:
        """Restore the earlier value."""
        setattr(self.holder, self.attribute, self.earlier)


def run_within(changes: Sequence[Restoring], fun: Callable[..., R], *args: object, **kwargs: object) -> R:
    """Call `fun(*args, **kwargs)` with changes in force, and undo all of them afterwards."""
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
    """Raise the interrupt that caused an exception, if there is one.

    Python 3.11 turns an exception in `__set_name__` (while a class is created, as in an import) into a RuntimeError.

    Raises:
        KeyboardInterrupt: `error` is one, or was caused by one.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            raise cause
        cause = cause.__cause__
