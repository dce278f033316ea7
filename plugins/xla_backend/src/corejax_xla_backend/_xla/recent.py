"""The cache of this process's executables by the text of their programs.

`jit(lambda x: ...)` and `jit(grad(f))` in a loop, or a notebook cell that is run again, make new functions that are
traced to programs which were compiled before. This cache avoids compiling them again. The setting `kept_programs` is
its size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend import config
from corejax.extend.messages import clears_cache, drop_oldest
from corejax_xla_backend._xla.digests import sha256

_LONG = 1 << 16  # characters; the keys of longer texts are digests
ORIGIN = "an equal program was compiled before"

_recent: dict[Any, Any] = {}  # the most recently used entry is the last
clears_cache(_recent.clear)

E = TypeVar("E")


def recent(text: str, others: tuple[Any, ...], make: Callable[[], tuple[E, str]]) -> tuple[E, str]:
    """Return a cached executable, or make and cache one; also return its origin ("" if it was compiled now).

    Args:
        text: the module's text with locations, which are part of the key because the executable's text and profiles
            show them.
        others: everything else that the executable depends on, hashable.
        make: compiles the program, or reads it from the disk.
    """
    if config.kept_programs == 0:
        return make()
    key = (text if len(text) < _LONG else sha256(text.encode()).digest(), *others)
    executable = _recent.pop(key, None)
    origin = ORIGIN
    if executable is None:
        executable, origin = make()
    _recent[key] = executable
    drop_oldest(_recent, config.kept_programs)
    return executable, origin


config.changed.connect(lambda: drop_oldest(_recent, config.kept_programs))
