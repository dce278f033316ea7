"""The directory in which a checkpoint is written before it is committed, with a lock that is released with its process.

The lock is a file that its process has locked by `flock`, so the system releases it if the process is killed. A
directory is created under a unique name, locked, and then renamed to PATH.saving, so that PATH.saving always has its
lock. A directory with an unlocked lock file is a leftover of a crash, which the next save removes.
"""

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
    fcntl = None  # type: ignore[assignment]  # not on Windows

SUFFIX = ".saving"
LOCK, ID = "lock", "id"  # files in the directory; only the process that holds the lock writes the id
_UNIQUE = re.compile(rf"\.[0-9a-f]{{8}}{re.escape(SUFFIX)}$")
_preparing = threading.Lock()  # held from the creation of a directory until it is locked


def saving_directory(path: Path) -> Path:
    """Return the directory in which a checkpoint is written."""
    return path.with_name(path.name + SUFFIX)


def check_target(path: Path, overwrite: bool) -> None:
    """Raise an error if a checkpoint cannot be saved at a path.

    Raises:
        FileExistsError: a checkpoint exists and `overwrite` is False, or something else exists.
        FileNotFoundError: the parent directory does not exist.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save: there is no directory {path.parent} for the checkpoint {path.name}; create it")
    if (path / index_file.NAME).exists():
        if not overwrite:
            raise FileExistsError(f"save: there is a checkpoint {path}; overwrite=True replaces it")
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(
            f"save: {path} exists and is not a checkpoint, so it is not replaced; choose another name"
        )


@contextlib.contextmanager
def prepared(path: Path) -> Iterator[Path]:
    """Create an empty directory to write to, locked within the block, and removed afterwards unless it was renamed.

    Raises:
        FileExistsError: another save of this path is running.
    """
    saving = saving_directory(path)
    with contextlib.ExitStack() as stack:
        with _preparing:
            inode = _create(saving, stack)
        try:  # the lock is held until everything is removed
            yield saving
        finally:
            with contextlib.suppress(OSError):
                if saving.stat().st_ino == inode:  # otherwise this one was renamed, and that is the next save's
                    _discard(saving)


def _create(saving: Path, stack: contextlib.ExitStack) -> int:
    """Create the directory, locked until the stack is closed, and return its inode."""
    remove_leftover(saving)
    for other in saving.parent.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            # A directory without an id may belong to a running save that is about to lock it. Only the leftovers of
            # this path are known not to.
            unique = _UNIQUE.sub(SUFFIX, other.name) == saving.name != other.name
            if (other / ID).exists() or (unique and (other / LOCK).exists()):
                remove_leftover(other, surely=True)
            elif unique:
                other.rmdir()  # its process was killed before it created the lock
    making = _unique(saving)
    making.mkdir()
    try:
        try:
            locked = _locked(stack.enter_context((making / LOCK).open("w")))
            if locked is not False:
                os.rename(making, saving)  # so PATH.saving has its lock from the start
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
            locked = False
        if locked is False:  # another save was first, or is removing this directory as a leftover
            raise _running(saving)
        return saving.stat().st_ino
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def remove_leftover(saving: Path, surely: bool = False) -> None:
    """Remove the directory of a save that crashed, if it exists.

    Args:
        saving: the directory.
        surely: whether to keep the directory if the file system has no locks, so that its save may be running.

    Raises:
        FileExistsError: the save is still running.
    """
    try:
        with (saving / LOCK).open("r+") as lock:
            locked = _locked(lock)
            if locked is False or os.fstat(lock.fileno()).st_ino != (saving / LOCK).stat().st_ino:
                raise _running(saving)  # or the save has just ended, and the lock belongs to the next save
            if locked or not surely:
                _discard(saving)
    except (FileNotFoundError, NotADirectoryError):
        if saving.is_dir() and not (saving / LOCK).exists():  # another process began to remove it
            _discard(saving)


def _discard(saving: Path) -> None:
    """Rename a directory and then remove it, so that its name is free at once, in one step."""
    doomed = _unique(saving)
    with contextlib.suppress(FileNotFoundError):  # another process removes it
        os.rename(saving, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _unique(saving: Path) -> Path:
    name = _UNIQUE.sub(SUFFIX, saving.name).removesuffix(SUFFIX)
    return saving.with_name(f"{name}.{secrets.token_hex(4)}{SUFFIX}")


def _running(saving: Path) -> FileExistsError:
    return FileExistsError(f"save: {saving} is being written by another save; wait until that has ended")


def _locked(file: IO[str]) -> bool | None:
    """Try to lock a file and return whether that succeeded; None if the system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
