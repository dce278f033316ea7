"""Where a checkpoint is written before it is one: a directory beside it, with a lock that ends with its process."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from corejax_checkpoints import index as index_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".saving"
LOCK, ID = "lock", "id"  # files in it; whoever has written the second one has the lock
_UNIQUE = re.compile(rf"\.[0-9a-f]{{8}}{re.escape(SUFFIX)}$")
_preparing = threading.Lock()  # between a directory and its lock


def saving_directory(path: Path) -> Path:
    """Where a checkpoint is while it is written."""
    return path.with_name(path.name + SUFFIX)


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse a place where a checkpoint cannot go.

    Raises:
        FileExistsError: a checkpoint is there and is not to be replaced, or something else.
        FileNotFoundError: the directory to put it in is not there.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"save: there is no directory {path.parent} to put the checkpoint {path.name} in; make it"
        )
    if (path / index_file.NAME).exists():
        if not overwrite:
            raise FileExistsError(f"save: there is a checkpoint {path}; overwrite=True replaces it")
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"save: {path} is there and is no checkpoint, so it is not replaced; take another name")


@contextlib.contextmanager
def prepared(path: Path) -> Iterator[Path]:
    """An empty directory to write to, locked while it is used, and removed unless it was renamed.

    Raises:
        FileExistsError: another save of this path is running.
    """
    saving = saving_directory(path)
    with contextlib.ExitStack() as stack:
        with _preparing:
            made = _made(saving, stack)
        try:  # the lock is held until all is removed
            yield saving
        finally:
            with contextlib.suppress(OSError):
                if saving.stat().st_ino == made:  # not the next save's, after this one was renamed
                    _discard(saving)


def _made(saving: Path, stack: contextlib.ExitStack) -> int:
    """Make the directory, with the lock, which a stack releases; its number in the file system."""
    remove_leftover(saving)
    for other in saving.parent.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            # Of this path: another's save may be about to lock its own.
            unique = _UNIQUE.sub(SUFFIX, other.name) == saving.name != other.name
            if (other / ID).exists() or (unique and (other / LOCK).exists()):  # it is a save's
                remove_leftover(other, surely=True)
            elif unique:
                other.rmdir()  # it was killed before it had a lock
    making = _unique(saving)
    making.mkdir()
    try:
        try:
            locked = _locked(stack.enter_context((making / LOCK).open("w")))
            if locked is not False:
                os.rename(making, saving)  # with its lock from the first moment on
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
            locked = False
        if locked is False:  # another was there first, or takes this one for a leftover
            raise _running(saving)
        return saving.stat().st_ino
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def remove_leftover(saving: Path, surely: bool = False) -> None:
    """Remove what a save left that did not end.

    Args:
        saving: the directory.
        surely: whether one is left alone on a file system that has no locks.

    Raises:
        FileExistsError: it is still running.
    """
    try:
        with (saving / LOCK).open("r+") as lock:
            locked = _locked(lock)
            if locked is False or os.fstat(lock.fileno()).st_ino != (saving / LOCK).stat().st_ino:
                raise _running(saving)  # or it has ended just now, and this lock is the next save's
            if locked or not surely:
                _discard(saving)
    except (FileNotFoundError, NotADirectoryError):
        if saving.is_dir() and not (saving / LOCK).exists():  # somebody was removing it
            _discard(saving)


def _discard(saving: Path) -> None:
    """Remove a directory, for who looks for it in one step: the next save's has its name at once."""
    going = _unique(saving)
    with contextlib.suppress(FileNotFoundError):  # another removes it
        os.rename(saving, going)
    shutil.rmtree(going, ignore_errors=True)


def _unique(saving: Path) -> Path:
    name = _UNIQUE.sub(SUFFIX, saving.name).removesuffix(SUFFIX)
    return saving.with_name(f"{name}.{secrets.token_hex(4)}{SUFFIX}")


def _running(saving: Path) -> FileExistsError:
    return FileExistsError(f"save: {saving} is being written by another save; wait until that has ended")


def _locked(file: IO[str]) -> bool | None:
    """Whether a lock could be had; None where there are none."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
