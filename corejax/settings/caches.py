"""The caches that `corejax.clear_caches` drops.

A module that caches results by function, program or type registers a function that clears the cache (`clears_cache`).
Results that are stored on the program or function itself are freed with it, so they need no registration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from corejax.base.seams import Signal

F = TypeVar("F", bound=Callable[[], object])

_cleared = Signal("caches")


def clears_cache(clear: F) -> F:
    """Register a function that drops a cache, for `corejax.clear_caches`; may be used as a decorator.

    The function may be called in any thread, while other threads fill the cache, and must not raise.

    Raises:
        TypeError: `clear` is not callable.
    """
    if not callable(clear):
        raise TypeError(f"clears_cache takes a function that drops a cache, such as table.clear, got {clear!r}")
    return _cleared.connect(clear)


def drop_oldest(table: dict[Any, Any], most: int) -> None:
    """Evict the oldest entries of a dict until it has at most `most`; other threads may add entries meanwhile."""
    if len(table) > most:
        keys = list(table)
        for key in keys[: max(0, len(keys) - most)]:
            table.pop(key, None)


class Exact:
    """A value in the key of a cache that differs from equal values of another type (`1.0`, `1`) or sign (`-0.0`)."""

    __slots__ = ("key", "value")

    def __init__(self, value: object, key: object) -> None:
        self.value, self.key = value, key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


def exact(value: object) -> Any:
    """Return a value for the key of a cache: an `Exact` for inexact numbers, tuples and frozensets, else `value`."""
    return (
        Exact(value, _content(value)) if isinstance(value, float | complex | np.inexact | tuple | frozenset) else value
    )


def _content(value: object) -> Any:
    kind = type(value)
    if isinstance(value, float | complex | np.inexact):
        return kind, np.asarray(value).tobytes()
    if isinstance(value, tuple):
        return kind, tuple(map(_content, value))
    return (kind, frozenset(map(_content, value))) if isinstance(value, frozenset) else (kind, value)


def clear_caches() -> None:
    """Drop the caches of corejax and its plugins: traces, compiled programs, types of results.

    Functions are traced and compiled again at their next call. Arrays stay valid, and so do compiled programs that
    user code references (`jit(f).lower(...).compile()`).
    """
    _cleared.send()
