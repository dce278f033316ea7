"""`show` and `verify` of a primitive whose plugin is switched off say so, and how to switch it on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

OFF = (
    "Error: there is no plugin and no primitive named 'cholesky'; it is of plugin 'linalg' (corejax-linalg 0.1.0), "
    "which is switched off by COREJAX_PLUGINS=-linalg (unset that to use it)"
)


@pytest.mark.parametrize("command", ["show", "verify"])
def test_the_message_names_the_setting(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "corejax", command, "cholesky"],
        env={**os.environ, "COREJAX_PLUGINS": "-linalg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.splitlines()[-1] == OFF and "Traceback" not in done.stderr
