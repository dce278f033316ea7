"""Four processes save, two and one restore; what one of them cannot write, all hear of."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corejax import checkpoints, random

WHOLE = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
SAVE = """
import contextlib
import sys
from pathlib import Path

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, checkpoints, random
from corejax.checkpoints import CheckpointError
from corejax_checkpoints import files, preparing

number, count, port, path = *map(int, sys.argv[1:4]), Path(sys.argv[4])
corejax.distributed.initialize(f"127.0.0.1:{port}", count, number, initialization_timeout=120)
mesh = corejax.make_mesh((4, 2), ("data", "model"))
whole = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)


def put(x, *spec):
    return corejax.make_array_from_callback(x.shape, NamedSharding(mesh, P(*spec)), x.__getitem__)


tree = {
    "w": put(whole, "data", "model"),
    "model": put(whole, None, "model"),
    "copies": put(whole),
    "keys": random.split(random.key(0), 4),
    "host": np.arange(3),
    "mine": number,
}
checkpoints.save(path, tree, metadata={"by": count})
found = checkpoints.describe(path)
assert found.num_processes == 4 and found.metadata == {"by": 4}
assert {leaf.path: leaf.parts for leaf in found.leaves if leaf.parts} == {
    "['w']": 8, "['model']": 2, "['copies']": 1, "['keys']": 1, "['host']": 1
}

got = checkpoints.restore(path, tree, shardings={**dict.fromkeys(tree), "w": NamedSharding(mesh, P(None, "data"))})
assert got["mine"] == 0, "of what is not shared out, process 0 has the word"
for shard in (*got["w"].addressable_shards, *got["model"].addressable_shards):
    np.testing.assert_array_equal(shard.data, whole[shard.index])
assert not got["w"].is_fully_addressable and got["model"].sharding == tree["model"].sharding

saving = checkpoints.save_async(path, {**tree, "w": put(whole + 1, "data", "model")}, overwrite=True)
saving.wait()
np.testing.assert_array_equal(checkpoints.restore(path)["w"], whole + 1)


def refused(error, words, tree, **options):
    try:
        checkpoints.save(path, tree, **options)
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError("it was saved")


refused(FileExistsError, "overwrite=True replaces it", tree)
if number == 0:
    held = contextlib.ExitStack()
    held.enter_context(preparing.prepared(path))
refused(FileExistsError, "is being written by another save", tree, overwrite=True)
if number == 0:
    assert (path.with_name("c.saving") / "lock").exists(), "it is the other's"
    held.close()
save_file = files.save_file
if number == 2:
    def full(*args, **options):
        raise files.SafetensorError("I/O error: No space left on device (os error 28)")
    files.save_file = full
    refused(OSError, "No space left on device", tree, overwrite=True)
else:
    refused(CheckpointError, "process 2 says: OSError: [Errno 28] No space left on device", tree, overwrite=True)
files.save_file = save_file
refused(CheckpointError, "process 3 saves another tree", {**tree, "host": np.arange(3 + number // 3)}, overwrite=True)
np.testing.assert_array_equal(checkpoints.restore(path)["w"], whole + 1)
checkpoints.verify(path)
assert not path.with_name("c.saving").exists() or number, "process 0 has removed it"
checkpoints.save(path.with_name("d"), tree)
print("done", number)
"""
RESTORE = """
import sys

import numpy as np

import corejax
from corejax import NamedSharding, P, checkpoints, random

number, count, port, path = *map(int, sys.argv[1:4]), sys.argv[4]
corejax.distributed.initialize(f"127.0.0.1:{port}", count, number, initialization_timeout=120)
mesh = corejax.make_mesh((2, 2), ("a", "b"))
whole = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
places = {"w": P("b", "a"), "model": P("a"), "copies": P(("a", "b")), "keys": P("a"), "host": P(), "mine": None}
got = checkpoints.restore(path, shardings={k: None if p is None else NamedSharding(mesh, p) for k, p in places.items()})
for name in ("w", "model", "copies"):
    assert got[name].sharding.spec == places[name]
    for shard in got[name].addressable_shards:
        np.testing.assert_array_equal(shard.data, whole[shard.index])
words = np.asarray(random.key_data(random.split(random.key(0), 4)))
for shard in got["keys"].addressable_shards:
    np.testing.assert_array_equal(random.key_data(shard.data), words[shard.index])
assert np.asarray(got["host"]).tolist() == [0, 1, 2] and got["mine"] == 0
try:
    checkpoints.restore(path, shardings=corejax.devices()[2 - 2 * number])
except ValueError as error:
    assert "['copies'] float32[16,8] cannot be put on" in str(error) and "belongs to another process" in str(error)
else:
    raise AssertionError("it was restored")
checkpoints.save(path + "2", got)
print("done", number)
"""


def run(program: str, count: int, path: Path, directory: Path) -> None:
    """Run a program in several processes of two devices each."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    environment = {**os.environ, "COREJAX_NUM_CPU_DEVICES": "2"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(number), str(count), str(port), str(path)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=directory,
        )
        for number in range(count)
    ]
    try:
        printed = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for number, (process, text) in enumerate(zip(running, printed, strict=True)):
        assert process.returncode == 0 and f"done {number}" in text, text


@pytest.mark.skipif(os.name == "nt", reason="renames onto directories")
def test_from_four_to_two_to_one(tmp_path: Path) -> None:
    run(SAVE, 4, tmp_path / "c", tmp_path)
    run(RESTORE, 2, tmp_path / "d", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "d", "d2"]
    for name, count in (("d", 4), ("d2", 2)):
        got = checkpoints.restore(tmp_path / name)
        for array in ("w", "model", "copies"):
            np.testing.assert_array_equal(got[array], WHOLE)
        np.testing.assert_array_equal(random.key_data(got["keys"]), random.key_data(random.split(random.key(0), 4)))
        assert got["mine"] == 0 and got["host"].tolist() == [0, 1, 2]
        assert checkpoints.describe(tmp_path / name).num_processes == count
        written = {p.name[:5] for p in (tmp_path / name).glob("*/*.safetensors")}
        assert written == {f"{n:05d}" for n in range(count)}
        checkpoints.verify(tmp_path / name)
