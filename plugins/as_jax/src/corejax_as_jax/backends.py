"""`jax.extend.backend`."""

from __future__ import annotations

from typing import Any

import corejax


class Client:
    """A platform with its devices."""

    def __init__(self, platform: str | None) -> None:
        self._devices: list[Any] = corejax.devices(platform)
        self.platform: str = self._devices[0].platform

    def devices(self) -> list[Any]:
        """Return the devices."""
        return self._devices

    def local_devices(self) -> list[Any]:
        """Return the devices of this process."""
        return [d for d in self._devices if d.process_index == corejax.process_index()]

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self._devices)

    def process_index(self) -> int:
        """Return the number of this process."""
        return int(corejax.process_index())


def get_backend(platform: str | None = None) -> Client:
    """Return a platform, by default the default one."""
    return Client(platform)


def backends() -> dict[str, Client]:
    """Return the platforms with devices."""
    client = Client(None)
    return {client.platform: client} if client.platform == "cpu" else {client.platform: client, "cpu": Client("cpu")}


def get_default_device() -> Any:
    """Return the device of new arrays."""
    return corejax.devices()[0]


def clear_backends() -> None:
    """Clear the caches of compiled programs."""
    corejax.clear_caches()
