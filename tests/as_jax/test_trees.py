"""Pytrees of programs written for JAX: the same program on corejax and on JAX, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(__file__).parent / "program_with_trees.py")


@pytest.mark.engine  # structures of compiled and exported programs
def test_trees_are_those_of_jax() -> None:
    pytest.importorskip("jax")
    # Programs that XLA has not optimised, or that come from a cache, cannot be serialized.
    kept = {name: x for name, x in os.environ.items() if not re.match("JAX_|.*_MOST_OPTIMIZATIONS", name)}
    environment = kept | {"JAX_PLATFORMS": "cpu"}
    outputs = []
    for options in (("-m", "corejax_as_jax"), ()):
        command = [sys.executable, *options, PROGRAM]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert result.returncode == 0, result.stderr
        outputs.append(result.stdout.splitlines())
    assert outputs[0] == outputs[1]
