"""`corejax.checkpoints`: pytrees of arrays on disk, for any number of devices and processes.

    checkpoints.save("run/step_100", {"params": params, "step": 100})
    state = checkpoints.restore("run/step_100", like=state)       # with the shardings that `state` has now

A checkpoint is a directory with an index and safetensors files. It is there as a whole or not at all, whenever the
process dies. Every part has checksums, which reading compares. Each process writes its own parts, and reads what its
devices need, so that who restores may have other devices, meshes and numbers of processes than who saved.
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
    """Save a pytree. Of several processes each calls it, with the same arguments, on a file system that they share.

    Args:
        path: the directory that becomes the checkpoint; the one around it has to be there.
        tree: a pytree of arrays of any dtype, keys among them, NumPy's arrays and scalars, Python's numbers and text.
            Of a class that is a node, the children are saved, and not what else it holds.
        metadata: what JSON can hold, for `describe`.
        overwrite: whether a checkpoint that is there may be replaced; it is whole until the new one is.
        timeout_seconds: how long to wait for other processes.

    Raises:
        TypeError: a leaf is nothing that is saved, or traced; the metadata are not JSON.
        FileExistsError: a checkpoint is there, or something else; or another save of it is running.
        FileNotFoundError: there is no directory around it.
        CheckpointError: another process could not write; says which, and why.
        OSError: this one could not; nothing is left of what it had written.
        BackendError: a process did not come in time.
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
    """Save a pytree by a thread, as it is now: arrays may be donated and NumPy's be written to at once.

    Arguments and errors are those of `save`; what goes wrong while the thread writes is raised by `wait`. Python ends
    when the thread has.

    Returns:
        A `Saving`, whose `wait()` returns when the checkpoint is there.
    """
    begun = saving.begin(_job(path, tree, metadata, overwrite, timeout_seconds, copy=True))
    try:
        return Saving(begun)
    except BaseException:
        begun.stack.close()
        raise


class Saving:
    """A checkpoint that a thread is writing: what `save_async` returns."""

    def __init__(self, begun: saving.Begun) -> None:
        self._path = begun.job.path
        self._outcome = outcome = _Outcome(self._path)

        def write() -> None:
            try:
                saving.finish(begun, None)  # a thread that outlives the main one can start no others
            except BaseException as error:
                outcome.error = error

        self._thread = threading.Thread(target=write, name=f"corejax.checkpoints {self._path.name}")
        self._thread.start()

    def done(self) -> bool:
        """Whether the thread has ended; `wait` says how, at once."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the checkpoint is there.

        Args:
            timeout: in seconds; without one it takes as long as it takes.

        Raises:
            TimeoutError: the thread is still writing.
            Exception: what went wrong, as `save` raises it.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._path} is still being written after {timeout} s")
        self._outcome.told = True
        if self._outcome.error is not None:
            raise self._outcome.error

    def __repr__(self) -> str:
        state = "writing" if not self.done() else "failed" if self._outcome.error is not None else "done"
        return f"<Saving {str(self._path)!r}: {state}>"


class _Outcome:
    """What became of a saving; a failure that nobody waits for is a warning when the last reference is gone."""

    def __init__(self, path: Path) -> None:
        self.path, self.told = path, False
        self.error: BaseException | None = None

    def __del__(self) -> None:
        if self.error is not None and not self.told:
            warnings.warn(f"{self.path} was not saved, and nobody waited to hear: {self.error!r}", stacklevel=2)


def _job(path: Any, value: Any, metadata: Any, overwrite: bool, timeout: float, *, copy: bool) -> saving.Job:
    place = _path("save", path)
    try:
        metadata = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"save: metadata is what JSON can hold, got {metadata!r}: {error}") from None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        raise ValueError(f"save: timeout_seconds is a positive number, got {timeout!r}")
    skeleton, leaves = structure.encode(value)
    here = saving.this_place(timeout)
    taken = tuple(take(where, leaf, here.process, copy) for where, leaf in leaves)
    return saving.Job(place, skeleton, taken, metadata, overwrite, here)


def _path(name: str, given: Any) -> Path:
    try:
        return Path(given).absolute()
    except TypeError:
        raise TypeError(f"{name}: path is a path, got {given!r} of type {type(given).__name__}") from None


@api_boundary
def restore(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    shardings: Any = None,
    partial: bool = False,
    check: bool = True,
) -> Any:
    """The pytree of a checkpoint. Each process reads what its devices need.

    Args:
        path: the checkpoint's directory.
        like: a pytree of the same structure, with arrays or `ShapeDtypeStruct`s of the same shapes and dtypes: the
            result has its classes, and lies where its arrays lie. Without it nodes are dicts, lists and tuples.
        shardings: where arrays are put, instead: a pytree of shardings or devices that is a prefix of the tree; None
            for where `like` has them, and for the host without it.
        partial: whether `like` may have fewer leaves than the checkpoint; the others are not read.
        check: whether checksums are compared.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: it is damaged; says which array, part and file, and what is wrong.
        ValueError, TypeError: `like` has another structure, shape or dtype, says where; or a sharding does not fit.
    """
    place = _path("restore", path)
    while True:
        index = index_file.load(place)
        try:
            return _restored(place, index, like, shardings, partial, check)
        except CheckpointError:
            if index_file.load(place).ident == index.ident:  # else it was replaced meanwhile
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
    """Numbers of the leaves to restore, what `like` has for each, and what makes a tree of values in that order."""
    if like is None:
        numbers, treedef = tree.tree_flatten(structure.decode(index.structure, lambda number: number))
        return numbers, numbers, lambda values: tree.tree_unflatten(treedef, values)
    found, differences = structure.match(index.structure, like, partial)
    if differences:
        more = f"; and {len(differences) - 5} more" if len(differences) > 5 else ""
        raise ValueError(
            f"restore: the checkpoint {place} and like differ in structure: {'; '.join(differences[:5])}{more}"
            + (
                ""
                if partial
                else ". partial=True leaves out what like has not"
                * any(d.endswith(("like has none", "like has None")) for d in differences)
            )
        )
    treedef = tree.tree_structure(like)
    return [n for n, _, _ in found], [leaf for _, _, leaf in found], lambda values: tree.tree_unflatten(treedef, values)


def _places(shardings: Any, full: Any) -> list[Any]:
    try:
        return tree.broadcast_prefix(shardings, full, lambda x: x is None or structure.is_leaf(x))
    except ValueError as error:
        raise ValueError(f"restore: shardings are no prefix of the tree: {error}") from None


# -- looking -----------------------------------------------------------------------------------------------------------


class LeafDescription(NamedTuple):
    """What a checkpoint says of a leaf.

    Attributes:
        path: where in the tree it is: `['layers'][0].w`.
        type: `float32[2,3]`, or `int` and its like.
        value: of Python's numbers and text; None of arrays.
        parts: how many an array is in.
        nbytes: of all of them.
    """

    path: str
    type: str
    value: Any
    parts: int
    nbytes: int


class Description(NamedTuple):
    """What a checkpoint says of itself; `str` of it is a table.

    Attributes:
        path: its directory.
        metadata: what `save` was given.
        num_processes: how many saved it.
        leaves: a `LeafDescription` for each.
    """

    path: Path
    metadata: Any
    num_processes: int
    leaves: tuple[LeafDescription, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(leaf.nbytes for leaf in self.leaves)

    def __str__(self) -> str:
        rows = [
            (leaf.path or "(the tree)", leaf.type if leaf.value is None else f"{leaf.type} {leaf.value!r}", leaf.parts)
            for leaf in self.leaves
        ]
        left, middle = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
        lines = [
            f"  {where:{left}}  {kind:{middle}}{f'  {parts} parts' if parts > 1 else ''}".rstrip()
            for where, kind, parts in rows
        ]
        by = f"{self.num_processes} process" + "es" * (self.num_processes > 1)
        size = bytes_text(self.nbytes) if self.nbytes >= 1024 else f"{self.nbytes} bytes"
        head = f"{self.path.name}: {len(self.leaves)} leaves, {size}, by {by}"
        about = [f"  metadata: {json.dumps(self.metadata)}"] if self.metadata is not None else []
        return "\n".join([head, *about, *lines])


@api_boundary
def describe(path: str | os.PathLike[str]) -> Description:
    """What a checkpoint holds, without reading any array.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: its index is damaged.
    """
    place = _path("describe", path)
    index = index_file.load(place)
    leaves = tuple(
        LeafDescription(leaf.path, leaf.type_text, leaf.value, len(leaf.parts), leaf.nbytes) for leaf in index.leaves
    )
    return Description(place, index.metadata, index.processes, leaves)


@api_boundary
def verify(path: str | os.PathLike[str]) -> None:
    """Read all of a checkpoint, and compare all checksums.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: it is damaged; says which array, part and file, and what is wrong.
    """
    place = _path("verify", path)
    index = index_file.load(place)
    with ThreadPoolExecutor(_THREADS, "corejax-checkpoints") as pool:
        files = Files(place, index.ident, True, pool)
        for leaf in index.leaves:
            index_file.check_complete(leaf, place)
            for part in leaf.parts:
                files.read(leaf, part, held_dtype(leaf), tuple(slice(0, n) for n in part.shape))
