"""Ctrl-C while jaxlib is imported: an extension module that is initialised a second time ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("jaxlib")

PROGRAM = """
import signal, sys
import corejax

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process may ignore interrupts
waiting = [sys.argv[1]]

def interrupt(event, args):
    if event == "import" and waiting and args[0] == waiting[0]:
        waiting.clear()
        signal.raise_signal(signal.SIGINT)

sys.addaudithook(interrupt)
try:
    corejax.jit(lambda x: x + 1)(1.0)
    print("not interrupted")
except KeyboardInterrupt:
    print(float(corejax.jit(lambda x: x + 1)(1.0)), waiting)
"""


@pytest.mark.parametrize("module", ["jaxlib._jax", "jaxlib._hlo", "jaxlib.mlir"])
def test_a_process_is_usable_after_an_interrupted_import(module: str) -> None:
    child = subprocess.run([sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, timeout=120)
    assert (child.returncode, child.stdout.strip()) == (0, "2.0 []"), child.stderr[-2000:]
