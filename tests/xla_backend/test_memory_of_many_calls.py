"""A process that calls and compiles for long does not grow."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("jaxlib")

# Prints MiB that the process grew by. The first compilations are not counted: the allocator keeps what they freed, and
# the latest programs are kept.
PROGRAM = """
import gc, sys
from pathlib import Path

import corejax
import corejax.numpy as jnp

def memory():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

calls, compilations = map(int, sys.argv[1:])
x = jnp.ones(16)
f = corejax.jit(lambda x, y: x * y + 1)
for count in (100, calls):
    before = memory()
    for _ in range(count):
        y = f(x, x)
print(memory() - before)
for count in (max(compilations // 10, 20), compilations):
    before = memory()
    for i in range(count):
        corejax.jit(lambda x: jnp.sin(x) * i + jnp.sum(x))(x)
print(memory() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("calls", "compilations"), [(10_000, 60), pytest.param(100_000, 2000, marks=pytest.mark.slow)])
def test_nothing_is_left_behind(calls: int, compilations: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(calls), str(compilations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    of_calls, of_compilations = map(float, done.stdout.split())
    assert of_calls < 2
    assert of_compilations < 8  # once, at any time, the allocator takes 5; a program has a quarter
