"""Whatever happens to the files, reading tells which array, part and file, and what is wrong."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corejax import checkpoints
from corejax.checkpoints import CheckpointError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint with one file."""
    checkpoints.save(tmp_path / "c", {"w": np.arange(6.0).reshape(2, 3), "step": 3})
    return tmp_path / "c"


def file_of(path: Path) -> Path:
    (file,) = path.glob("*/*.safetensors")
    return file


def rewrite(path: Path, function: Any, mend: bool = True) -> None:
    """Change the index, with a right checksum."""
    document = json.loads((path / "index.json").read_text())
    function(document)
    if mend:
        rest = {name: value for name, value in document.items() if name != "crc32"}
        document["crc32"] = f"{zlib.crc32(json.dumps(rest, sort_keys=True).encode()):08x}"
    (path / "index.json").write_text(json.dumps(document))


def told(path: Path, words: str) -> None:
    for read in (checkpoints.restore, checkpoints.verify):
        with pytest.raises(CheckpointError, match=words) as caught:
            read(path)
        assert str(path) in str(caught.value)


PART = r"/c: \['w'\] float64\[2,3\], part \[0:2, 0:3\] in [0-9a-f]{16}/00000-000.safetensors: "


@pytest.mark.parametrize("at", [-1, -48, -20])
def test_a_bit_that_flipped(saved: Path, at: int) -> None:
    data = bytearray(file_of(saved).read_bytes())
    data[at] ^= 1
    file_of(saved).write_bytes(data)
    told(saved, PART + r"bytes 0 to 48 have the checksum [0-9a-f]{8}, but the index says [0-9a-f]{8}")
    got = checkpoints.restore(saved, check=False)["w"]
    assert (got != np.arange(6.0).reshape(2, 3)).sum() == 1


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (-1, r"its bytes are 0 to 48 of 47: the file is truncated"),
        (60, r"it has 60 bytes, which is less than its header: the file is truncated"),
        (4, r"it has 4 bytes"),
        (0, r"it has 0 bytes"),
    ],
)
def test_a_file_that_is_cut_short(saved: Path, size: int, words: str) -> None:
    file_of(saved).write_bytes(file_of(saved).read_bytes()[:size])
    told(saved, PART + words)
    with pytest.raises(CheckpointError, match=words):
        checkpoints.restore(saved, check=False)


def test_a_file_that_is_missing(saved: Path) -> None:
    file_of(saved).unlink()
    told(saved, PART + "the file is missing")


def test_a_file_of_something_else(saved: Path) -> None:
    file_of(saved).write_bytes(b"\x80\x02}q\x00." * 100)
    told(saved, PART + "it has 600 bytes, which is less than its header")
    file_of(saved).write_bytes((40).to_bytes(8, "little") + b"no JSON" * 20)
    told(saved, PART + "it does not begin with the header of a safetensors file")
    file_of(saved).write_bytes((4).to_bytes(8, "little") + b"[{}]" * 20)
    told(saved, PART + "it does not begin with the header of a safetensors file")


def test_a_file_of_another_checkpoint(saved: Path) -> None:
    checkpoints.save(saved.parent / "d", {"w": np.arange(6.0).reshape(2, 3), "step": 3})
    shutil.copy(file_of(saved.parent / "d"), file_of(saved))
    told(saved, PART + r"the file is of checkpoint [0-9a-f]{16}, but the index of [0-9a-f]{16}")


def test_a_header_that_says_otherwise(saved: Path) -> None:
    data = file_of(saved).read_bytes()
    file_of(saved).write_bytes(data.replace(b"[2,3]", b"[3,2]"))
    told(saved, PART + r"its header says F64\[3, 2\], but the index F64\[2, 3\]")
    file_of(saved).write_bytes(data.replace(b'"w"', b'"v"'))
    told(saved, PART + "the file has no tensor 'w'")


def test_an_index_that_is_damaged(saved: Path) -> None:
    text = (saved / "index.json").read_text()
    (saved / "index.json").write_text(text[: len(text) // 2])
    told(saved, "index.json: the index is damaged, it is not JSON")
    (saved / "index.json").write_text(text.replace('"value": 3', '"value": 4'))
    told(saved, "index.json: the index is damaged, its checksum is")
    (saved / "index.json").write_text("[]")
    told(saved, "index.json is not the index of a checkpoint")
    (saved / "index.json").write_bytes(b"\xff\xfe")
    told(saved, "index.json: the index is damaged, it is not JSON")


def test_an_index_of_a_newer_version(saved: Path) -> None:
    rewrite(saved, lambda document: document.update(version=2))
    told(saved, r"index.json has version 2 of the format, .* reads versions up to 1: upgrade it")


def test_parts_that_are_missing(saved: Path) -> None:
    rewrite(saved, lambda document: document["leaves"][1].update(parts=[]))
    told(saved, r"the parts of \['w'\] have 0 elements in 0 parts, but float64\[2,3\] has 6")


def test_keys_of_an_unknown_generator(tmp_path: Path) -> None:
    import corejax

    checkpoints.save(tmp_path / "c", {"key": corejax.random.key(0)})
    rewrite(tmp_path / "c", lambda document: document["leaves"][0].update(impl="lava"))
    with pytest.raises(CheckpointError, match=r"\['key'\] has keys of the generator 'lava', which is not registered"):
        checkpoints.restore(tmp_path / "c")


def test_slices_check_the_blocks_that_they_touch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from corejax_checkpoints import files, index

    monkeypatch.setattr(index, "BLOCK", 64)
    monkeypatch.setattr(files, "BLOCK", 64)
    whole = np.arange(64, dtype=np.float32).reshape(8, 8)
    checkpoints.save(tmp_path / "c", whole)
    data = bytearray(file_of(tmp_path / "c").read_bytes())
    data[-1] ^= 1  # of the last of four blocks, of two rows each
    file_of(tmp_path / "c").write_bytes(data)
    found = index.load(tmp_path / "c")
    (leaf,) = found.leaves
    with ThreadPoolExecutor(1) as pool:
        reader = files.Files(tmp_path / "c", found.ident, True, pool)
        for box in [(slice(0, 6), slice(0, 8)), (slice(2, 5), slice(3, 4)), (slice(7, 7), slice(0, 8))]:
            np.testing.assert_array_equal(reader.read(leaf, leaf.parts[0], np.dtype(np.float32), box), whole[box])
        for box in [(slice(5, 7), slice(0, 8)), (slice(0, 8), slice(0, 1))]:
            with pytest.raises(CheckpointError, match="bytes 192 to 256 have"):
                reader.read(leaf, leaf.parts[0], np.dtype(np.float32), box)
