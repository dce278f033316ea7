"""A directory of compiled programs that many processes may use at once: whole entries or none, the oldest go first."""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from corejax_xla_backend._xla.digests import sha256

MAGIC = b"corejax compiled program, format 1\n"
SUFFIX = ".corejax-program"
_UNFINISHED = ".corejax-unfinished"
_ABANDONED = 3600.0  # seconds after which nobody finishes writing a file
_DIGEST = 32  # bytes of SHA-256


class Entry(NamedTuple):
    """One program's file."""

    used: float  # when it was last read or written, in seconds since the epoch
    size: int
    path: str


class ProgramFiles:
    """Compiled programs by name.

    Entries are written beside their place and moved there, so a reader sees a whole one or none. What a reader finds
    is held against a checksum. Whoever may write into the directory decides what code runs: it is made for its
    owner alone.

    Args:
        directory: where; made when something is first written.
        max_size: bytes that the entries may take together; -1: any.
    """

    def __init__(self, directory: str, max_size: int = -1) -> None:
        self.directory = Path(directory).expanduser()
        self.max_size = max_size

    def read(self, name: str) -> bytes | None:
        """What was written under a name, None where nothing was or the file is damaged.

        Raises:
            OSError: the directory or the file cannot be read.
        """
        path = self._path(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        found = _unpacked(data)
        if found is None:
            self.discard(name)
        else:
            with suppress(OSError):  # a directory that is for reading only
                os.utime(path)
        return found

    def write(self, name: str, content: bytes) -> None:
        """Keep bytes under a name; then the least recently used entries go until the rest is small enough.

        Raises:
            OSError: the directory cannot be made or written to, or the disk is full.
        """
        data = _packed(content)
        if 0 <= self.max_size < len(data):
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(suffix=_UNFINISHED, dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(unfinished, self._path(name))
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
        self._evict()

    def discard(self, name: str) -> None:
        """Remove an entry, if it is there."""
        with suppress(OSError):
            self._path(name).unlink()

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first."""
        return sorted(self._files(SUFFIX))

    def clear(self) -> None:
        """Remove all entries, and nothing else."""
        for entry in self.entries():
            _remove(entry)

    def _path(self, name: str) -> Path:
        return self.directory / (name + SUFFIX)

    def _files(self, suffix: str) -> Iterator[Entry]:
        try:
            with os.scandir(self.directory) as found:
                for each in found:
                    if each.name.endswith(suffix):
                        with suppress(FileNotFoundError):  # another process removed it
                            stat = each.stat()
                            yield Entry(stat.st_mtime, stat.st_size, each.path)
        except (FileNotFoundError, NotADirectoryError):
            return

    def _evict(self) -> None:
        for entry in self._files(_UNFINISHED):
            if time.time() - entry.used > _ABANDONED:
                _remove(entry)
        if self.max_size < 0:
            return
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        for entry in entries:
            if total <= self.max_size:
                break
            _remove(entry)
            total -= entry.size


def _remove(entry: Entry) -> None:
    with suppress(OSError):
        os.unlink(entry.path)


def _packed(content: bytes) -> bytes:
    body = zlib.compress(content, 1)
    return MAGIC + sha256(body).digest() + body


def _unpacked(data: bytes) -> bytes | None:
    start = len(MAGIC) + _DIGEST
    body = memoryview(data)[start:]
    if not data.startswith(MAGIC) or sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    return zlib.decompress(body)
