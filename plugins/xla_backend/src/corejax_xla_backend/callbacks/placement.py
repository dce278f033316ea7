"""Where callbacks run: on the host of the one device that a program runs on."""

from __future__ import annotations

from typing import Any


def check_placement(api: str, sharding: Any) -> None:
    """Accept shardings of one device, which say nothing.

    Raises:
        NotImplementedError: it is of several devices, or of none that one can tell.
    """
    if sharding is not None and len(getattr(sharding, "device_set", ())) != 1:
        raise NotImplementedError(f"{api}: sharding is None or of one device, got {sharding!r}")
