"""`corejax.memory`: memories of devices by names that do not depend on the platform."""

from __future__ import annotations

import enum
from typing import Any

from corejax.extend import backends
from corejax_xla_backend.sharding import Sharding

__all__ = ["Space"]


class Space(enum.Enum):
    """A kind of memory, as a place for `device_put`: arrays stay on their devices and move to this memory.

    Attributes:
        Device: the devices' default memory.
        Host: memory of the host that devices read directly (`pinned_host`).
        Any: the memory that an array is in.
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()


def in_space(sharding: Sharding, space: Space) -> Sharding:
    """Return the sharding in a memory of its devices.

    Raises:
        ValueError: the devices have no memory of that kind.
    """
    if space is Space.Any:
        return sharding
    place: Any = sharding
    moved: Sharding = place.with_memory_kind("pinned_host" if space is Space.Host else None)
    return moved


def other_memory_of(buffer: Any) -> str | None:
    """Return the kind of memory that a buffer is in; None for its device's default memory."""
    backend: Any = None if buffer is None else backends.of_buffer(buffer)
    return backend.other_memory_of(buffer) if hasattr(backend, "other_memory_of") else None
