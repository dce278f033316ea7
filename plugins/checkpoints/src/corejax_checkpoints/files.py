"""The files with the numbers: safetensors, written by that library, and read as mapped memory.

The library's own reader copies each tensor twice and has not all dtypes for NumPy; the format is a header in JSON with
offsets, which is read here. What the format has no dtype for is in it as bytes.
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

# What is in a file under the name of its own dtype, and how the format spells that.
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
    """An array as the format can hold it: itself, or its bytes along a last axis; in one piece of memory."""
    if value.dtype.isnative and value.dtype.name in _OF_FORMAT:
        return np.ascontiguousarray(value).reshape(value.shape)
    return np.ascontiguousarray(value).reshape(*value.shape, 1).view(np.uint8)


def checksums(value: Host) -> tuple[int, ...]:
    """CRC-32 of each block of an array's bytes."""
    raw = value.reshape(-1).view(np.uint8)
    return tuple(zlib.crc32(raw[at : at + BLOCK]) for at in range(0, raw.nbytes, BLOCK))


def write(path: Path, tensors: Mapping[str, Host], metadata: Mapping[str, str]) -> None:
    """Write a file, and wait until it is on the disk.

    Raises:
        OSError: it cannot be written; of the class that the system's error number says.
    """
    try:
        save_file(dict(tensors), path, metadata=dict(metadata))
    except SafetensorError as error:
        raise _as_os_error(error, path) from None
    path.chmod(path.parent.stat().st_mode & 0o666)  # the library lets nobody else read it
    sync(path)


def _as_os_error(error: Exception, path: Path) -> OSError:
    _, _, number = str(error).rpartition("(os error ")
    code = int(number.rstrip(")")) if number.rstrip(")").isdigit() else 0
    return OSError(code, os.strerror(code), str(path)) if code else OSError(f"{path}: {error}")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# -- reading -----------------------------------------------------------------------------------------------------------


class _Opened(NamedTuple):
    """A mapped file: its bytes behind the header, and what the header says of each tensor."""

    data: Host
    tensors: dict[str, Any]


class Files:
    """The files of a checkpoint, opened when something of them is asked for.

    Args:
        place: the directory.
        ident: what the files have to carry.
        check: whether checksums are compared.
        pool: what computes several at once.
    """

    def __init__(self, place: Path, ident: str, check: bool, pool: Executor) -> None:
        self.place, self.ident, self.check, self.pool = place, ident, check, pool
        self._opened: dict[str, _Opened] = {}
        self._checked: set[tuple[str, str, int]] = set()

    def read(self, leaf: Leaf, part: Part, dtype: np.dtype[Any], box: tuple[slice, ...]) -> Host:
        """A box of a part, as mapped memory, whose blocks were checked.

        Raises:
            CheckpointError: the file is missing, damaged, or of another checkpoint; says what of it.
            OSError: it cannot be read.
        """
        raw = self._bytes(leaf, part, dtype)
        whole = raw.view(dtype).reshape(part.shape)
        if self.check and raw.size and (touched := _touched(box, part.shape)) is not None:
            low, high = touched
            self._compare(leaf, part, raw, range(low * dtype.itemsize // BLOCK, -(-high * dtype.itemsize // BLOCK)))
        return whole[box]

    def _compare(self, leaf: Leaf, part: Part, raw: Host, blocks: Iterable[int]) -> None:
        new = [n for n in blocks if (part.file, part.key, n) not in self._checked]
        pieces = [raw[n * BLOCK : (n + 1) * BLOCK] for n in new]
        found = self.pool.map(zlib.crc32, pieces) if len(new) > 1 else map(zlib.crc32, pieces)
        for n, crc in zip(new, found, strict=True):
            if n >= len(part.crc32) or crc != part.crc32[n]:
                raise self._damaged(
                    leaf,
                    part,
                    f"bytes {n * BLOCK} to {min((n + 1) * BLOCK, raw.size)} of it have the checksum {crc:08x}, and the "
                    f"index says {f'{part.crc32[n]:08x}' if n < len(part.crc32) else 'nothing'}",
                )
            self._checked.add((part.file, part.key, n))

    def _bytes(self, leaf: Leaf, part: Part, dtype: np.dtype[Any]) -> Host:
        opened = self._opened.get(part.file)
        if opened is None:
            opened = self._opened[part.file] = self._open(leaf, part)
        said = opened.tensors.get(part.key)
        if said is None:
            raise self._damaged(leaf, part, f"the file has no tensor {part.key!r}")
        name, shape = _OF_FORMAT.get(dtype.name) if dtype.isnative else None, list(part.shape)
        if name is None:
            name, shape = "U8", [*shape, dtype.itemsize]
        if said.get("dtype") != name or said.get("shape") != shape:
            raise self._damaged(
                leaf, part, f"its header says {said.get('dtype')}{said.get('shape')}, and the index {name}{shape}"
            )
        low, high = said["data_offsets"]
        if high - low != math.prod(part.shape) * dtype.itemsize or not 0 <= low <= high <= opened.data.size:
            raise self._damaged(
                leaf,
                part,
                f"its bytes are {low} to {high} of {opened.data.size}: the file is cut short, or its header bad",
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
                leaf, part, f"it has {size} bytes, which is less than its header: the file is cut short"
            )
        try:
            header = json.loads(bytes(mapped[8 : 8 + length]))
            ident = header.pop("__metadata__", {}).get("checkpoint")
        except (ValueError, AttributeError, TypeError):
            raise self._damaged(leaf, part, "it does not begin with the header of a safetensors file") from None
        if ident != self.ident:
            raise self._damaged(leaf, part, f"the file is of checkpoint {ident}, and the index of {self.ident}")
        return _Opened(np.asarray(mapped)[8 + length :], header)

    def _damaged(self, leaf: Leaf, part: Part, what: str) -> CheckpointError:
        box = ", ".join(f"{a}:{a + n}" for a, n in zip(part.start, part.shape, strict=True))
        return CheckpointError(f"{self.place}: {leaf.name} {leaf.type_text}, part [{box}] in {part.file}: {what}")


def _touched(box: Sequence[slice], shape: Sequence[int]) -> tuple[int, int] | None:
    """First element of a box, in the order of memory, and the one behind its last; None if it has none."""
    first = last = 0
    for part, size in zip(box, shape, strict=True):
        if part.start >= part.stop:
            return None
        first, last = first * size + part.start, last * size + part.stop - 1
    return first, last + 1
