"""Devices that this process does not have: for meshes that programs are compiled for, and looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from corejax.extend import BackendError


@dataclass(frozen=True)
class Topology:
    """Devices that are not there.

    Attributes:
        name: its sizes, `"8x8"`.
        platform: the devices' kind.
    """

    name: str
    platform: str

    @property
    def devices(self) -> list[CompileOnlyDevice]:
        """As many as the product of the sizes."""
        return [CompileOnlyDevice(self, i) for i in range(math.prod(map(int, self.name.split("x"))))]


@dataclass(frozen=True)
class CompileOnlyDevice:
    """A device that programs are compiled for and that this process does not have; equal ones are the same.

    Attributes:
        topology: that it is of.
        id: its number there.
    """

    topology: Topology
    id: int

    process_index = 0

    @property
    def platform(self) -> str:
        """Its kind."""
        return self.topology.platform

    device_kind = platform  # its model

    def memory_stats(self) -> None:
        """Nobody counts."""

    def __repr__(self) -> str:
        return f"CompileOnlyDevice(id={self.id}, topology={self.topology.name!r}, platform={self.platform!r})"


def is_absent(device: Any) -> bool:
    """Whether programs can be compiled for a device, and not run there."""
    return isinstance(device, CompileOnlyDevice)


def absent(what: str, device: CompileOnlyDevice) -> BackendError:
    """The error for what needs a device that is there."""
    return BackendError(
        f"{what}: {device!r} is not there; programs are compiled for the devices of a topology, and looked at "
        "(as_text, cost_analysis, memory_analysis, input_shardings, output_shardings). To run one, use a mesh of "
        "corejax.devices()"
    )
