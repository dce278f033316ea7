"""What needs a process of its own: two devices (it has as many as it began with), and one without jax."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jaxlib")


@pytest.mark.parametrize(("file", "count"), [("two_devices.py", 5), ("without_jax.py", 6)])
def test_alone(file: str, count: int) -> None:
    script = Path(__file__).with_name(file)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    passed = (f"{count} passed", f"{count - 1} passed, 1 skipped")  # where jax is not installed
    assert done.returncode == 0 and any(words in done.stdout for words in passed), done.stdout + done.stderr
