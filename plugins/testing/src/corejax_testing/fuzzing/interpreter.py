"""StableHLO's reference interpreter, in a process of its own: some programs it cannot refuse, and ends the process.

Programs travel as text, so only primitives of installed plugins take part.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import select
import struct
import subprocess
import sys
from typing import Any, BinaryIO

from corejax_testing.arrays import Array
from corejax_testing.outcomes import NotApplicable

SECONDS = 20.0  # it is slow, and may loop for ever where XLA does not


class Interpreter:
    """The other process, started when it is first needed and again when it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, text: str, values: tuple[Array, ...]) -> list[Array]:
        """What a program computes.

        Args:
            text: the program, without constants.
            values: its operands.

        Raises:
            NotApplicable: the interpreter does not know an operation, ended, or took too long.
        """
        if importlib.util.find_spec("corejax_xla_backend") is None:
            raise NotApplicable("nothing lowers programs")
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "corejax_testing.fuzzing.interpreter"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, (text, values))
            if not select.select([process.stdout], [], [], SECONDS)[0]:
                raise EOFError
            fine, answer = _receive(process.stdout)
        except (EOFError, OSError):
            self.close()
            raise NotApplicable("the interpreter ended, or took too long") from None
        if not fine:
            raise NotApplicable(f"the interpreter does not know the program: {answer}")
        return list(answer)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:
                        continue
            process.wait()


def _send(stream: BinaryIO | Any, message: Any) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    (length,) = struct.unpack("<q", head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _interpret(text: str, values: tuple[Array, ...]) -> list[Array]:
    import numpy as np

    import corejax
    from corejax.extend import dtypes, parse_jaxpr
    from corejax_xla_backend import hlo

    program: Any = parse_jaxpr(text)
    jaxpr = getattr(program, "jaxpr", program)
    if any(dtypes.is_extended(v.aval.dtype) for v in (*jaxpr.invars, *jaxpr.outvars)):
        raise NotImplementedError("keys, whose dtypes do not travel")
    lowered = corejax.jit(lambda *xs: corejax.eval_jaxpr(jaxpr, (), xs)).lower(*values)
    if "stablehlo.custom_call" in lowered.as_text():
        raise NotImplementedError("custom calls")
    return [np.asarray(x) for x in hlo.reference_eval(lowered, *values)]


def serve() -> None:
    """Answer on standard output, which nobody else may write to, until standard input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from corejax.extend import load_everything

    load_everything()
    while True:
        try:
            text, values = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: Any = (True, _interpret(text, values))
        except Exception as error:
            answer = (False, f"{type(error).__name__}: {error}")
        _send(out, answer)


if __name__ == "__main__":
    serve()
