"""Transfers between host and devices: which of them are allowed, told, or refused, in this thread."""

from __future__ import annotations

from typing import Any

from corejax.extend.messages import Restoring
from corejax_xla_backend.settings import DIRECTIONS, GUARD_LEVELS


class _Guard(Restoring):
    """Values of jaxlib's guards in this thread."""

    __slots__ = ("earlier", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.earlier: dict[str, Any] = {}

    def _recreate_cm(self) -> _Guard:
        return _Guard(self.values)

    def __enter__(self) -> None:
        from corejax_xla_backend import _jaxlib

        self.earlier = _jaxlib.transfer_guards(self.values)
        _jaxlib.set_transfer_guards(self.values)

    def restore(self) -> None:
        """As they were."""
        from corejax_xla_backend import _jaxlib

        _jaxlib.set_transfer_guards(self.earlier)


def _guard(name: str, level: str, directions: tuple[str, ...]) -> Restoring:
    if level not in GUARD_LEVELS:
        raise ValueError(f"{name}: the levels are {', '.join(GUARD_LEVELS)}, got {level!r}")
    return _Guard(dict.fromkeys(directions, level))


def transfer_guard(new_val: str) -> Restoring:
    """What becomes of transfers in this thread, for a `with` block or a decorated function.

    Args:
        new_val: "allow"; "log" or "disallow", of those that nobody asked for by `device_put` (a NumPy array or a result
            of eager operations, which are on the host, given to a compiled function); "log_explicit" or
            "disallow_explicit", of all.

    Raises:
        ValueError: there is no such level.
    """
    return _guard("transfer_guard", new_val, DIRECTIONS)


def transfer_guard_host_to_device(new_val: str) -> Restoring:
    """As `transfer_guard`, in this direction only."""
    return _guard("transfer_guard_host_to_device", new_val, ("host_to_device",))


def transfer_guard_device_to_device(new_val: str) -> Restoring:
    """As `transfer_guard`, in this direction only."""
    return _guard("transfer_guard_device_to_device", new_val, ("device_to_device",))


def transfer_guard_device_to_host(new_val: str) -> Restoring:
    """As `transfer_guard`, in this direction only; reading what is in the host's memory anyway is no transfer."""
    return _guard("transfer_guard_device_to_host", new_val, ("device_to_host",))


def explicit_put() -> Restoring:
    """What is put on a device inside of a `with` block was asked for."""
    return _Guard({"explicit_device_put": True})
