"""`corejax.checkpoints`: save and restore pytrees of arrays, for any number of devices and processes.

    checkpoints.save("run/step_100", {"params": params, "step": 100})
    state = checkpoints.restore("run/step_100", like=state)       # with the shardings that `state` has now

A checkpoint is a directory with an index and safetensors files. It is committed as a whole: if a process dies, the
checkpoint exists completely or not at all. Every part has checksums, which are compared on reading. Each process writes
its own parts and reads only the numbers that its devices need. So a checkpoint can be restored on other devices, meshes
and numbers of processes than it was saved from.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from corejax.extend import tree
from corejax.extend.devices import bytes_text
from corejax.extend.messages import api_boundary
from corejax_checkpoints import index as index_file
from corejax_checkpoints import saving, structure
from corejax_checkpoints.files import Files
from corejax_checkpoints.index import CheckpointError, held_dtype
from corejax_checkpoints.leaves import take
from corejax_checkpoints.restoring import restored, wanted

__all__ = [
    "CheckpointError",
    "Description",
    "LeafDescription",
    "Saving",
    "describe",
    "restore",
    "save",
    "save_async",
    "verify",
]

CheckpointError.__module__ = "corejax.checkpoints"
_THREADS = min(4, os.cpu_count() or 1)


@api_boundary
def save(
    path: str | os.PathLike[str],
    tree: Any,
    *,
    metadata: Any = None,
    overwrite: bool = False,
    timeout_seconds: float = 1800.0,
) -> None:
    """Save a pytree.

    If there are several processes, each must call this function with the same arguments, and they must share a file
    system.

    Args:
        path: directory of the checkpoint; its parent directory must exist.
        tree: a pytree of arrays of any dtype, including random keys, NumPy arrays and scalars, Python numbers and
            strings. For nodes of a registered class, only the children are saved, not the metadata.
        metadata: a value that JSON can represent, which `describe` returns.
        overwrite: whether to replace an existing checkpoint, which stays intact until the new one is committed.
        timeout_seconds: how long to wait for other processes.

    Raises:
        TypeError: a leaf cannot be saved or is traced, or JSON cannot represent the metadata.
        ValueError: `timeout_seconds` is not positive.
        FileExistsError: a checkpoint or something else exists at the path, or another save to it is running.
        FileNotFoundError: the parent directory does not exist.
        CheckpointError: another process could not write its parts; the message names it and the reason.
        OSError: this process could not write its parts; the files that it wrote are removed.
        BackendError: waiting for another process timed out.
    """
    job = _job(path, tree, metadata, overwrite, timeout_seconds, copy=False)
    begun = saving.begin(job)
    with begun.stack, ThreadPoolExecutor(_THREADS, "corejax-checkpoints") as pool:
        saving.finish(begun, pool)


@api_boundary
def save_async(
    path: str | os.PathLike[str],
    tree: Any,
    *,
    metadata: Any = None,
    overwrite: bool = False,
    timeout_seconds: float = 1800.0,
) -> Saving:
    """Save a pytree in a background thread.

    The values are those at the time of the call: afterwards, arrays may be donated and NumPy arrays modified. The
    arguments and errors are those of `save`; `wait` raises errors that occur in the thread. Python does not exit before
    the thread has ended.

    Args:
        path: directory of the checkpoint; its parent directory must exist.
        tree: a pytree, as for `save`.
        metadata: a value that JSON can represent, which `describe` returns.
        overwrite: whether to replace an existing checkpoint, which stays intact until the new one is committed.
        timeout_seconds: how long to wait for other processes.

    Returns:
        A `Saving`; its method `wait()` returns when the checkpoint is committed.
    """
    begun = saving.begin(_job(path, tree, metadata, overwrite, timeout_seconds, copy=True))
    try:
        return Saving(begun)
    except BaseException:
        begun.stack.close()
        raise


class Saving:
    """A checkpoint that a background thread writes; the result of `save_async`."""

    def __init__(self, begun: saving.Begun) -> None:
        self._path = begun.job.path
        self._outcome = outcome = _Outcome(self._path)

        def write() -> None:
            try:
                saving.finish(begun, None)  # no pool: after the main thread ends, no more threads can be started
            except BaseException as error:
                outcome.error = error

        self._thread = threading.Thread(target=write, name=f"corejax.checkpoints {self._path.name}")
        self._thread.start()

    def done(self) -> bool:
        """Return whether the thread has ended, so that `wait` returns or raises at once."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the checkpoint is committed.

        Args:
            timeout: the longest time to wait, in seconds; unlimited if None.

        Raises:
            TimeoutError: the thread is still writing.
            Exception: the error of the save, as `save` raises it.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._path} is still being written after {timeout} s")
        self._outcome.is_reported = True
        if self._outcome.error is not None:
            raise self._outcome.error

    def __repr__(self) -> str:
        state = "writing" if not self.done() else "failed" if self._outcome.error is not None else "done"
        return f"<Saving {str(self._path)!r}: {state}>"


class _Outcome:
    """The outcome of a save; if its error was not reported by `wait`, deleting the last reference warns."""

    def __init__(self, path: Path) -> None:
        self.path, self.is_reported = path, False
        self.error: BaseException | None = None

    def __del__(self) -> None:
        if self.error is not None and not self.is_reported:
            warnings.warn(f"{self.path} was not saved, and wait() was not called: {self.error!r}", stacklevel=2)


def _job(path: Any, value: Any, metadata: Any, overwrite: bool, timeout: float, *, copy: bool) -> saving.Job:
    place = _path("save", path)
    try:
        metadata = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"save: JSON cannot represent the metadata {metadata!r}: {error}") from None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        raise ValueError(f"save: timeout_seconds must be a positive number, got {timeout!r}")
    skeleton, leaves = structure.encode(value)
    here = saving.this_place(timeout)
    taken = tuple(take(where, leaf, here.process, copy) for where, leaf in leaves)
    return saving.Job(place, skeleton, taken, metadata, overwrite, here)


def _path(name: str, path: Any) -> Path:
    try:
        return Path(path).absolute()
    except TypeError:
        raise TypeError(f"{name}: path must be a path, got {path!r} of type {type(path).__name__}") from None


@api_boundary
def restore(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    shardings: Any = None,
    partial: bool = False,
    check: bool = True,
) -> Any:
    """Restore the pytree of a checkpoint. Each process reads only the numbers that its devices need.

    Args:
        path: directory of the checkpoint.
        like: a pytree of the same structure, with arrays or `ShapeDtypeStruct`s of the same shapes and dtypes. The
            result has its classes and its arrays' shardings. Without `like`, nodes are dicts, lists and tuples.
        shardings: shardings or devices for the arrays, in a pytree that is a prefix of the tree. For None, arrays have
            the shardings of `like`, or are on the host if there is no `like`.
        partial: whether `like` may have fewer leaves than the checkpoint; the other leaves are not read.
        check: whether to compare checksums.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: the checkpoint is damaged; the message names the array, part and file, and the damage.
        ValueError, TypeError: `like` has another structure, shape or dtype (the message says where), or a sharding does
            not fit its array.
    """
    place = _path("restore", path)
    while True:
        index = index_file.load(place)
        try:
            return _restored(place, index, like, shardings, partial, check)
        except CheckpointError:
            if index_file.load(place).ident == index.ident:  # otherwise it was replaced while it was read: try again
                raise


def _restored(place: Path, index: index_file.Index, like: Any, shardings: Any, partial: bool, check: bool) -> Any:
    numbers, likes, rebuild = _targets(place, index, like, partial)
    leaves = [index.leaves[n] for n in numbers]
    for leaf in leaves:
        index_file.check_complete(leaf, place)
    wants = [
        wanted(leaf, leaf if like is None else each, sharding, place)
        for leaf, each, sharding in zip(leaves, likes, _places(shardings, rebuild(list(numbers))), strict=True)
    ]
    with ThreadPoolExecutor(_THREADS, "corejax-checkpoints") as pool, ThreadPoolExecutor(_THREADS) as checking:
        return rebuild(restored(wants, Files(place, index.ident, check, checking), pool))


def _targets(
    place: Path, index: index_file.Index, like: Any, partial: bool
) -> tuple[list[int], list[Any], Callable[[list[Any]], Any]]:
    """Return the indices of the leaves to restore, `like`'s leaf for each, and a function from values to the tree."""
    if like is None:
        numbers, treedef = tree.tree_flatten(structure.decode(index.structure, lambda number: number))
        return numbers, numbers, lambda values: tree.tree_unflatten(treedef, values)
    matches, differences = structure.match(index.structure, like, partial)
    if differences:
        more = f"; and {len(differences) - 5} more" if len(differences) > 5 else ""
        raise ValueError(
            f"restore: the checkpoint {place} and like differ in structure: {'; '.join(differences[:5])}{more}"
            + (
                ""
                if partial
                else ". partial=True skips leaves that like does not have"
                * any(d.endswith(("like has none", "like has None")) for d in differences)
            )
        )
    treedef = tree.tree_structure(like)
    numbers = [number for number, _, _ in matches]
    return numbers, [leaf for _, _, leaf in matches], lambda values: tree.tree_unflatten(treedef, values)


def _places(shardings: Any, full: Any) -> list[Any]:
    try:
        return tree.broadcast_prefix(shardings, full, lambda x: x is None or structure.is_leaf(x))
    except ValueError as error:
        raise ValueError(f"restore: shardings are not a prefix of the tree: {error}") from None


# -- inspection --------------------------------------------------------------------------------------------------------


class LeafDescription(NamedTuple):
    """The description of a leaf of a checkpoint.

    Attributes:
        path: path in the tree, such as `['layers'][0].w`.
        type: the type as text: `float32[2,3]`, or the name of a Python type.
        value: value of a Python number or string; None for arrays.
        parts: number of parts of an array.
        nbytes: bytes of all parts.
    """

    path: str
    type: str
    value: Any
    parts: int
    nbytes: int


class Description(NamedTuple):
    """The description of a checkpoint; its `str` is a table.

    Attributes:
        path: directory of the checkpoint.
        metadata: the metadata passed to `save`.
        num_processes: number of processes that saved it.
        leaves: a `LeafDescription` for each leaf.
    """

    path: Path
    metadata: Any
    num_processes: int
    leaves: tuple[LeafDescription, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(leaf.nbytes for leaf in self.leaves)

    def __str__(self) -> str:
        rows: list[tuple[str, str, int]] = [
            (leaf.path or "(the tree)", leaf.type if leaf.value is None else f"{leaf.type} {leaf.value!r}", leaf.parts)
            for leaf in self.leaves
        ]
        left = max((len(name) for name, _, _ in rows), default=0)
        middle = max((len(kind) for _, kind, _ in rows), default=0)
        lines = [
            f"  {name:{left}}  {kind:{middle}}{f'  {parts} parts' if parts > 1 else ''}".rstrip()
            for name, kind, parts in rows
        ]
        by = f"{self.num_processes} process" + "es" * (self.num_processes > 1)
        size = bytes_text(self.nbytes) if self.nbytes >= 1024 else f"{self.nbytes} bytes"
        head = f"{self.path.name}: {len(self.leaves)} leaves, {size}, by {by}"
        about = [f"  metadata: {json.dumps(self.metadata)}"] if self.metadata is not None else []
        return "\n".join([head, *about, *lines])


@api_boundary
def describe(path: str | os.PathLike[str]) -> Description:
    """Describe the content of a checkpoint, without reading any array.

    Args:
        path: directory of the checkpoint.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: the index is damaged.
    """
    place = _path("describe", path)
    index = index_file.load(place)
    leaves = tuple(
        LeafDescription(leaf.path, leaf.type_text, leaf.value, len(leaf.parts), leaf.nbytes) for leaf in index.leaves
    )
    return Description(place, index.metadata, index.processes, leaves)


@api_boundary
def verify(path: str | os.PathLike[str]) -> None:
    """Read a whole checkpoint and compare all checksums.

    Args:
        path: directory of the checkpoint.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: the checkpoint is damaged; the message names the array, part and file, and the damage.
    """
    place = _path("verify", path)
    index = index_file.load(place)
    with ThreadPoolExecutor(_THREADS, "corejax-checkpoints") as pool:
        files = Files(place, index.ident, True, pool)
        for leaf in index.leaves:
            index_file.check_complete(leaf, place)
            for part in leaf.parts:
                files.read(leaf, part, held_dtype(leaf), tuple(slice(0, n) for n in part.shape))
