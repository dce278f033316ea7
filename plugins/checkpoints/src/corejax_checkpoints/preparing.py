"""Where a checkpoint is written before it is one: a directory beside it, with a lock that ends with its process."""

from __future__ import annotations

import contextlib
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
                    shutil.rmtree(saving)


def _made(saving: Path, stack: contextlib.ExitStack) -> int:
    """Make the directory, with the lock, which a stack releases; its number in the file system."""
    remove_leftover(saving)
    for other in saving.parent.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            if (other / ID).exists():  # whoever made it had the lock
                remove_leftover(other, surely=True)
    saving.mkdir()
    try:
        _locked(stack.enter_context((saving / LOCK).open("w")))
        return saving.stat().st_ino
    except BaseException:
        shutil.rmtree(saving, ignore_errors=True)
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
            if locked is False:
                raise FileExistsError(f"save: {saving} is being written by another save; wait until that has ended")
            if locked or not surely:
                shutil.rmtree(saving)
    except (FileNotFoundError, NotADirectoryError):
        if saving.is_dir() and not surely:  # it was killed before it had a lock
            shutil.rmtree(saving)


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
