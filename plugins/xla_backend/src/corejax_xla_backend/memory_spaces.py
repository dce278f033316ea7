"""`corejax.memory`: the memories of devices, without the names that platforms have for them."""

from __future__ import annotations

import enum
from typing import Any

from corejax.extend import backends
from corejax_xla_backend.sharding import Sharding

__all__ = ["Space"]


class Space(enum.Enum):
    """Memory that `device_put` takes for a place: arrays stay on their devices and change the memory.

    Attributes:
        Device: the devices' default memory.
        Host: the host's, which devices read directly (`pinned_host`).
        Any: wherever they are.
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()


def in_space(sharding: Sharding, space: Space) -> Sharding:
    """The sharding in a memory of its devices.

    Raises:
        ValueError: they have none of that kind.
    """
    if space is Space.Any:
        return sharding
    moved: Any = sharding.with_memory_kind("pinned_host" if space is Space.Host else None)  # type: ignore[attr-defined]
    return moved  # type: ignore[no-any-return]


def other_memory_of(buffer: Any) -> str | None:
    """The kind of memory that a buffer is in, if it is not its device's default one."""
    backend: Any = None if buffer is None else backends.of_buffer(buffer)
    return backend.other_memory_of(buffer) if hasattr(backend, "other_memory_of") else None  # type: ignore[no-any-return]
