"""The digits, learnt by several devices and processes, to the numbers of one."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def learnt(path: Path, *options: str) -> list[float]:
    """Loss and accuracy after two epochs."""
    command = [sys.executable, "examples/digits/train.py", "--epochs", "2", "--picture", str(path / "p.png"), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: the goal is not reached
    (*_, last) = re.findall(r"loss ([\d.]+), .* test ([\d.]+)%", done.stdout)
    return [float(x) for x in last]


@pytest.mark.slow  # tests/parallel/test_sharded_transformer.py trains on devices, to the numbers of one
def test_devices(tmp_path: Path) -> None:
    assert learnt(tmp_path, "--devices", "4") == pytest.approx(learnt(tmp_path), rel=1e-2)
    assert (tmp_path / "p.png").exists()


@pytest.mark.slow  # tests/checkpoints has what is killed, and what goes from some devices to others
def test_going_on(tmp_path: Path) -> None:
    """A training that is killed after an epoch ends as one that is not, on other devices."""
    save = ["--checkpoint", str(tmp_path / "c")]
    command = [sys.executable, "examples/digits/train.py", "--epochs", "2", "--picture", str(tmp_path / "p.png"), *save]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not (tmp_path / "c").exists() and running.poll() is None:
        time.sleep(0.001)
    running.kill()
    running.wait()
    done = subprocess.run([*command, "--devices", "4"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert re.search("goes on after epoch [12]", done.stdout), done.stderr
    (accuracy,) = re.findall(r"test accuracy ([\d.]+)%", done.stdout)
    assert float(accuracy) == pytest.approx(learnt(tmp_path)[1], abs=1)


@pytest.mark.slow
def test_processes(tmp_path: Path) -> None:
    shared_out = learnt(tmp_path, "--processes", "2", "--devices", "2")
    assert shared_out == pytest.approx(learnt(tmp_path), rel=1e-2)


def test_a_batch_that_does_not_divide(tmp_path: Path) -> None:
    command = [sys.executable, "examples/digits/train.py", "--batch", "30", "--devices", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1 and "--batch 30 is no multiple" in done.stderr
