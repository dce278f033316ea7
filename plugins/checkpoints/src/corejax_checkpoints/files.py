"""The safetensors files with the numbers, written by the safetensors library and read as mapped memory.

The library's own reader copies each tensor twice and lacks dtypes for NumPy. The format is a JSON header with offsets,
so this module reads it itself. Arrays of a dtype that the format lacks are stored as bytes.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from corejax_checkpoints.index import BLOCK, CheckpointError, Leaf, Part

Host = np.ndarray[Any, Any]

# The dtypes that the format has, and its names for them.
_OF_FORMAT = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "complex64": "C64",
}


def of_format(value: Host) -> Host:
    """Return a contiguous array of a dtype that the format has: the array, or its bytes along an added last axis."""
    if value.dtype.isnative and value.dtype.name in _OF_FORMAT:
        return np.ascontiguousarray(value).reshape(value.shape)
    return np.ascontiguousarray(value).reshape(*value.shape, 1).view(np.uint8)


def checksums(value: Host) -> tuple[int, ...]:
    """Return the CRC-32 of each block of an array's bytes."""
    raw = value.reshape(-1).view(np.uint8)
    return tuple(zlib.crc32(raw[at : at + BLOCK].data) for at in range(0, raw.nbytes, BLOCK))


def write(path: Path, tensors: Mapping[str, Host], metadata: Mapping[str, str]) -> None:
    """Write a file, and wait until it is on the disk.

    Raises:
        OSError: the file cannot be written; of the subclass for the system's error number.
    """
    try:
        save_file(dict(tensors), path, metadata=dict(metadata))
    except SafetensorError as error:
        raise _as_os_error(error, path) from None
    path.chmod(path.parent.stat().st_mode & 0o666)  # the library makes the file private to the user
    sync(path)


def _as_os_error(error: Exception, path: Path) -> OSError:
    _, _, number = str(error).rpartition("(os error ")
    code = int(number.rstrip(")")) if number.rstrip(")").isdigit() else 0
    return OSError(code, os.strerror(code), str(path)) if code else OSError(f"{path}: {error}")


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a directory, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# -- reading -----------------------------------------------------------------------------------------------------------


class _Opened(NamedTuple):
    """A mapped file.

    Attributes:
        data: the bytes after the header.
        tensors: dict from key to the header's entry.
    """

    data: Host
    tensors: dict[str, Any]


class Files:
    """The files of a checkpoint, each opened on first use.

    Args:
        place: directory of the checkpoint.
        ident: id of the checkpoint, which the files must contain.
        check: whether to compare checksums.
        pool: executor that computes checksums in parallel.
    """

    def __init__(self, place: Path, ident: str, check: bool, pool: Executor) -> None:
        self.place, self.ident, self.check, self.pool = place, ident, check, pool
        self._opened: dict[str, _Opened] = {}
        self._checked: set[tuple[str, str, int]] = set()

    def read(self, leaf: Leaf, part: Part, dtype: np.dtype[Any], box: tuple[slice, ...]) -> Host:
        """Return a box of a part as mapped memory, after checking the blocks that it touches.

        Raises:
            CheckpointError: the file is missing, damaged, or of another checkpoint; the message says what is wrong.
            OSError: the file cannot be read.
        """
        raw = self._bytes(leaf, part, dtype)
        values = raw.view(dtype).reshape(part.shape)
        if self.check and raw.size and (span := _memory_span(box, part.shape)) is not None:
            low, high = span
            self._compare(leaf, part, raw, range(low * dtype.itemsize // BLOCK, -(-high * dtype.itemsize // BLOCK)))
        return values[box]

    def _compare(self, leaf: Leaf, part: Part, raw: Host, blocks: Iterable[int]) -> None:
        new = [n for n in blocks if (part.file, part.key, n) not in self._checked]
        pieces = [raw[n * BLOCK : (n + 1) * BLOCK].data for n in new]
        computed = self.pool.map(zlib.crc32, pieces) if len(new) > 1 else map(zlib.crc32, pieces)
        for n, crc in zip(new, computed, strict=True):
            if n >= len(part.crc32) or crc != part.crc32[n]:
                raise self._damaged(
                    leaf,
                    part,
                    f"bytes {n * BLOCK} to {min((n + 1) * BLOCK, raw.size)} have the checksum {crc:08x}, but the index "
                    f"says {f'{part.crc32[n]:08x}' if n < len(part.crc32) else 'nothing'}",
                )
            self._checked.add((part.file, part.key, n))

    def _bytes(self, leaf: Leaf, part: Part, dtype: np.dtype[Any]) -> Host:
        opened = self._opened.get(part.file)
        if opened is None:
            opened = self._opened[part.file] = self._open(leaf, part)
        entry = opened.tensors.get(part.key)
        if entry is None:
            raise self._damaged(leaf, part, f"the file has no tensor {part.key!r}")
        name, shape = _OF_FORMAT.get(dtype.name) if dtype.isnative else None, list(part.shape)
        if name is None:
            name, shape = "U8", [*shape, dtype.itemsize]
        if entry.get("dtype") != name or entry.get("shape") != shape:
            raise self._damaged(
                leaf, part, f"its header says {entry.get('dtype')}{entry.get('shape')}, but the index {name}{shape}"
            )
        low, high = entry["data_offsets"]
        if high - low != math.prod(part.shape) * dtype.itemsize or not 0 <= low <= high <= opened.data.size:
            raise self._damaged(
                leaf,
                part,
                f"its bytes are {low} to {high} of {opened.data.size}: the file is truncated, or its header damaged",
            )
        return opened.data[low:high]

    def _open(self, leaf: Leaf, part: Part) -> _Opened:
        path = self.place / part.file
        try:
            size = path.stat().st_size
            mapped = np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)
        except FileNotFoundError:
            raise self._damaged(leaf, part, "the file is missing") from None
        length = int.from_bytes(bytes(mapped[:8]), "little")
        if size < 8 or length > size - 8:
            raise self._damaged(
                leaf, part, f"it has {size} bytes, which is less than its header: the file is truncated"
            )
        try:
            header = json.loads(bytes(mapped[8 : 8 + length]))
            ident = header.pop("__metadata__", {}).get("checkpoint")
        except (ValueError, AttributeError, TypeError):
            raise self._damaged(leaf, part, "it does not begin with the header of a safetensors file") from None
        if ident != self.ident:
            raise self._damaged(leaf, part, f"the file is of checkpoint {ident}, but the index of {self.ident}")
        return _Opened(np.asarray(mapped)[8 + length :], header)

    def _damaged(self, leaf: Leaf, part: Part, what: str) -> CheckpointError:
        box = ", ".join(f"{a}:{a + n}" for a, n in zip(part.start, part.shape, strict=True))
        return CheckpointError(f"{self.place}: {leaf.name} {leaf.type_text}, part [{box}] in {part.file}: {what}")


def _memory_span(box: Sequence[slice], shape: Sequence[int]) -> tuple[int, int] | None:
    """Return the offset of a box's first element in memory, and of the one after its last; None if it is empty."""
    first = last = 0
    for part, size in zip(box, shape, strict=True):
        if part.start >= part.stop:
            return None
        first, last = first * size + part.start, last * size + part.stop - 1
    return first, last + 1
