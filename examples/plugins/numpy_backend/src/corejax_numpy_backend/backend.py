"""What corejax asks of a backend, answered by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax.extend import (
    Backend,
    BackendError,
    Capabilities,
    ClosedJaxpr,
    ShapedArray,
    backends,
    bottom_trace,
    set_current_trace,
)
from corejax_numpy_backend.program import Program, program_of


@dataclass(frozen=True)
class NumpyDevice:
    """The machine that Python runs on.

    Attributes:
        id, platform, device_kind: as of every device.
    """

    id: int = 0
    platform: str = "cpu"
    device_kind: str = f"NumPy {np.__version__}"

    def memory_stats(self) -> None:
        """Nobody counts."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """A value on the device: a NumPy array that nobody writes to."""

    value: np.ndarray[Any, Any]


class NumpyExecutable:
    """A program that runs step by step.

    Attributes:
        calls_python: it does nothing else.
    """

    calls_python = True

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """The results, computed at once.

        NumPy's warnings are silent: division by zero and overflow give what StableHLO says. Rules run as eager
        operations do, and programs inside this one (of a loop's body that calls a jitted function, say) come here too.
        """
        with backends.running(NUMPY), set_current_trace(bottom_trace()), np.errstate(all="ignore"):
            return [Buffer(value) for value in self._program([b.value for b in buffers])]

    def as_text(self) -> str:
        """One step to a line."""
        return str(self._program)

    def cost_analysis(self) -> dict[str, float]:
        """How many steps there are."""
        return {"steps": len(self._program.steps)}

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments and results."""
        sizes = [sum(aval.nbytes for aval in avals) for avals in (self._program.in_avals, self._program.out_avals)]
        return dict(zip(("argument", "output"), sizes, strict=True))


class NumpyBackend(Backend):
    """One device, on which values are NumPy arrays and nothing waits."""

    name = "numpy"
    capabilities = Capabilities(platforms=("cpu",))
    buffer_type = Buffer
    device_type = NumpyDevice

    def devices(self, platform: str | None = None) -> list[NumpyDevice]:
        """The one device."""
        if platform not in (None, "cpu"):
            raise BackendError(f"backend 'numpy' has no platform {platform!r}, only 'cpu'")
        return [_DEVICE]

    def put(self, value: Any, aval: ShapedArray, device: NumpyDevice | None = None) -> Buffer:
        """No copy: nobody writes to the value."""
        return value if isinstance(value, Buffer) else Buffer(value)

    def fetch(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """No copy either."""
        return buffer.value

    def device_of(self, buffer: Buffer) -> NumpyDevice:
        """The one device."""
        return _DEVICE

    def compile(self, closed: ClosedJaxpr, *, name: str, platform: str | None = None) -> NumpyExecutable:
        """Every rule is looked up now, so that a missing one is told before anything runs."""
        return NumpyExecutable(program_of(closed))


_DEVICE = NumpyDevice()
NUMPY = NumpyBackend()
