"""Whatever ends a save, the checkpoint that was there is whole, and the next save removes what was left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corejax import checkpoints

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals, and renames onto directories")


def start(program: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_at_every_step(tmp_path: Path) -> None:
    program = Path(__file__).with_name("crashing.py")
    done = subprocess.run([sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    new, replaced = (line.split() for line in done.stdout.splitlines())
    assert new[0] == "new" and int(new[1]) > int(new[2]) > 5, "crashes before and after the commit"
    assert replaced[0] == "replaced" and int(replaced[1]) > int(replaced[2]) > 10


LONG = """
import sys
import numpy as np
from corejax import checkpoints

checkpoints.save(sys.argv[1], {"w": np.ones((150, 1 << 20), np.uint8)}, overwrite=True)
"""


def writing(path: Path) -> bool:
    """Whether a file with numbers is being written."""
    try:
        return any(x.stat().st_size for x in path.with_name(path.name + ".saving").glob("*/*"))
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_numbers_are_written(tmp_path: Path, sent: signal.Signals) -> None:
    path = tmp_path / "c"
    checkpoints.save(path, {"w": np.arange(3), "step": 1})
    process = start(LONG, path)
    while not writing(path) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0, "it was saved before the signal came"
    assert checkpoints.restore(path)["step"] == 1
    checkpoints.verify(path)
    left = [p.name for p in tmp_path.iterdir()]
    if sent == signal.SIGINT:
        assert "KeyboardInterrupt" in errors and left == ["c"]
    else:
        assert sorted(left) == ["c", "c.saving"]
    checkpoints.save(path, {"step": 2}, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["c"] and checkpoints.restore(path) == {"step": 2}


def test_an_interrupt_between_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_checkpoints import files, saving

    written: list[Any] = []
    save_file = files.save_file

    def interrupted(tensors: Any, path: Any, metadata: Any) -> None:
        save_file(tensors, path, metadata=metadata)
        written.append(path)
        if len(written) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(saving, "FILE_BYTES", 10)
    monkeypatch.setattr(files, "save_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(tmp_path / "c", [np.arange(10), np.arange(10), np.arange(10)])
    assert len(written) == 2 and not any(tmp_path.iterdir())


FULL = """
import resource, signal, sys
import numpy as np
from corejax import checkpoints

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoints.save(sys.argv[1], {"w": np.zeros(1_000_000)}, overwrite=True)
except OSError as error:
    print(type(error).__name__, error.errno, error, *error.__notes__)
"""


def test_no_space(tmp_path: Path) -> None:
    """A limit of this process stands for a disk that is full: it is another error number of the same call."""
    path = tmp_path / "c"
    checkpoints.save(path, {"step": 1})
    said, errors = start(FULL, path).communicate(timeout=120)
    assert "OSError 27 [Errno 27] File too large" in said, errors
    assert f"corejax.checkpoints: {path} was not saved, the earlier checkpoint is intact" in said
    assert [p.name for p in tmp_path.iterdir()] == ["c"] and checkpoints.restore(path) == {"step": 1}


def test_a_file_system_that_says_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from corejax_checkpoints import files

    def full(*args: Any, **options: Any) -> None:
        raise files.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(files, "save_file", full)
    with pytest.raises(OSError, match=r"No space left on device: .*safetensors") as caught:
        checkpoints.save(tmp_path / "c", {"w": np.zeros(3)})
    assert caught.value.errno == errno.ENOSPC and not any(tmp_path.iterdir())
    assert caught.value.__notes__ == [f"corejax.checkpoints: {tmp_path / 'c'} was not saved"]


HOLDING = """
import sys
from pathlib import Path
from corejax_checkpoints import preparing

with preparing.prepared(Path(sys.argv[1])):
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_two_saves_of_one_path(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path / "c")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    with pytest.raises(FileExistsError, match=r"c.saving is being written by another save; wait until that has ended"):
        checkpoints.save(tmp_path / "c", {"a": 1})
    assert (tmp_path / "c.saving").exists(), "it is the other's"
    (tmp_path / "c.saving" / "id").touch()
    checkpoints.save(tmp_path / "d", {"a": 1})
    assert (tmp_path / "c.saving").exists(), "it is running"
    process.kill()
    process.communicate()
    (tmp_path / "mine.saving").mkdir()
    checkpoints.save(tmp_path / "e", {"a": 1})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "e", "mine.saving"], "what crashed beside it is removed"
    checkpoints.save(tmp_path / "c", {"a": 1})


def test_what_is_left_inside_of_a_checkpoint(tmp_path: Path) -> None:
    """Directories of saves that crashed are removed, and the user's own stay."""
    path = tmp_path / "c"
    checkpoints.save(path, {"a": 1})
    (path / "0123456789abcdef").mkdir()
    (path / "lock").touch()
    (path / "plots").mkdir()
    checkpoints.save(path, {"a": 2}, overwrite=True)
    assert sorted(p.name for p in path.iterdir() if len(p.name) != 16) == ["index.json", "plots"]
    assert not (path / "0123456789abcdef").exists() and len(list(path.iterdir())) == 3
