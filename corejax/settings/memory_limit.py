"""The limit on how large a value may be: the machine's memory, or the setting `memory_limit`.

The limit is checked before anything is allocated. Operating systems promise more memory than there is, and end the
process that uses it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from corejax.settings.config import config

LARGE = 1 << 30  # bytes; what is smaller is not looked at

_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def physical_memory() -> int:
    """Bytes of memory of the machine, or of the container that the process runs in."""
    found = 1 << 47
    with suppress(AttributeError, ValueError, OSError):  # Windows
        pages = os.sysconf("SC_PHYS_PAGES")
        found = os.sysconf("SC_PAGE_SIZE") * pages if pages > 0 else found
    for path in _GROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such group, or "max"
            found = min(found, int(Path(path).read_text()))
    return found


def memory_limit() -> int:
    """Bytes that one value or program may take: the setting `memory_limit`, or the physical memory where that is 0."""
    return config.memory_limit or physical_memory()


def check_memory(nbytes: int, what: str) -> None:
    """Refuse what does not fit into memory.

    Args:
        nbytes: how many are needed at once.
        what: what needs them, a noun phrase with the shape; begins the message.

    Raises:
        MemoryError: there is less memory.
    """
    if nbytes <= LARGE:
        return
    limit = memory_limit()
    if nbytes > limit:
        raise MemoryError(
            f"{what} takes {bytes_text(nbytes)}, more than the {bytes_text(limit)} of memory that there are "
            "(the setting memory_limit, in bytes, overrules that)"
        )


def bytes_text(nbytes: int) -> str:
    """`5368709120 bytes (5.0 GiB)`."""
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(max((nbytes.bit_length() - 1) // 10, 1), len(units))
    return f"{nbytes} bytes ({nbytes / 1024**power:.1f} {units[power - 1]})"
