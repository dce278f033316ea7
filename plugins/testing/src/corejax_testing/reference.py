"""StableHLO's reference interpreter in a child process.

The interpreter refuses some operations with an error and aborts the process on others (custom calls, some empty
operands, integer division by zero). So it runs in a child process, which is restarted after each abort.
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


SECONDS = 120.0  # the interpreter is slow, starts slowly on a busy machine, and may loop for ever when XLA does not


class Interpreter:
    """A child process that interprets programs; `fatal` records the kinds of programs that aborted it."""

    def __init__(self) -> None:
        self.fatal: set[Any] = set()
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, program: str, operands: Sequence[Array]) -> list[Array]:
        """Return the results of a StableHLO module for the operands.

        Raises:
            NotApplicable: the interpreter refuses the program, with its own message, or aborts.
        """
        kind = _kind(program, operands)
        if kind in self.fatal:
            raise NotApplicable(_abort_message(program))
        with self._lock:
            try:
                answer = self._ask((program, [np.asarray(x) for x in operands]))
            except (EOFError, OSError, pickle.UnpicklingError):
                self.fatal.add(kind)
                self.close()
                raise NotApplicable(_abort_message(program)) from None
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
        """End the child process, if it runs."""
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
    """Return the names of the operations in a module that is printed in generic form."""
    return frozenset(re.findall(r'"([a-z_]+\.[\w.]+)"\(', program))


def _kind(program: str, operands: Sequence[Array]) -> Any:
    """Return a key of the properties that decide, as far as is known, whether a program aborts the interpreter."""
    empty = any(not x.size for x in operands) or "x0x" in program or "<0x" in program
    return operations(program), empty, tuple((x.dtype.name, x.dtype.kind in "iu" and not x.all()) for x in operands)


def _abort_message(program: str) -> str:
    calls = re.findall(r'call_target_name = "([^"]+)"', program)
    what = f"the custom call {calls[0]!r}" if calls else "this program"
    return f"the interpreter ends its process on {what}"


def _end_quietly() -> None:
    """Disable core files, on platforms that have them, for when the interpreter aborts."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve() -> None:
    """Run the child's loop: read a program and operands, write results or an error message."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep other output away from the pipe of the answers
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
