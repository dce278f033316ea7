"""The programs of examples/bridges run, and the frameworks agree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.from_source import EXAMPLES, ROOT, environment

pytest.importorskip("torch")
pytest.importorskip("flax")
pytest.importorskip("corejax_to_torch")
pytest.importorskip("corejax_to_jax")


def printed(program: str, tmp_path: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "bridges" / program, *arguments],
        env=environment(EXAMPLES, tmp_path / "site"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_models_have_the_same_loss_curve(tmp_path: Path) -> None:
    text = printed("train.py", tmp_path, "--epochs", "1")
    found = dict(re.findall(r"the curves of corejax and (\w+) differ by (\S+) at most", text))
    assert found.keys() == {"flax", "torch"} and max(map(float, found.values())) < 1e-4, text


def test_one_kernel_in_three_frameworks(tmp_path: Path) -> None:
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("no C++ compiler here")
    text = printed("kernel.py", tmp_path)
    assert [line.partition(":")[0] for line in text.splitlines()[-3:]] == ["corejax", "jax", "torch"], text
