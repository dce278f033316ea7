"""How many Python functions an eager call runs: what its speed hangs on, without a clock.

Counted in a process of its own: a plugin that another test has used (references, for one) adds calls of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import corejax
import corejax.numpy as jnp

X = jnp.arange(8.0)
Y = X * 2
GRADIENT = corejax.grad(lambda x: jnp.sum(jnp.sin(x) * 2))
counts = {}
for name, call in {"add": lambda: X + Y, "sin": lambda: jnp.sin(X), "grad": lambda: GRADIENT(X)}.items():
    for _ in range(10):
        call()
    count = 0

    def profile(frame, event, argument):
        global count
        count += event == "call"

    sys.setprofile(profile)
    call()
    sys.setprofile(None)
    counts[name] = count - 1  # without that of `call` itself
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout))


@pytest.mark.parametrize(("name", "most"), [("add", 4), ("sin", 4), ("grad", 190)])
def test_calls(counts: dict[str, int], name: str, most: int) -> None:
    assert counts[name] <= most
