"""The interface of a corejax backend, implemented with NumPy."""

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
from corejax.extend.devices import Device
from corejax_numpy_backend.program import Program, program_of


@dataclass(unsafe_hash=True)
class NumpyDevice:
    """The host CPU as a device.

    Attributes:
        id, platform, device_kind: the attributes of every device.
    """

    id: int = 0
    platform: str = "cpu"
    device_kind: str = f"NumPy {np.__version__}"

    def memory_stats(self) -> None:
        """Return None, because memory is not tracked."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """A value on the device: a read-only NumPy array."""

    value: np.ndarray[Any, Any]


class NumpyExecutable:
    """A program that runs step by step.

    Attributes:
        calls_python: True, because each step calls a Python function.
    """

    calls_python = True

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Run the program and return its results.

        NumPy's warnings are disabled, because StableHLO defines the results of division by zero and overflow. Rules
        run like eager operations. Nested programs, such as a jitted function called in a loop's body, use this backend
        as well.
        """
        with backends.running(NUMPY), set_current_trace(bottom_trace()), np.errstate(all="ignore"):
            return [Buffer(value) for value in self._program([b.value for b in buffers])]

    def as_text(self) -> str:
        """Return the program as text, one line per step."""
        return str(self._program)

    def cost_analysis(self) -> dict[str, float]:
        """Return the number of steps."""
        return {"steps": len(self._program.steps)}

    def memory_analysis(self) -> dict[str, int]:
        """Return the bytes of arguments and results."""
        sizes = [sum(aval.nbytes for aval in avals) for avals in (self._program.in_avals, self._program.out_avals)]
        return dict(zip(("argument", "output"), sizes, strict=True))


class NumpyBackend(Backend):
    """A backend with one device, whose values are NumPy arrays and whose programs run synchronously."""

    name = "numpy"
    capabilities = Capabilities(platforms=("cpu",))
    buffer_type = Buffer
    device_type = NumpyDevice

    def devices(self, platform: str | None = None) -> list[NumpyDevice]:
        """Return the single device."""
        if platform not in (None, "cpu"):
            raise BackendError(f"backend 'numpy' has no platform {platform!r}, only 'cpu'")
        return [_DEVICE]

    def put(self, value: Any, aval: ShapedArray, device: Device | None = None) -> Buffer:
        """Wrap the value without a copy, because it is read-only."""
        return value if isinstance(value, Buffer) else Buffer(value)

    def fetch(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return the value without a copy."""
        return buffer.value

    def device_of(self, buffer: Buffer) -> NumpyDevice:
        """Return the single device."""
        return _DEVICE

    def compile(
        self, closed: ClosedJaxpr, *, name: str, platform: str | None = None, **options: Any
    ) -> NumpyExecutable:
        """Look up all rules now, so that a missing rule raises before anything runs."""
        return NumpyExecutable(program_of(closed))


_DEVICE = NumpyDevice()
NUMPY = NumpyBackend()
