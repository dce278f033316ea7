"""The demonstration, made short: it learns, draws, and says by its exit status whether it learnt enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

TRAIN = Path(__file__).parents[2] / "examples" / "digits" / "train.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TRAIN), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_it_learns(tmp_path: Path) -> None:
    picture = tmp_path / "predictions.png"
    done = run("--epochs", "12", "--picture", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1438 images to learn from, 359 to test with" in done.stdout
    assert str(picture) in done.stdout.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000


def test_it_says_when_it_did_not(tmp_path: Path) -> None:
    done = run("--epochs", "1", "--rate", "1e-6", "--picture", str(tmp_path / "predictions.png"))
    assert done.returncode == 1
    assert "not above 96%" in done.stdout
