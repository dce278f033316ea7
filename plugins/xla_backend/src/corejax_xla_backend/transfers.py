"""Guards of transfers between host and devices: which transfers are allowed, logged or refused in this thread."""

from __future__ import annotations

from typing import Any

from corejax.extend.messages import Restoring
from corejax_xla_backend.settings import DIRECTIONS, GUARD_LEVELS


class _Guard(Restoring):
    """A context that sets jaxlib's guards in this thread."""

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
        """Restore the earlier guards."""
        from corejax_xla_backend import _jaxlib

        _jaxlib.set_transfer_guards(self.earlier)


def _guard(name: str, level: str, directions: tuple[str, ...]) -> Restoring:
    """Return the context for a level of guards in some directions."""
    if level not in GUARD_LEVELS:
        raise ValueError(f"{name}: the levels are {', '.join(GUARD_LEVELS)}, got {level!r}")
    return _Guard(dict.fromkeys(directions, level))


def transfer_guard(new_val: str) -> Restoring:
    """Allow, log or refuse transfers in this thread, for a `with` block or a decorated function.

    Args:
        new_val: "allow" allows all transfers. "log" and "disallow" apply to implicit transfers: a NumPy array or a
            result of eager operations, which are on the host, is passed to a compiled function without `device_put`.
            "log_explicit" and "disallow_explicit" apply to all transfers.

    Raises:
        ValueError: the level is unknown.
    """
    return _guard("transfer_guard", new_val, DIRECTIONS)


def transfer_guard_host_to_device(new_val: str) -> Restoring:
    """Set `transfer_guard` for transfers from the host to devices only."""
    return _guard("transfer_guard_host_to_device", new_val, ("host_to_device",))


def transfer_guard_device_to_device(new_val: str) -> Restoring:
    """Set `transfer_guard` for transfers between devices only."""
    return _guard("transfer_guard_device_to_device", new_val, ("device_to_device",))


def transfer_guard_device_to_host(new_val: str) -> Restoring:
    """Set `transfer_guard` for transfers from devices to the host only; reading host memory is not a transfer."""
    return _guard("transfer_guard_device_to_host", new_val, ("device_to_host",))


def explicit_put() -> Restoring:
    """Mark transfers to devices in a `with` block as explicit."""
    return _Guard({"explicit_device_put": True})
