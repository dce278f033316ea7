"""`corejax.memory`: the memories of devices, without the names that platforms have for them."""

from __future__ import annotations

import enum
from typing import Any

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
