"""What is kept to be found again: `corejax.clear_caches` drops all of it.

Whoever keeps something by function, program or type for longer than that lives says here how it is dropped. What is
kept with a program or a function, and goes with it, needs no mention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[[], object])

_clearers: list[Callable[[], object]] = []


def clears_cache(clear: F) -> F:
    """Have `corejax.clear_caches` call a function that drops a cache; for use as a decorator, too.

    It runs in any thread, while others may be filling the cache, and raises nothing.
    """
    _clearers.append(clear)
    return clear


def clear_caches() -> None:
    """Drop what corejax and its plugins keep: traces, compiled programs, types of results.

    Functions are traced and compiled again at their next call. Compiled programs that somebody holds
    (`jit(f).lower(...).compile()`) stay, as do arrays.
    """
    for clear in list(_clearers):
        clear()
