"""Programs that PyTorch keeps from another process are not confused with those of this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import corejax
from corejax.extend import find_primitive

torch = pytest.importorskip("torch")
pytest.importorskip("corejax_to_torch")

# Functions with the same name and the same types, as in a file that its author changes between two runs.
PROGRAM = """
import sys, torch, corejax

f = {"first": lambda x: x @ x, "second": lambda x: x @ x.T}[sys.argv[1]]
x = torch.arange(4.0).reshape(2, 2)
bridged = corejax.to_torch(f, as_kernel=sys.argv[2] == "True")
assert torch.equal(torch.compile(bridged, fullgraph=True)(x), f(x)), sys.argv
"""


@pytest.mark.parametrize("as_kernel", [False, True])
def test_the_cache_of_compiled_programs(as_kernel: bool, tmp_path: Path) -> None:
    for which in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, which, str(as_kernel)],
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_a_key_of_another_process() -> None:
    corejax.to_torch(find_primitive("sin"))  # defines the operators
    with pytest.raises(LookupError, match=r"to_torch: sin: .* of another process; bridge and export it in this one"):
        torch.ops.corejax.call([torch.ones(2)], "sin#elsewhere")
