"""`corejax.compilation_cache`: compiled programs on disk, which the next process loads in milliseconds.

    corejax.config.update("compilation_cache_dir", "~/.cache/corejax")

or `COREJAX_COMPILATION_CACHE_DIR`. Who may write into the directory decides what code runs in your process, so do not
share it with people whom you do not trust; it is made for its owner alone.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from corejax.extend import config


class CacheStats(NamedTuple):
    """State of the cache.

    Attributes:
        directory: where it is, empty where there is none.
        entries: programs in it.
        nbytes: bytes that they take.
        hits, misses: how often this process found a program in a cache, and did not.
    """

    directory: str
    entries: int
    nbytes: int
    hits: int
    misses: int


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """`config.update("compilation_cache_dir", path)`: None or an empty path for no cache."""
    config.update("compilation_cache_dir", path)


def is_initialized() -> bool:
    """Whether programs are kept on disk."""
    from corejax_xla_backend._xla.disk_cache import current_files

    return current_files() is not None


def reset_cache() -> None:
    """Begin anew: counts are zero, and what went wrong is warned of again. Files stay, as does the directory's name."""
    from corejax_xla_backend._xla import disk_cache

    disk_cache.Counts.hits = disk_cache.Counts.misses = 0
    disk_cache.forget_warnings()


def remove_entries() -> None:
    """Remove the programs in the directory, and nothing else; `corejax.clear_caches()` leaves them alone.

    Raises:
        OSError: the directory cannot be read.
    """
    from corejax_xla_backend._xla.disk_cache import current_files

    files = current_files()
    if files is not None:
        files.clear()


def stats() -> CacheStats:
    """What is in the directory, and what came of it so far.

    Raises:
        OSError: the directory cannot be read.
    """
    from corejax_xla_backend._xla.disk_cache import Counts, current_files

    files = current_files()
    entries = [] if files is None else files.entries()
    directory = "" if files is None else str(files.directory)
    return CacheStats(directory, len(entries), sum(e.size for e in entries), Counts.hits, Counts.misses)


__all__ = ["CacheStats", "is_initialized", "remove_entries", "reset_cache", "set_cache_dir", "stats"]
