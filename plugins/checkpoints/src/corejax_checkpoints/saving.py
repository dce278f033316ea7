"""Saving: write the files beside the checkpoint, and commit by one rename after every process has written its parts.

    PATH/index.json          the index; replacing this file commits a checkpoint
    PATH/<id>/*.safetensors  the numbers
    PATH.saving/             the same files while they are written, with a lock that is released when its process ends

A new checkpoint appears by renaming PATH.saving. To replace a checkpoint, the new files are first moved beside the old
ones, where the old index does not refer to them; then the new index replaces the old one. The next save removes
leftovers of a crash.

Process 0 leads: it prepares PATH.saving and broadcasts the outcome. Then every process writes its own parts, and the
others report them in files; after a barrier, process 0 collects the reports and commits.
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

FILE_BYTES = 1 << 30  # a file of this size is complete; Python handles interrupts between files
# Timeout in seconds for a file of another process to appear: shared file systems cache that a file is missing.
SEEN_WITHIN = 60.0
FAILED, REPORT = "failed", "report-{}"  # files in PATH.saving: an error, and the parts that a process has written
_BROADCAST_BYTES = 1024  # the length of a broadcast message
_numbers = itertools.count()  # numbers the saves; all processes save in the same order, so they agree on the numbers


class Place(NamedTuple):
    """The place of this process among those that save together.

    Attributes:
        process: number of this process.
        num_processes: number of processes.
        number: number of the save.
        timeout: how long to wait for other processes, in seconds.
    """

    process: int
    num_processes: int
    number: int
    timeout: float

    def wait(self, step: str) -> None:
        """Wait until all processes have reached a step."""
        if self.num_processes > 1:
            corejax.distributed.wait_at_barrier(f"corejax.checkpoints {self.number} {step}", self.timeout)

    def broadcast(self, message: str = "") -> str:
        """Return process 0's message in all processes; the others' messages are ignored."""
        if self.num_processes == 1:
            return message
        text = np.frombuffer(message.encode()[:_BROADCAST_BYTES].ljust(_BROADCAST_BYTES, b"\0"), np.uint8)
        received: Host = corejax.experimental.multihost_utils.broadcast_one_to_all(text)
        return received.tobytes().rstrip(b"\0").decode("utf-8", "replace")


def this_place(timeout: float) -> Place:
    """Return the place of this process, with a new save's number."""
    if not corejax.distributed.is_initialized():
        return Place(0, 1, next(_numbers), timeout)
    return Place(corejax.process_index(), corejax.process_count(), next(_numbers), timeout)


# -- the parts of a process --------------------------------------------------------------------------------------------


class _File(NamedTuple):
    """A file to write.

    Attributes:
        name: relative to the checkpoint.
        tensors: dict from key to numbers.
        parts: for each tensor, the number of the leaf and the part, which has no checksums yet.
    """

    name: str
    tensors: dict[str, Host]
    parts: list[tuple[int, Part]]


def files_of(taken: Sequence[Taken], ident: str, place: Place) -> list[_File]:
    """Distribute this process's parts over files."""
    files: list[_File] = []
    keys = {"__metadata__"}  # reserved by the format
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
    """Return an unused key that is readable for other tools: `layers.0.w`, with `[0:4,8:16]` added for a part."""
    key = leaf.path.replace("']['", ".").replace("['", ".").replace("']", "").replace("[", ".").replace("]", "")
    key = key.strip(".") or "leaf"
    if host.shape != leaf.shape + leaf.inner:
        key += "[" + ",".join(f"{a}:{a + n}" for a, n in zip(start, host.shape, strict=True)) + "]"
    while key in used:
        key += "'"
    used.add(key)
    return key


def write_parts(files: Sequence[_File], saving: Path, ident: str, pool: Executor | None) -> list[tuple[int, Part]]:
    """Write files and return their parts with checksums, which the pool, if given, computes meanwhile."""
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
    """A checkpoint to write.

    Attributes:
        path: the checkpoint's directory.
        structure: structure of the tree (see `structure`).
        taken: the leaves.
        metadata: the user's metadata.
        overwrite: whether an existing checkpoint may be replaced.
        place: this process's place.
    """

    path: Path
    structure: Any
    taken: tuple[Taken, ...]
    metadata: Any
    overwrite: bool
    place: Place


class Begun(NamedTuple):
    """A prepared save.

    Attributes:
        job: the checkpoint to write.
        saving: the directory for the files while they are written.
        ident: the save's random id.
        stack: closing it removes files that were not committed.
    """

    job: Job
    saving: Path
    ident: str
    stack: contextlib.ExitStack


def begin(job: Job) -> Begun:
    """Prepare a save, in each of the processes that save together; process 0 broadcasts the outcome.

    Raises:
        FileExistsError, FileNotFoundError: errors of `check_target` and `prepared`, in all processes.
        OSError: the directory cannot be written.
    """
    stack, saving, place = contextlib.ExitStack(), saving_directory(job.path), job.place
    if place.process:
        ident, _, failure = place.broadcast().partition(" ")
        if failure:
            kind = getattr(builtins, ident, None)  # the message of a failure begins with the error's class
            error: type[Exception] = CheckpointError
            if isinstance(kind, type) and issubclass(kind, OSError):
                error = kind
            raise error(f"process 0 says: {failure}")
        return Begun(job, saving, ident, stack)
    try:
        check_target(job.path, job.overwrite)
        stack.enter_context(prepared(job.path))
        ident = secrets.token_hex(8)
        (saving / ident).mkdir()
        index_file.write_durably(saving / ID, ident)
    except Exception as error:
        stack.close()
        place.broadcast(f"{type(error).__name__} {error}")
        raise
    place.broadcast(ident)
    return Begun(job, saving, ident, stack)


def finish(begun: Begun, pool: Executor | None) -> None:
    """Write and commit a checkpoint, in each of the processes that save together.

    Raises:
        CheckpointError: another process could not write its parts; the message names it and the reason.
        OSError: this process could not write its parts.
        BackendError: waiting for another process timed out.
    """
    with begun.stack:
        job = begun.job
        try:
            (_follow if job.place.process else _lead)(job, begun.saving, begun.ident, pool)
        except OSError as error:
            intact = ", the earlier checkpoint is intact" if job.overwrite else ""
            error.add_note(f"corejax.checkpoints: {job.path} was not saved{intact}")
            raise


def _lead(job: Job, saving: Path, ident: str, pool: Executor | None) -> None:
    """Write the parts of process 0, and commit the parts of all processes."""
    error: Exception | None = None
    try:
        own = write_parts(files_of(job.taken, ident, job.place), saving, ident, pool)
    except Exception as failed:
        error = failed
    job.place.wait("written")
    try:
        if error is not None:
            raise error
        _commit(job, saving, ident, [own, *(_report(saving, n, job) for n in range(1, job.place.num_processes))])
    except Exception as failed:
        if job.place.num_processes > 1:
            with contextlib.suppress(OSError):
                index_file.write_durably(saving / FAILED, f"{type(failed).__name__}: {failed}")
        job.place.wait("committed")
        job.place.wait("failure read")
        raise
    job.place.wait("committed")


def _follow(job: Job, saving: Path, ident: str, pool: Executor | None) -> None:
    """Write the parts of another process, report them in a file, and wait for the outcome."""
    error: Exception | None = None
    try:
        _wait_for_file(saving / ID, job)
        parts = write_parts(files_of(job.taken, ident, job.place), saving, ident, pool)
        report = json.dumps([_signature(job), [[n, part._asdict()] for n, part in parts]])
    except Exception as failed:
        error, report = failed, json.dumps(f"{type(failed).__name__}: {failed}")
    with contextlib.suppress(OSError):  # if the report cannot be written, process 0 raises an error
        index_file.write_durably(saving / REPORT.format(job.place.process), report)
    job.place.wait("written")
    job.place.wait("committed")
    failure = _outcome(job, saving, ident)
    if failure is not None:
        job.place.wait("failure read")
        raise error or CheckpointError(f"{job.path} was not saved, process 0 says: {failure}")


def _wait_for_file(path: Path, job: Job) -> str:
    """Return the text of a file that another process writes, as soon as it is visible."""
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
    """Return the parts that another process has reported."""
    report = json.loads(_wait_for_file(saving / REPORT.format(process), job))
    if isinstance(report, str):
        raise CheckpointError(f"{job.path} was not saved, process {process} says: {report}")
    signature, parts = report
    if signature != _signature(job):
        raise CheckpointError(
            f"{job.path} was not saved: process {process} saves another tree than process 0; all processes must call "
            "save with the same structure, shapes and dtypes, in the same order"
        )
    return [(n, _part(document)) for n, document in parts]


def _part(document: dict[str, Any]) -> Part:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
    return Part(**fields)


def _signature(job: Job) -> int:
    """Return a number that is equal in all processes that save the same tree."""
    return zlib.crc32(json.dumps([str(job.path), job.structure, [t.leaf.type_text for t in job.taken]]).encode())


def _outcome(job: Job, saving: Path, ident: str) -> str | None:
    """Return process 0's error message, or None if the checkpoint was committed."""
    until = time.monotonic() + SEEN_WITHIN
    while True:
        with contextlib.suppress(OSError, CheckpointError):
            if index_file.load(job.path).ident == ident:
                return None
        with contextlib.suppress(OSError):
            return (saving / FAILED).read_text(encoding="utf-8")
        if time.monotonic() > until:
            return "nothing, but the checkpoint does not exist"
        time.sleep(0.02)


def _commit(job: Job, saving: Path, ident: str, reports: Sequence[list[tuple[int, Part]]]) -> None:
    """Write the index and commit the checkpoint."""
    parts: list[list[Part]] = [[] for _ in job.taken]
    for number, part in itertools.chain.from_iterable(reports):
        parts[number].append(part)
    leaves = tuple(t.leaf._replace(parts=tuple(sorted(p))) for t, p in zip(job.taken, parts, strict=True))
    for leaf in leaves:
        index_file.check_complete(leaf, job.path)
    index_file.dump(
        Index(ident, job.place.num_processes, job.metadata, job.structure, leaves), saving / index_file.NAME
    )
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
    with contextlib.suppress(OSError):  # the checkpoint is committed; the next save removes what remains
        _remove_unreferenced(job.path, ident)


def _remove_unreferenced(path: Path, ident: str) -> None:
    """Remove directories that the index does not refer to, of older saves, and this save's auxiliary files."""
    for entry in path.iterdir():
        if entry.is_dir() and entry.name != ident and re.fullmatch("[0-9a-f]{16}", entry.name):
            shutil.rmtree(entry)
        elif entry.name in (LOCK, ID) or entry.name.startswith(REPORT.format("")):
            entry.unlink()
