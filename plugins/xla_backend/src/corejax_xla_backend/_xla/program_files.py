"""A directory of compiled programs that many processes can use at once; the least recently used are evicted."""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from corejax.extend import config
from corejax_xla_backend._xla.digests import sha256

MAGIC = b"corejax compiled program, format 1\n"
SUFFIX = ".corejax-program"
_HITS = ".corejax-hits"
_UNFINISHED = ".corejax-unfinished"
_ABANDONED = 3600.0  # seconds after which an unfinished file belongs to a process that has ended
_DIGEST = 32  # bytes of SHA-256


class Entry(NamedTuple):
    """The file of one program."""

    used: float  # time of the last read or write, in seconds since the epoch
    size: int
    path: str

    @property
    def name(self) -> str:
        """The name that the program was written under."""
        return os.path.basename(self.path).removesuffix(SUFFIX)

    @property
    def hits(self) -> int:
        """How often any process has read the program: each read adds a byte to a file beside the entry."""
        try:
            return os.stat(_hits_path(self.path)).st_size
        except OSError:
            return 0


class ProgramFiles:
    """Compiled programs by name.

    An entry is written under a temporary name and renamed, so that a reader sees a complete entry or none, and its
    digest is checked before use. Entries are machine code, so the directory is created with permissions for its owner
    only (`shared_with`).

    Args:
        directory: the directory, which is created when the first entry is written.
        max_size: the largest number of bytes of all entries together; -1 for no limit.
    """

    def __init__(self, directory: str, max_size: int = -1) -> None:
        self.directory = Path(directory).expanduser()
        self.max_size = max_size

    def shared_with(self) -> str:
        """Return a clause that says why others can write to the directory; empty if only the user can.

        The clause is also empty if the directory does not exist yet.

        Raises:
            OSError: the directory's permissions cannot be read.
        """
        if not hasattr(os, "geteuid"):  # Windows: caches are in the user's profile
            return ""
        try:
            status = self.directory.stat()
        except FileNotFoundError:
            return ""
        if status.st_uid != os.geteuid():
            return f"it belongs to the user with number {status.st_uid}"
        return "other users can write to it" if status.st_mode & 0o022 else ""

    def read(self, name: str) -> bytes | None:
        """Return the content of an entry; None if the entry does not exist or its file is damaged.

        Raises:
            OSError: the directory or the file cannot be read.
        """
        path = self._path(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        content = _unpacked(data)
        if content is None:
            self.discard(name)
        else:
            with suppress(OSError):  # the directory may be read-only
                os.utime(path)
                with open(_hits_path(str(path)), "ab") as hits:
                    hits.write(b".")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write an entry, and evict the least recently used entries until all fit in `max_size`.

        Raises:
            OSError: the directory cannot be created or written to, or the disk is full.
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
        """Remove an entry, if it exists."""
        _remove(str(self._path(name)))

    def entries(self) -> list[Entry]:
        """Return all entries, the least recently used first."""
        return sorted(self._files(SUFFIX))

    def clear(self) -> None:
        """Remove all entries, but no other files."""
        for entry in self.entries():
            _remove(entry.path)

    def _path(self, name: str) -> Path:
        return self.directory / (name + SUFFIX)

    def _files(self, suffix: str) -> Iterator[Entry]:
        """Yield the files with a suffix, in any order."""
        try:
            with os.scandir(self.directory) as files:
                for each in files:
                    if each.name.endswith(suffix):
                        with suppress(FileNotFoundError):  # another process removed it
                            stat = each.stat()
                            yield Entry(stat.st_mtime, stat.st_size, each.path)
        except (FileNotFoundError, NotADirectoryError):
            return

    def _evict(self) -> None:
        """Remove abandoned unfinished files, and the least recently used entries above `max_size`."""
        for entry in self._files(_UNFINISHED):
            if time.time() - entry.used > _ABANDONED:
                _remove(entry.path)
        if self.max_size < 0:
            return
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        for entry in entries:
            if total <= self.max_size:
                break
            _remove(entry.path)
            total -= entry.size


def current_files() -> ProgramFiles | None:
    """Return the directory of the cache, or None if the settings switch the cache off."""
    directory, max_size = config.compilation_cache_dir, config.compilation_cache_max_size
    if not directory or not config.compilation_cache or not max_size:
        return None
    return ProgramFiles(_user_directory() if directory == "auto" else directory, max_size)


@cache
def _user_directory() -> str:
    """Return the directory `corejax/programs` in the platform's directory for a user's caches."""
    import platformdirs

    return str(platformdirs.user_cache_path("corejax", appauthor=False) / "programs")


def _remove(path: str) -> None:
    """Remove the file of an entry and its file of hits, if they exist."""
    for each in (path, _hits_path(path)):
        with suppress(OSError):
            os.unlink(each)


def _hits_path(path: str) -> str:
    return path.removesuffix(SUFFIX) + _HITS


def _packed(content: bytes) -> bytes:
    """Return the bytes of an entry's file: magic, digest and compressed content."""
    body = zlib.compress(content, 1)
    digest: bytes = sha256(body).digest()
    return MAGIC + digest + body


def _unpacked(data: bytes) -> bytes | None:
    """Return the content of an entry's file; None if the file is damaged."""
    start = len(MAGIC) + _DIGEST
    body = memoryview(data)[start:]
    if not data.startswith(MAGIC) or sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    return zlib.decompress(body)
