"""The index of a checkpoint, `index.json`: its structure, and for each leaf its value or where the parts of it are.

It is JSON with a line for each leaf, a version, and a checksum over all the rest. Who replaces it, commits.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corejax.extend.messages import CorejaxError

NAME = "index.json"
FORMAT, VERSION = "corejax-checkpoint", 1
BLOCK = 1 << 24  # bytes that one checksum is of: a slice of a part is checked without reading all of that
ARRAY_KINDS = ("array", "numpy", "scalar")


class CheckpointError(CorejaxError, ValueError):
    """A checkpoint is damaged, or could not be made: the message says which file, which array, and what is wrong."""


class Part(NamedTuple):
    """A box of an array, in a file.

    Attributes:
        start: where in the array it begins.
        shape: its sizes.
        file: relative to the checkpoint.
        key: its name in the file.
        crc32: of its bytes, one for each block of them.
    """

    start: tuple[int, ...]
    shape: tuple[int, ...]
    file: str
    key: str
    crc32: tuple[int, ...]


class Leaf(NamedTuple):
    """A leaf of a checkpoint.

    Attributes:
        path: where in the tree it is: `['layers'][0].w`.
        kind: "array", "numpy" (an array of NumPy's), "scalar" (of NumPy's), "bool", "int", "float", "complex", "str".
        dtype: by name, as NumPy or the table of extended dtypes has it; empty unless it is an array.
        shape: of the whole array.
        parts: which together are the array.
        value: of Python's numbers and texts.
        weak_type: whether the array's dtype came from a Python scalar.
        impl: of an array of keys, the name of its generator.
        inner: of an array of keys, the axes of a key's words; parts have them too, behind the array's own.
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
        """Bytes of all numbers."""
        return math.prod(self.shape + self.inner) * held_dtype(self).itemsize if self.kind in ARRAY_KINDS else 0

    @property
    def type_text(self) -> str:
        """`float32[2,3]`, or the Python type."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]" if self.kind in ARRAY_KINDS else self.kind

    @property
    def name(self) -> str:
        """The path, for messages."""
        return self.path or "the tree, which is one leaf,"


class Index(NamedTuple):
    """What an index says.

    Attributes:
        ident: of this saving, random; its files carry it.
        processes: how many wrote.
        metadata: what the user gave.
        structure: of the tree (see `structure`).
        leaves: in the order of their numbers.
    """

    ident: str
    processes: int
    metadata: Any
    structure: Any
    leaves: tuple[Leaf, ...]


# -- leaves ------------------------------------------------------------------------------------------------------------


def leaf_to_json(leaf: Leaf) -> dict[str, Any]:
    """A leaf as JSON, without what is as it is by default."""
    document = {name: value for name, value in leaf._asdict().items() if value != Leaf._field_defaults.get(name, leaf)}
    if leaf.kind in ARRAY_KINDS:
        document["shape"] = list(leaf.shape)
        document["parts"] = [part._asdict() | {"crc32": [f"{crc:08x}" for crc in part.crc32]} for part in leaf.parts]
    elif leaf.kind in _TO_JSON:
        document["value"] = _TO_JSON[leaf.kind](leaf.value)
    return document


def leaf_from_json(document: dict[str, Any]) -> Leaf:
    """The leaf again."""
    leaf = Leaf(**document)
    if leaf.kind in _FROM_JSON:
        leaf = leaf._replace(value=_FROM_JSON[leaf.kind](leaf.value))
    parts = [
        Part(tuple(p["start"]), tuple(p["shape"]), p["file"], p["key"], tuple(int(crc, 16) for crc in p["crc32"]))
        for p in document.get("parts", ())
    ]
    return leaf._replace(shape=tuple(leaf.shape), inner=tuple(leaf.inner), parts=tuple(parts))


# Floats as text: `repr` gives back every bit, and JSON has neither infinities nor NaN.
_TO_JSON = {"float": repr, "complex": lambda z: [repr(z.real), repr(z.imag)]}
_FROM_JSON = {"float": float, "complex": lambda pair: complex(*map(float, pair))}


def check_complete(leaf: Leaf, place: Path) -> None:
    """Refuse parts that are not all of an array.

    Raises:
        CheckpointError: some are missing, or overlap.
    """
    if leaf.kind not in ARRAY_KINDS:
        return
    have, want = sum(math.prod(part.shape) for part in leaf.parts), math.prod(leaf.shape + leaf.inner)
    if have != want or not leaf.parts or len({part.start for part in leaf.parts}) != len(leaf.parts):
        raise CheckpointError(
            f"{place}: the parts of {leaf.name} have {have} elements in {len(leaf.parts)} parts, and {leaf.type_text} "
            f"has {want}"
        )


# -- dtypes ------------------------------------------------------------------------------------------------------------


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, from which `numpy.dtype` makes it again.

    Raises:
        TypeError: it has none: elements are Python objects, or have fields.
    """
    for text in (dtype.name, dtype.str):
        try:
            if not dtype.hasobject and np.dtype(text) == dtype:
                return text
        except TypeError:
            continue
    raise TypeError(f"arrays of dtype {dtype} are not saved, they are not made of numbers or text")


def held_dtype(leaf: Leaf) -> np.dtype[Any]:
    """The dtype of the numbers in an array's parts."""
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
    """The index of the checkpoint in a directory.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: it is damaged, or of a newer version.
        OSError: it cannot be read.
    """
    path = place / NAME
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(_nothing_there(place)) from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CheckpointError(f"{path}: the index is damaged, it is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(f'{path} is no index of a checkpoint: it has no "format": {FORMAT!r}')
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise CheckpointError(
            f"{path} has version {version} of the format, and this corejax-checkpoints reads versions up to {VERSION}: "
            "upgrade it (pip install -U corejax-checkpoints)"
        )
    if document.get("crc32") != _checksum(document):
        raise CheckpointError(
            f"{path}: the index is damaged, its checksum is {_checksum(document)} where it says {document.get('crc32')}"
        )
    leaves = tuple(map(leaf_from_json, document["leaves"]))
    return Index(document["id"], document["processes"], document["metadata"], document["structure"], leaves)


def _nothing_there(place: Path) -> str:
    if not place.exists():
        return f"there is no checkpoint {place}: no such directory"
    if not place.is_dir():
        return f"{place} is no checkpoint: it is a file, and a checkpoint is a directory"
    inside = sorted(path.parent.name for path in place.glob(f"*/{NAME}"))
    advice = f"; those in it are {', '.join(inside[-5:])}" if inside else ""
    return f"{place} is no checkpoint: there is no {NAME} in it{advice}"
