"""`corejax.compilation_cache`: compiled programs on disk, which the next process loads in milliseconds.

By default programs that take longer than 0.1 s to compile are stored in the user's cache directory. The settings
`compilation_cache_dir` and `compilation_cache` (`COREJAX_COMPILATION_CACHE=off`) choose another directory and switch
the cache off. An entry is machine code, so the directory must belong to the user and be writable by the user only.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from corejax.extend import config


class CacheStats(NamedTuple):
    """The state of the cache.

    Attributes:
        directory: the directory, empty if the cache is off.
        entries: the number of programs in it.
        nbytes: the bytes of all entries.
        hits, misses: how often this process found a program in the cache, and how often it did not.
    """

    directory: str
    entries: int
    nbytes: int
    hits: int
    misses: int


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Set `config.compilation_cache_dir`: None or an empty path for no cache, "auto" for the default."""
    config.update("compilation_cache_dir", path)


def is_initialized() -> bool:
    """Return whether compiled programs are stored on disk."""
    from corejax_xla_backend._xla.program_files import current_files

    return current_files() is not None


def reset_cache() -> None:
    """Reset the counts of hits and misses, and the warnings of this process; files and settings do not change."""
    from corejax_xla_backend._xla import disk_cache

    disk_cache.Counts.hits = disk_cache.Counts.misses = 0
    disk_cache.forget_warnings()


def remove_entries() -> None:
    """Remove the programs in the directory, but no other files; `corejax.clear_caches()` does not touch them.

    Raises:
        OSError: the directory cannot be read.
    """
    from corejax_xla_backend._xla.program_files import current_files

    files = current_files()
    if files is not None:
        files.clear()


def stats() -> CacheStats:
    """Return the size of the cache, and the hits and misses of this process.

    Raises:
        OSError: the directory cannot be read.
    """
    from corejax_xla_backend._xla.disk_cache import Counts
    from corejax_xla_backend._xla.program_files import current_files

    files = current_files()
    entries = [] if files is None else files.entries()
    directory = "" if files is None else str(files.directory)
    return CacheStats(directory, len(entries), sum(e.size for e in entries), Counts.hits, Counts.misses)


__all__ = ["CacheStats", "is_initialized", "remove_entries", "reset_cache", "set_cache_dir", "stats"]
