"""Eager programs that come often and take NumPy long: compiled in the background, for CPUs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    Array,
    ClosedJaxpr,
    backends,
    checks_values,
    compiles_frequent_programs,
    config,
)
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._jit.tiers import enqueue
from corejax_xla_backend._programs import compiled, repeated

_IMPORTED_AFTER = 1.0  # seconds on NumPy, before jaxlib is imported for nothing else: it takes 100 MiB
_Run = Callable[[list[Array]], "list[Array] | None"]


@compiles_frequent_programs
def _begin(program: ClosedJaxpr, name: str, spent: float, ready: Callable[[_Run], None]) -> bool:
    if "jaxlib" not in sys.modules and spent < _IMPORTED_AFTER:
        return False
    settings = config.trace_key()

    def compile_now() -> None:
        if config.disable_jit or checks_values() or config.trace_key() != settings:
            return
        target = backends.find("xla")
        if target.backend.default_device(target.platform).platform == "cpu":
            compiled(program, name, target)
            ready(_runs(program, name, target))

    enqueue(compile_now)
    return True


def _runs(program: ClosedJaxpr, name: str, target: Any) -> _Run:
    call = repeated(program, name, target)
    process = os.getpid()

    def runs(arrays: Sequence[Array]) -> list[Array] | None:
        if callbacks.running or os.getpid() != process:  # it waits for this call; its threads are not in this process
            return None
        outs: list[Array] = call(*arrays)
        for out in outs:
            out.block_until_ready()  # a process that is forked meanwhile could not
        return outs

    return runs
