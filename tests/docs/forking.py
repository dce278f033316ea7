"""A process that has imported corejax, and forks for each program that is to run: importing would be half of its time.

The process is no test's: it has no backend and no threads of XLA's, which a fork would not take along.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

IMPORTED = ("corejax", "corejax.numpy", "corejax.lax", "corejax.random", "corejax.nn", "numpy", "json", "logging")
IMPORTED += ("jaxlib.xla_client", "jaxlib.mlir.ir", "jaxlib.mlir.dialects.stablehlo", "jaxlib.mlir.dialects.func")


class Done(NamedTuple):
    """How a program ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Forking:
    """Runs programs, each in a process of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, program: Path) -> Done:
        """Run it as `python program` would be, in its folder; `program.out` and `program.err` are what it prints."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(program, file=self.process.stdin, flush=True)
        status = json.loads(self.process.stdout.readline())
        return Done(status, *(program.with_suffix(suffix).read_text() for suffix in (".out", ".err")))

    def end(self) -> None:
        """Let the process end."""
        self.process.communicate()


def _run(program: Path) -> Any:
    """In the fork: become the program."""
    import runpy

    os.chdir(program.parent)
    for number, suffix in (1, ".out"), (2, ".err"):
        opened = os.open(program.with_suffix(suffix), os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(opened, number)
    sys.argv[:] = [str(program)]
    sys.path[0] = str(program.parent)
    runpy.run_path(str(program), run_name="__main__")


def _serve() -> None:
    for name in IMPORTED:
        __import__(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.stdin = open(os.devnull)  # noqa: SIM115
            return _run(Path(line.strip()))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps(status), flush=True)
    return None


if __name__ == "__main__":
    _serve()
