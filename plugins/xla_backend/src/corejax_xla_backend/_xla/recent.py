"""Executables of this process by what they were compiled of: a function that is defined again is not compiled again.

`jit(lambda x: ...)` and `jit(grad(f))` in a loop, and a cell of a notebook that is run once more, make new functions
that are traced to programs which were compiled before. The setting `kept_programs` says how many are kept for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend import config
from corejax.extend.messages import clears_cache, drop_oldest
from corejax_xla_backend._xla.digests import sha256

_LONG = 1 << 16  # characters: of longer texts digests are kept
ORIGIN = "an equal program was compiled before"

_recent: dict[Any, Any] = {}  # the latest used last
clears_cache(_recent.clear)

E = TypeVar("E")


def recent(text: str, others: tuple[Any, ...], make: Callable[[], tuple[E, str]]) -> tuple[E, str]:
    """An executable, and where it is from if it was not compiled now.

    Args:
        text: the module's, whose locations count: they are in what is shown of the executable, and in profiles.
        others: what else it depends on, hashable.
        make: compiles it, or reads it from somewhere.
    """
    if config.kept_programs == 0:
        return make()
    key = (text if len(text) < _LONG else sha256(text.encode()).digest(), *others)
    found = _recent.pop(key, None)
    origin = ORIGIN
    if found is None:
        found, origin = make()
    _recent[key] = found
    drop_oldest(_recent, config.kept_programs)
    return found, origin


config.changed.connect(lambda: drop_oldest(_recent, config.kept_programs))
