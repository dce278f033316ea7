"""Sets of what is alive, for clearing it, and jaxlib's dispatchers among that; without an import of jaxlib."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LiveSet(Generic[T]):
    """Objects as long as somebody else holds them.

    Unlike `weakref.WeakSet` it may be walked through while other threads add to it.
    """

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()

    def add(self, item: T) -> None:
        """Add an object; equal ones are one."""
        self._references.add(weakref.ref(item, self._references.discard))

    def __iter__(self) -> Iterator[T]:
        """Those alive now."""
        for reference in self._references.copy():
            item = reference()
            if item is not None:
                yield item


dispatchers: LiveSet[Any] = LiveSet()


def clear_dispatchers() -> None:
    """Have all of jaxlib's C++ dispatchers forget their signatures, and the programs that they run."""
    for dispatcher in dispatchers:
        dispatcher._clear_cache()
