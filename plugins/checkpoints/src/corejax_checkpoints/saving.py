"""Saving: all is written beside the checkpoint and becomes it by one rename, after every process has written its parts.

    PATH/index.json          what is the checkpoint: whoever replaces this file, commits
    PATH/<id>/*.safetensors  the numbers
    PATH.saving/             the same, while it is written; with a lock that is gone when its process is

A new checkpoint appears by the rename of PATH.saving. One that is replaced gets the new files beside the old ones,
which its index does not name, and then the new index. Whatever a crash leaves, the next save beside it removes.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import json
import os
import re
import secrets
import shutil
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corejax
from corejax_checkpoints import index as index_file
from corejax_checkpoints.files import Host, checksums, of_format, sync, write
from corejax_checkpoints.index import CheckpointError, Index, Leaf, Part
from corejax_checkpoints.leaves import Taken
from corejax_checkpoints.preparing import ID, LOCK, check_target, prepared, saving_directory

FILE_BYTES = 1 << 30  # a file is closed when it has so many: an interrupt is heard between files
SEEN_WITHIN = 60.0  # seconds until a file of another process is seen: shared file systems remember what was not there
FAILED, REPORT = "failed", "report-{}"  # files beside the numbers: what went wrong, what each process has written
_SAID = 1024  # bytes that process 0 says to the others
_numbers = itertools.count()  # of savings, the same in all processes, which save in the same order


class Place(NamedTuple):
    """This process among those that save together."""

    process: int
    count: int
    number: int
    timeout: float

    def wait(self, step: str) -> None:
        """Until all processes are at a step."""
        if self.count > 1:
            corejax.distributed.wait_at_barrier(f"corejax.checkpoints {self.number} {step}", self.timeout)

    def hear(self, said: str = "") -> str:
        """What process 0 says, in all processes."""
        if self.count == 1:
            return said
        text = np.frombuffer(said.encode()[:_SAID].ljust(_SAID, b"\0"), np.uint8)
        heard: Host = corejax.experimental.multihost_utils.broadcast_one_to_all(text)
        return heard.tobytes().rstrip(b"\0").decode("utf-8", "replace")


def this_place(timeout: float) -> Place:
    """Where this process is, with the number of the saving that begins."""
    if not corejax.distributed.is_initialized():
        return Place(0, 1, next(_numbers), timeout)
    return Place(corejax.process_index(), corejax.process_count(), next(_numbers), timeout)


# -- the parts of a process --------------------------------------------------------------------------------------------


class _File(NamedTuple):
    """A file to be written: tensors by key, and for each the number of the leaf and the part without checksums."""

    name: str
    tensors: dict[str, Host]
    parts: list[tuple[int, Part]]


def files_of(taken: Sequence[Taken], ident: str, place: Place) -> list[_File]:
    """This process's parts, shared out over files."""
    files: list[_File] = []
    keys = {"__metadata__"}  # the format's own
    size = FILE_BYTES
    for number, (leaf, own) in enumerate(taken):
        for start, host in own:
            if size >= FILE_BYTES:
                files.append(_File(f"{ident}/{place.process:05d}-{len(files):03d}.safetensors", {}, []))
                size = 0
            key = _key(leaf, start, host, keys)
            files[-1].tensors[key] = host
            files[-1].parts.append((number, Part(start, host.shape, files[-1].name, key, ())))
            size += host.nbytes
    return files


def _key(leaf: Leaf, start: tuple[int, ...], host: Host, used: set[str]) -> str:
    """A name that other readers of such files find readable: `layers.0.w`, and with `[0:4,8:16]` for a part."""
    key = leaf.path.replace("']['", ".").replace("['", ".").replace("']", "").replace("[", ".").replace("]", "")
    key = key.strip(".") or "leaf"
    if host.shape != leaf.shape + leaf.inner:
        key += "[" + ",".join(f"{a}:{a + n}" for a, n in zip(start, host.shape, strict=True)) + "]"
    while key in used:
        key += "'"
    used.add(key)
    return key


def write_parts(files: Sequence[_File], saving: Path, ident: str, pool: Executor | None) -> list[tuple[int, Part]]:
    """Write files; with a pool while checksums are computed.

    Returns:
        The parts with their checksums.
    """
    done: list[tuple[int, Part]] = []
    for file in files:
        tensors = {key: of_format(host) for key, host in file.tensors.items()}
        summing = [pool.submit(checksums, x) for x in tensors.values()] if pool else []
        try:
            write(saving / file.name, tensors, {"checkpoint": ident})
            sums = [future.result() for future in summing] if pool else [checksums(x) for x in tensors.values()]
        finally:
            for future in summing:
                future.cancel()
        done += [(n, part._replace(crc32=crcs)) for (n, part), crcs in zip(file.parts, sums, strict=True)]
    return done


# -- together ----------------------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """A checkpoint that is to be written: what was taken of the tree, and where it goes."""

    path: Path
    structure: Any
    taken: tuple[Taken, ...]
    metadata: Any
    overwrite: bool
    place: Place


class Begun(NamedTuple):
    """A save for which all is prepared; whoever leaves `stack` removes what was not committed."""

    job: Job
    saving: Path
    ident: str
    stack: contextlib.ExitStack


def begin(job: Job) -> Begun:
    """Prepare a save, in each of the processes that save together: process 0 does, and tells the others.

    Raises:
        FileExistsError, FileNotFoundError: as `check_target` and `prepared`, in all processes.
        OSError: nothing can be written there.
    """
    stack, saving, place = contextlib.ExitStack(), saving_directory(job.path), job.place
    if place.process:
        ident, _, failure = place.hear().partition(" ")
        if failure:
            kind = getattr(builtins, ident, None)  # where the name of the class is, then
            known = isinstance(kind, type) and issubclass(kind, OSError)
            raise (kind if known else CheckpointError)(f"process 0 says: {failure}")
        return Begun(job, saving, ident, stack)
    try:
        check_target(job.path, job.overwrite)
        stack.enter_context(prepared(job.path))
        ident = secrets.token_hex(8)
        (saving / ident).mkdir()
        index_file.write_durably(saving / ID, ident)
    except Exception as error:
        stack.close()
        place.hear(f"{type(error).__name__} {error}")
        raise
    place.hear(ident)
    return Begun(job, saving, ident, stack)


def finish(begun: Begun, pool: Executor | None) -> None:
    """Write a checkpoint, in each of the processes that save together.

    Raises:
        CheckpointError: another process could not write its parts; says which, and why.
        OSError: this one could not.
        BackendError: a process did not come in time.
    """
    with begun.stack:
        job = begun.job
        try:
            (_follow if job.place.process else _lead)(job, begun.saving, begun.ident, pool)
        except OSError as error:
            whole = ", what was there is whole" if job.overwrite else ""
            error.add_note(f"corejax.checkpoints: {job.path} was not saved{whole}")
            raise


def _lead(job: Job, saving: Path, ident: str, pool: Executor | None) -> None:
    """Process 0: writes its parts, and commits what all have written."""
    error: Exception | None = None
    try:
        own = write_parts(files_of(job.taken, ident, job.place), saving, ident, pool)
    except Exception as failed:
        error = failed
    job.place.wait("written")
    try:
        if error is not None:
            raise error
        _commit(job, saving, ident, [own, *(_report(saving, n, job) for n in range(1, job.place.count))])
    except Exception as failed:
        if job.place.count > 1:
            with contextlib.suppress(OSError):
                index_file.write_durably(saving / FAILED, f"{type(failed).__name__}: {failed}")
        job.place.wait("committed")
        job.place.wait("told")
        raise
    job.place.wait("committed")


def _follow(job: Job, saving: Path, ident: str, pool: Executor | None) -> None:
    """Any other process: writes its parts, tells of them in a file, and sees what became of it."""
    error: Exception | None = None
    try:
        _seen(saving / ID, job)
        parts = write_parts(files_of(job.taken, ident, job.place), saving, ident, pool)
        told = json.dumps([_signature(job), [[n, part._asdict()] for n, part in parts]])
    except Exception as failed:
        error, told = failed, json.dumps(f"{type(failed).__name__}: {failed}")
    with contextlib.suppress(OSError):  # process 0 will miss it, and say so
        index_file.write_durably(saving / REPORT.format(job.place.process), told)
    job.place.wait("written")
    job.place.wait("committed")
    failure = _outcome(job, saving, ident)
    if failure is not None:
        job.place.wait("told")
        raise error or CheckpointError(f"{job.path} was not saved, process 0 says: {failure}")


def _seen(path: Path, job: Job) -> str:
    """The text of a file of another process, as soon as it is seen here."""
    until = time.monotonic() + SEEN_WITHIN
    while True:
        with contextlib.suppress(OSError):
            if text := path.read_text(encoding="utf-8"):
                return text
        if time.monotonic() > until:
            raise CheckpointError(
                f"{job.path} was not saved: process {job.place.process} does not see {path}. The directory has to "
                "be on a file system that all processes share"
            )
        time.sleep(0.02)


def _report(saving: Path, process: int, job: Job) -> list[tuple[int, Part]]:
    """What another process has written."""
    told = json.loads(_seen(saving / REPORT.format(process), job))
    if isinstance(told, str):
        raise CheckpointError(f"{job.path} was not saved, process {process} says: {told}")
    signature, parts = told
    if signature != _signature(job):
        raise CheckpointError(
            f"{job.path} was not saved: process {process} saves another tree than process 0; all have to call save "
            "with the same structure, shapes and dtypes, in the same order"
        )
    return [(n, Part(**{k: tuple(v) if isinstance(v, list) else v for k, v in part.items()})) for n, part in parts]


def _signature(job: Job) -> int:
    """The same in all processes that save the same tree."""
    return zlib.crc32(json.dumps([str(job.path), job.structure, [t.leaf.type_text for t in job.taken]]).encode())


def _outcome(job: Job, saving: Path, ident: str) -> str | None:
    """What process 0 said of a failure; None if the checkpoint is there."""
    until = time.monotonic() + SEEN_WITHIN
    while True:
        with contextlib.suppress(OSError, CheckpointError):
            if index_file.load(job.path).ident == ident:
                return None
        with contextlib.suppress(OSError):
            return (saving / FAILED).read_text(encoding="utf-8")
        if time.monotonic() > until:
            return "nothing, and the checkpoint is not there"
        time.sleep(0.02)


def _commit(job: Job, saving: Path, ident: str, reports: Sequence[list[tuple[int, Part]]]) -> None:
    """Write the index, and make it the checkpoint's."""
    parts: list[list[Part]] = [[] for _ in job.taken]
    for number, part in itertools.chain.from_iterable(reports):
        parts[number].append(part)
    leaves = tuple(t.leaf._replace(parts=tuple(sorted(p))) for t, p in zip(job.taken, parts, strict=True))
    for leaf in leaves:
        index_file.check_complete(leaf, job.path)
    index_file.dump(Index(ident, job.place.count, job.metadata, job.structure, leaves), saving / index_file.NAME)
    sync(saving / ident)
    sync(saving)
    if (job.path / index_file.NAME).exists():
        os.rename(saving / ident, job.path / ident)
        sync(job.path)
        os.replace(saving / index_file.NAME, job.path / index_file.NAME)
        sync(job.path)
    else:
        os.rename(saving, job.path)
        sync(job.path.parent)
    with contextlib.suppress(OSError):  # it is saved; what cannot be removed now, the next save removes
        _remove_unnamed(job.path, ident)


def _remove_unnamed(path: Path, ident: str) -> None:
    """Remove what the index does not name: of older checkpoints, of saves that crashed, and the files of this one."""
    for found in path.iterdir():
        if found.is_dir() and found.name != ident and re.fullmatch("[0-9a-f]{16}", found.name):
            shutil.rmtree(found)
        elif found.name in (LOCK, ID) or found.name.startswith(REPORT.format("")):
            found.unlink()
