"""The index of a checkpoint, `index.json`: the tree's structure, and each leaf's value or its parts' places.

The index is JSON with a line for each leaf, a version, and a checksum of everything else. Replacing it commits a
checkpoint.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corejax.extend.messages import CorejaxError

NAME = "index.json"
FORMAT, VERSION = "corejax-checkpoint", 1
BLOCK = 1 << 24  # bytes covered by one checksum, so that a slice of a part is checked without reading the whole part
ARRAY_KINDS = ("array", "numpy", "scalar")


class CheckpointError(CorejaxError, ValueError):
    """Raised if a checkpoint is damaged or could not be saved; the message names the file, the array and the reason."""


class Part(NamedTuple):
    """A box of an array, stored in a file.

    Attributes:
        start: the box's first index in the array.
        shape: the box's shape.
        file: path of the file, relative to the checkpoint.
        key: name of the tensor in the file.
        crc32: CRC-32 of each block of the box's bytes.
    """

    start: tuple[int, ...]
    shape: tuple[int, ...]
    file: str
    key: str
    crc32: tuple[int, ...]


class Leaf(NamedTuple):
    """A leaf of a checkpoint.

    Attributes:
        path: path of the leaf in the tree, such as `['layers'][0].w`.
        kind: "array", "numpy" (a NumPy array), "scalar" (a NumPy scalar), "bool", "int", "float", "complex", "str".
        dtype: name of the dtype, NumPy's or that of an extended dtype; empty if the leaf is not an array.
        shape: shape of the whole array.
        parts: the parts that make up the array.
        value: the value of a Python number or string.
        weak_type: whether the array's dtype came from a Python scalar.
        impl: name of the generator, for an array of random keys.
        inner: shape of a key's words, for an array of random keys; parts have these axes after the array's own.
    """

    path: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    parts: tuple[Part, ...] = ()
    value: Any = None
    weak_type: bool = False
    impl: str = ""
    inner: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """The bytes of all numbers."""
        return math.prod(self.shape + self.inner) * held_dtype(self).itemsize if self.kind in ARRAY_KINDS else 0

    @property
    def type_text(self) -> str:
        """The type as text: `float32[2,3]`, or the name of the Python type."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]" if self.kind in ARRAY_KINDS else self.kind

    @property
    def name(self) -> str:
        """The leaf's name in messages: its path, or a description of the root."""
        return self.path or "the tree, which is one leaf,"


class Index(NamedTuple):
    """The content of an index.

    Attributes:
        ident: random id of the save, which its files contain.
        processes: number of processes that saved.
        metadata: the user's metadata.
        structure: structure of the tree (see `structure`).
        leaves: the leaves, in the order of their indices in the structure.
    """

    ident: str
    processes: int
    metadata: Any
    structure: Any
    leaves: tuple[Leaf, ...]


# -- leaves ------------------------------------------------------------------------------------------------------------


def leaf_to_json(leaf: Leaf) -> dict[str, Any]:
    """Convert a leaf to JSON, without fields that have their default value."""
    document = {name: value for name, value in leaf._asdict().items() if value != Leaf._field_defaults.get(name, leaf)}
    if leaf.kind in ARRAY_KINDS:
        document["shape"] = list(leaf.shape)
        document["parts"] = [part._asdict() | {"crc32": [f"{crc:08x}" for crc in part.crc32]} for part in leaf.parts]
    elif leaf.kind in _TO_JSON:
        document["value"] = _TO_JSON[leaf.kind](leaf.value)
    return document


def leaf_from_json(document: dict[str, Any]) -> Leaf:
    """Convert the JSON of `leaf_to_json` back to a leaf."""
    leaf = Leaf(**document)
    if leaf.kind in _FROM_JSON:
        leaf = leaf._replace(value=_FROM_JSON[leaf.kind](leaf.value))
    parts = [
        Part(tuple(p["start"]), tuple(p["shape"]), p["file"], p["key"], tuple(int(crc, 16) for crc in p["crc32"]))
        for p in document.get("parts", ())
    ]
    return leaf._replace(shape=tuple(leaf.shape), inner=tuple(leaf.inner), parts=tuple(parts))


# Floats are stored as text: `repr` preserves every bit, and JSON has neither infinities nor NaN.
_TO_JSON: dict[str, Callable[[Any], Any]] = {"float": repr, "complex": lambda z: [repr(z.real), repr(z.imag)]}
_FROM_JSON: dict[str, Callable[[Any], Any]] = {"float": float, "complex": lambda pair: complex(*map(float, pair))}


def check_complete(leaf: Leaf, place: Path) -> None:
    """Raise CheckpointError if parts of an array are missing or overlap."""
    if leaf.kind not in ARRAY_KINDS:
        return
    have, want = sum(math.prod(part.shape) for part in leaf.parts), math.prod(leaf.shape + leaf.inner)
    if have != want or not leaf.parts or len({part.start for part in leaf.parts}) != len(leaf.parts):
        raise CheckpointError(
            f"{place}: the parts of {leaf.name} have {have} elements in {len(leaf.parts)} parts, but {leaf.type_text} "
            f"has {want}"
        )


# -- dtypes ------------------------------------------------------------------------------------------------------------


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a name of a dtype from which `numpy.dtype` recreates it.

    Raises:
        TypeError: the dtype has no such name, because its elements are Python objects or have fields.
    """
    for text in (dtype.name, dtype.str):
        try:
            if not dtype.hasobject and np.dtype(text) == dtype:
                return text
        except TypeError:
            continue
    raise TypeError(f"arrays of dtype {dtype} cannot be saved, only arrays of numbers or text")


def held_dtype(leaf: Leaf) -> np.dtype[Any]:
    """Return the dtype of the numbers in an array's parts."""
    return np.dtype(np.uint32 if leaf.impl else leaf.dtype)


# -- files -------------------------------------------------------------------------------------------------------------


def dump(index: Index, path: Path) -> None:
    """Write an index, and wait until it is on the disk."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "id": index.ident,
        "processes": index.processes,
        "metadata": index.metadata,
        "structure": index.structure,
        "leaves": [leaf_to_json(leaf) for leaf in index.leaves],
    }
    document["crc32"] = _checksum(document)
    lines = ",\n".join("  " + json.dumps(leaf) for leaf in document["leaves"])
    fields = [
        f'"{name}": ' + (f"[\n{lines}\n ]" if name == "leaves" else json.dumps(value))
        for name, value in document.items()
    ]
    write_durably(path, "{\n " + ",\n ".join(fields) + "\n}\n")


def _checksum(document: dict[str, Any]) -> str:
    rest = {name: value for name, value in document.items() if name != "crc32"}
    return f"{zlib.crc32(json.dumps(rest, sort_keys=True).encode()):08x}"


def write_durably(path: Path, text: str) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def load(place: Path) -> Index:
    """Load the index of the checkpoint in a directory.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: the index is damaged, or of a newer version.
        OSError: the index cannot be read.
    """
    path = place / NAME
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(_nothing_there(place)) from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CheckpointError(f"{path}: the index is damaged, it is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(f'{path} is not the index of a checkpoint: it has no "format": {FORMAT!r}')
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise CheckpointError(
            f"{path} has version {version} of the format, but this corejax-checkpoints reads versions up to {VERSION}: "
            "upgrade it (pip install -U corejax-checkpoints)"
        )
    if document.get("crc32") != _checksum(document):
        raise CheckpointError(
            f"{path}: the index is damaged, its checksum is {_checksum(document)} but it says {document.get('crc32')}"
        )
    leaves = tuple(map(leaf_from_json, document["leaves"]))
    return Index(document["id"], document["processes"], document["metadata"], document["structure"], leaves)


def _nothing_there(place: Path) -> str:
    if not place.exists():
        return f"there is no checkpoint {place}: no such directory"
    if not place.is_dir():
        return f"{place} is not a checkpoint: it is a file, and a checkpoint is a directory"
    inside = sorted(path.parent.name for path in place.glob(f"*/{NAME}"))
    advice = f"; it contains the checkpoints {', '.join(inside[-5:])}" if inside else ""
    return f"{place} is not a checkpoint: there is no {NAME} in it{advice}"
