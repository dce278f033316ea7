"""`save_async`: the tree as it was, written by a thread whose errors are not lost."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkpoints


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Files are written when it is set."""
    from corejax_checkpoints import files

    opened, save_file = threading.Event(), files.save_file

    def wait_and_write(*args: Any, **options: Any) -> None:
        assert opened.wait(60)
        save_file(*args, **options)

    monkeypatch.setattr(files, "save_file", wait_and_write)
    return opened


def test_the_tree_as_it_was(tmp_path: Path, gate: threading.Event) -> None:
    x, mutable = jnp.arange(100_000.0), np.arange(100_000.0)
    saving = checkpoints.save_async(tmp_path / "c", {"x": x, "mutable": mutable})
    assert not saving.done() and repr(saving) == f"<Saving '{tmp_path}/c': writing>"
    with pytest.raises(TimeoutError, match=r"c is still being written after 0.01 s"):
        saving.wait(0.01)
    y = corejax.jit(lambda x: x * 0 - 1, donate_argnums=0)(x).block_until_ready()
    mutable[:] = -1
    gate.set()
    saving.wait()
    saving.wait()
    assert saving.done() and repr(saving) == f"<Saving '{tmp_path}/c': done>" and (y == -1).all()
    for got in checkpoints.restore(tmp_path / "c").values():
        np.testing.assert_array_equal(got, np.arange(100_000.0))


def test_one_after_the_other(tmp_path: Path, gate: threading.Event) -> None:
    first = checkpoints.save_async(tmp_path / "c", {"a": np.arange(1)})
    second = checkpoints.save_async(tmp_path / "d", {"a": np.arange(2)})
    with pytest.raises(FileExistsError, match=r"c.saving is being written by another save"):
        checkpoints.save_async(tmp_path / "c", {"a": np.arange(3)})
    gate.set()
    first.wait()
    second.wait()
    assert len(checkpoints.restore(tmp_path / "c")["a"]) == 1 and len(checkpoints.restore(tmp_path / "d")["a"]) == 2


def test_a_checkpoint_that_is_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_checkpoints import files

    checkpoints.save(tmp_path / "c", {"a": np.arange(3), "number": 1})
    opened = files.Files._open

    def replaced(*args: Any) -> Any:
        if checkpoints.describe(tmp_path / "c").leaves[1].value == 1:
            checkpoints.save(tmp_path / "c", {"a": np.arange(4), "number": 2}, overwrite=True)
        return opened(*args)

    monkeypatch.setattr(files.Files, "_open", replaced)
    got = checkpoints.restore(tmp_path / "c")
    assert got["number"] == 2 and got["a"].tolist() == [0, 1, 2, 3]


def test_many_threads_save_one_path(tmp_path: Path) -> None:
    """Some are refused, and none destroys what another writes."""
    checkpoints.save(tmp_path / "c", {"a": np.arange(1)})
    running = {}
    for n in range(1, 60):
        try:
            running[n] = checkpoints.save_async(tmp_path / "c", {"a": np.arange(n)}, overwrite=True)
        except FileExistsError as error:
            assert "is being written by another save" in str(error)
    for saving in running.values():
        saving.wait()
    assert len(checkpoints.restore(tmp_path / "c")["a"]) == max(running)
    checkpoints.verify(tmp_path / "c")
    assert [p.name for p in tmp_path.iterdir()] == ["c"] and len(list((tmp_path / "c").iterdir())) == 2


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"\['a'\] is <object"):
        checkpoints.save_async(tmp_path / "c", {"a": object()})
    (tmp_path / "d").mkdir()
    saving = checkpoints.save_async(tmp_path / "d" / "c", {"a": np.arange(3)}, metadata=None)
    saving.wait()
    with pytest.raises(FileExistsError, match="overwrite=True replaces it"):
        checkpoints.save_async(tmp_path / "d" / "c", {})


def test_a_failure_that_nobody_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_checkpoints import files

    def full(*args: Any, **options: Any) -> None:
        raise files.SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(files, "save_file", full)
    saving = checkpoints.save_async(tmp_path / "c", {"a": np.arange(3)})
    while not saving.done():
        time.sleep(0.001)
    with pytest.warns(UserWarning, match=r"c was not saved, and wait\(\) was not called: OSError\(28"):
        del saving
        gc.collect()
    assert not any(tmp_path.iterdir())
    heard = checkpoints.save_async(tmp_path / "c", {"a": np.arange(3)})
    with pytest.raises(OSError, match="No space left"):
        heard.wait()
    assert repr(heard).endswith("failed>")


PROGRAM = """
import sys
import numpy as np
from corejax import checkpoints

checkpoints.save_async(sys.argv[1], {"w": np.ones((50, 1 << 20), np.uint8), "v": np.arange(3)})
"""


def test_python_ends_when_it_is_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "c")], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert checkpoints.restore(tmp_path / "c")["v"].tolist() == [0, 1, 2]
    checkpoints.verify(tmp_path / "c")
