"""The engine's caches, from the signature of a call to a specialised function or program.

A signature is the operation or function, the types of its operands and its static arguments. Entries are made with the
rules in force. So one invalidation serves all caches: all are cleared when a rule or a type rule changes, and by
`corejax.clear_caches`. Settings that matter are part of the signature. A full cache is cleared as well.
"""

from __future__ import annotations

import weakref
from enum import Enum
from typing import Any

import numpy as np

from corejax.extend import impl_rules, jvp_rules, partial_eval_rules, transpose_rules, vmap_rules
from corejax.extend.messages import clears_cache
from corejax.extend.speed import types_changed

_WORDS = frozenset({int, bool, str, type(None)})
_NAMES = (np.dtype, Enum)


class Cache(dict[Any, Any]):
    """A bounded dict, which is cleared together with all other caches.

    Attributes:
        limit: the largest number of entries.
        clearings: how often it was cleared. An entry must not be stored if its computation began before a clearing.
    """

    __slots__ = ("__weakref__", "clearings", "limit")
    __hash__ = object.__hash__  # type: ignore[assignment]  # dicts have no hash

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


# Only caches that may have entries are cleared, because rules change often while plugins load.
_filled: weakref.WeakSet[Cache] = weakref.WeakSet()
_clearings = 0


def clearings() -> int:
    """Return how often all caches were cleared; an entry is valid as long as this number stays the same."""
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
# A change of any rule clears all caches, because a rule may run the rules of other primitives.
for _registry in (impl_rules, jvp_rules, vmap_rules, transpose_rules, partial_eval_rules):
    _registry.changed.connect(clear_all)


# -- parameters in keys ----------------------------------------------------------------------------------------------


def is_word(value: Any) -> bool:
    """Return whether parameters that are equal and of one `kind_of` are interchangeable.

    Floats are not (0.0 equals -0.0), nor are instances of subclasses, nor programs, which may close over values.
    """
    if type(value) is tuple:
        return all(map(is_word, value))
    return type(value) in _WORDS or isinstance(value, _NAMES)


def kind_of(value: Any) -> Any:
    """Return the type of a parameter, and of the items of tuples, because 1 equals True."""
    kind = type(value)
    return tuple([kind_of(v) for v in value]) if kind is tuple else kind
