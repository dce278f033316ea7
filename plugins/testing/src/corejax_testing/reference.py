"""StableHLO's reference interpreter in a process of its own, which it may end.

The interpreter refuses some operations with an error and ends the process on others (custom calls, some empty
operands, integer division by zero). So it runs in a child that is started once and again after each such end.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from corejax_testing.outcomes import NotApplicable

Array = np.ndarray[Any, Any]


SECONDS = 120.0  # it is slow, starts slowly on a busy machine, and may loop for ever where XLA does not


class Interpreter:
    """A child that interprets programs; `fatal` keeps what has ended one, so that it is asked once."""

    def __init__(self) -> None:
        self.fatal: set[Any] = set()
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, program: str, operands: Sequence[Array]) -> list[Array]:
        """The results of a StableHLO module for these operands.

        Raises:
            NotApplicable: the interpreter does not know the program; with its words, or that it ended its process.
        """
        sort = _sort(program, operands)
        if sort in self.fatal:
            raise NotApplicable(_ended(program))
        with self._lock:
            try:
                answer = self._ask((program, [np.asarray(x) for x in operands]))
            except (EOFError, OSError, pickle.UnpicklingError):
                self.fatal.add(sort)
                self.close()
                raise NotApplicable(_ended(program)) from None
        if isinstance(answer, str):
            raise NotApplicable(f"the interpreter does not know the program: {answer}")
        return list(answer)

    def _ask(self, question: Any) -> Any:
        if self._child is None or self._child.poll() is not None:
            self._child = _start()
        assert self._child.stdin is not None and self._child.stdout is not None
        pickle.dump(question, self._child.stdin)
        self._child.stdin.flush()
        if not select.select([self._child.stdout], [], [], SECONDS)[0]:
            self.close()
            raise NotApplicable(f"the interpreter gives no answer within {SECONDS:.0f} s")
        return pickle.load(self._child.stdout)

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            self._child.kill()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            self._child.wait()
            self._child = None


def _start() -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "corejax_testing.reference"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths, "COREJAX_PLUGINS": "", "LLVM_DISABLE_SYMBOLIZATION": "1"},
    )  # fmt: skip


def operations(program: str) -> frozenset[str]:
    """Names of the operations in a module in generic form."""
    return frozenset(re.findall(r'"([a-z_]+\.[\w.]+)"\(', program))


def _sort(program: str, operands: Sequence[Array]) -> Any:
    """What decides, as far as is known, whether a program ends the process."""
    empty = any(not x.size for x in operands) or "x0x" in program or "<0x" in program
    return operations(program), empty, tuple((x.dtype.name, x.dtype.kind in "iu" and not x.all()) for x in operands)


def _ended(program: str) -> str:
    calls = re.findall(r'call_target_name = "([^"]+)"', program)
    what = f"the custom call {calls[0]!r}" if calls else "this program"
    return f"the interpreter ends its process on {what}"


def _end_quietly() -> None:
    """No core file when the interpreter ends the process, where the platform has them."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve() -> None:
    """The child's loop: a program and operands in, results or a sentence out."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed
    _end_quietly()
    from corejax_xla_backend import hlo

    while True:
        try:
            program, operands = pickle.load(questions)
        except EOFError:
            return
        try:
            answer: Any = [np.asarray(x) for x in hlo.interpret(program, operands)]
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        pickle.dump(answer, answers)
        answers.flush()


interpreter = Interpreter()
atexit.register(interpreter.close)

if __name__ == "__main__":
    serve()
