"""Processes that save one path at the same time: each save is done or refused, and never anything else."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

from corejax import checkpoints

PROGRAM = textwrap.dedent(
    """
    import json, sys, time
    import numpy as np
    from corejax import checkpoints
    path, done, refused, until = sys.argv[1], 0, 0, time.monotonic() + 1.5
    checkpoints.save(path + sys.argv[2], {"a": np.arange(3)})  # all is imported
    while time.monotonic() < until or not done:
        try:
            checkpoints.save(path, {"a": np.arange(3)}, overwrite=True)
            done += 1
        except FileExistsError as error:
            assert "is being written by another save" in str(error), error
            refused += 1
    print(json.dumps([done, refused]))
    """
)


def test_saves_are_done_or_refused(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "c"), str(n)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for process in processes:
        said, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        done, _refused = json.loads(said)
        assert done
    np.testing.assert_array_equal(checkpoints.restore(tmp_path / "c")["a"], np.arange(3))
    checkpoints.verify(tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "c0", "c1", "c2"]


def test_directories_of_others_stay(tmp_path: Path) -> None:
    """One that is called as a save's is, and has a lock of its own."""
    (tmp_path / "theirs.saving").mkdir()
    (tmp_path / "theirs.saving" / "lock").write_text("theirs")
    checkpoints.save(tmp_path / "c", {"a": np.arange(3)})
    assert (tmp_path / "theirs.saving" / "lock").read_text() == "theirs"
