"""The caches that `corejax.clear_caches` drops.

A module that keeps results keyed by function, program or type registers here how to drop them (`clears_cache`). Results
that are kept on the program or function itself are freed with it, and are not registered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from corejax.base.seams import Signal

F = TypeVar("F", bound=Callable[[], object])

_cleared = Signal("caches")


def clears_cache(clear: F) -> F:
    """Have `corejax.clear_caches` call a function that drops a cache; for use as a decorator, too.

    It runs in any thread, while others may be filling the cache, and raises nothing.

    Raises:
        TypeError: it is no function.
    """
    if not callable(clear):
        raise TypeError(f"clears_cache takes a function that drops a cache, such as table.clear, got {clear!r}")
    return _cleared.connect(clear)


def drop_oldest(table: dict[Any, Any], most: int) -> None:
    """Drop what was put first into a table, until it has at most so many entries; other threads may be filling it."""
    if len(table) > most:
        there = list(table)
        for key in there[: max(0, len(there) - most)]:
            table.pop(key, None)


class Exact:
    """A value in the key of a cache, which differs from equal values of other types or other signs of zeros."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any, key: Any) -> None:
        self.value, self.key = value, key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


def exact(value: Any) -> Any:
    """Return what to put into a key in place of a value: an `Exact` of numbers that are not whole, and of tuples."""
    return (
        Exact(value, _content(value)) if isinstance(value, float | complex | np.inexact | tuple | frozenset) else value
    )


def _content(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, float | complex | np.inexact):
        return kind, np.asarray(value).tobytes()
    if isinstance(value, tuple):
        return kind, tuple(map(_content, value))
    return (kind, frozenset(map(_content, value))) if isinstance(value, frozenset) else (kind, value)


def clear_caches() -> None:
    """Drop what corejax and its plugins keep: traces, compiled programs, types of results.

    Functions are traced and compiled again at their next call. Compiled programs that somebody holds
    (`jit(f).lower(...).compile()`) stay, as do arrays.
    """
    _cleared.send()
