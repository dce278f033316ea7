"""Weak sets of caches, for clearing them, and the set of jaxlib's dispatchers; this module does not import jaxlib."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LiveSet(Generic[T]):
    """A set of weak references.

    Unlike `weakref.WeakSet`, it can be iterated over while other threads add to it.
    """

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()

    def add(self, item: T) -> None:
        """Add an object, unless an equal one is in the set."""
        self._references.add(weakref.ref(item, self._references.discard))

    def __iter__(self) -> Iterator[T]:
        """Iterate over the objects that are alive."""
        for reference in self._references.copy():
            item = reference()
            if item is not None:
                yield item


dispatchers: LiveSet[Any] = LiveSet()


def clear_dispatchers() -> None:
    """Clear the caches of all of jaxlib's C++ dispatchers: signatures and programs."""
    for dispatcher in dispatchers:
        dispatcher._clear_cache()
