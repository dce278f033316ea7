"""`jax.Device`: a class that stands for jaxlib's, which libraries name in annotations when they are imported."""

from __future__ import annotations

from typing import Any

import corejax


class _LateClass(type):
    """The class of `Device`; instances and attributes are those of `corejax.Device`, whose use imports jaxlib."""

    def __instancecheck__(cls, instance: object) -> bool:
        return issubclass(instance.__class__, cls)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, corejax.Device)

    def __getattr__(cls, name: str) -> Any:
        return getattr(corejax.Device, name)

    def __dir__(cls) -> list[str]:
        return dir(corejax.Device)


class Device(metaclass=_LateClass):
    """A device, such as an element of `jax.devices()`."""
