"""The limit on the size of a value: the machine's memory, or the setting `memory_limit`.

The limit is checked before memory is allocated. Operating systems allow allocations beyond the physical memory, and
kill the process when it uses them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache

from corejax.settings.config import config

LARGE = 1 << 30  # bytes; smaller values are not checked

_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def physical_memory() -> int:
    """Return the bytes of memory of the machine, or of the container in which the process runs."""
    nbytes = 1 << 47
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        pages = os.sysconf("SC_PHYS_PAGES")
        nbytes = os.sysconf("SC_PAGE_SIZE") * pages if pages > 0 else nbytes
    for path in _GROUP_LIMITS:
        with suppress(OSError, ValueError), open(path) as file:  # the file is missing, or contains "max"
            nbytes = min(nbytes, int(file.read()))
    return nbytes


def memory_limit() -> int:
    """Return the maximal bytes of one value or program: the setting `memory_limit`, or the memory if that is 0."""
    return config.memory_limit or physical_memory()


def check_memory(nbytes: int, what: str) -> None:
    """Raise MemoryError if a value does not fit into memory.

    Args:
        nbytes: number of bytes that are needed at once.
        what: noun phrase for the value, with its shape; begins the message.

    Raises:
        MemoryError: `nbytes` exceeds the limit.
    """
    if nbytes <= LARGE:
        return
    limit = memory_limit()
    if nbytes > limit:
        raise MemoryError(
            f"{what} takes {bytes_text(nbytes)}, more than the {bytes_text(limit)} of memory available "
            "(the setting memory_limit, in bytes, overrides this limit)"
        )


def bytes_text(nbytes: int) -> str:
    """Format a number of bytes: `5368709120 bytes (5.0 GiB)`, `4 bytes`."""
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(max((nbytes.bit_length() - 1) // 10, 0), len(units))
    return f"{nbytes} bytes" if not power else f"{nbytes} bytes ({nbytes / 1024**power:.1f} {units[power - 1]})"
