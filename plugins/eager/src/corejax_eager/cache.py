"""The engine's caches: from the signature of a call to what was made for calls like it.

A signature is what runs, the types of its operands and its static arguments. What a cache holds was made with the rules
in force. So one invalidation serves all caches: when a rule or a type rule changes, and on `corejax.clear_caches`, they
are cleared. Settings that matter are part of the signature. A cache that is full is cleared, too.
"""

from __future__ import annotations

import weakref
from typing import Any

from corejax.extend import impl_rules, jvp_rules, partial_eval_rules, transpose_rules, vmap_rules
from corejax.extend.messages import clears_cache
from corejax.extend.speed import types_changed


class Cache(dict[Any, Any]):
    """A bounded dict, cleared with all others.

    Attributes:
        limit: how many entries it holds.
        clearings: how often it was cleared; an entry begun before the last time must not be stored after it.
    """

    __slots__ = ("__weakref__", "clearings", "limit")
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, limit: int = 4096) -> None:
        super().__init__()
        self.limit = limit
        self.clearings = 0

    def store(self, key: Any, value: Any) -> Any:
        """Store a value under a key, and return it."""
        if len(self) >= self.limit:
            self.clear()
        self[key] = value
        _filled.add(self)
        return value

    def clear(self) -> None:
        """Drop all entries."""
        self.clearings += 1
        super().clear()


# The caches that may have entries: rules change often while plugins are loaded.
_filled: weakref.WeakSet[Cache] = weakref.WeakSet()
_clearings = 0


def clearings() -> int:
    """Return how often all caches were cleared: what was made with the rules in force holds while it stays the same."""
    return _clearings


@clears_cache
def clear_all(*_: object) -> None:
    """Clear all caches."""
    global _clearings
    _clearings += 1
    for cache in list(_filled):
        _filled.discard(cache)
        cache.clear()


types_changed.connect(clear_all)
# A rule may run rules of any primitive.
for _registry in (impl_rules, jvp_rules, vmap_rules, transpose_rules, partial_eval_rules):
    _registry.changed.connect(clear_all)
