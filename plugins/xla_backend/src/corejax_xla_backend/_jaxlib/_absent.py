"""Devices that this process does not have, for meshes that programs are compiled for without being run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from corejax.extend import BackendError


@dataclass(frozen=True)
class Topology:
    """A grid of absent devices, to compile programs for.

    Attributes:
        name: the sizes of the grid, such as `"8x8"`.
        platform: the platform of the devices.
    """

    name: str
    platform: str

    @property
    def devices(self) -> list[CompileOnlyDevice]:
        """The devices of the topology, as many as the product of its sizes."""
        return [CompileOnlyDevice(self, i) for i in range(math.prod(map(int, self.name.split("x"))))]


@dataclass(frozen=True)
class CompileOnlyDevice:
    """An absent device that programs can be compiled for; devices of equal topology and id are equal.

    Attributes:
        topology: the topology that contains the device.
        id: the device's number in the topology.
    """

    topology: Topology
    id: int

    process_index = 0

    @property
    def platform(self) -> str:
        """The platform of the topology."""
        return self.topology.platform

    device_kind = platform

    def memory_stats(self) -> None:
        """Return None: an absent device has no memory statistics."""

    def __repr__(self) -> str:
        return f"CompileOnlyDevice(id={self.id}, topology={self.topology.name!r}, platform={self.platform!r})"


def is_absent(device: Any) -> bool:
    """Return whether programs can only be compiled for a device, not run on it."""
    return isinstance(device, CompileOnlyDevice)


def absent(what: str, device: object) -> BackendError:
    """Return the error for an operation that needs a real device."""
    return BackendError(
        f"{what}: {device!r} is not there; programs for the devices of a topology can be compiled and inspected "
        "(as_text, cost_analysis, memory_analysis, input_shardings, output_shardings). To run one, use a mesh of "
        "corejax.devices()"
    )
