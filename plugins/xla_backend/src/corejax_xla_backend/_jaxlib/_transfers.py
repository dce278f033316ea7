"""jaxlib's guards of transfers, which its C++ consults in each thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._probe import core

_guards = core.guard_lib if hasattr(core, "guard_lib") else core.transfer_guard_lib
_ALL = "host_to_device", "device_to_device", "device_to_host", "explicit_device_put"


def transfer_guards(names: Iterable[str] = _ALL) -> dict[str, Any]:
    """Some of this thread's: direction -> level, ``None`` where none is set; ``explicit_device_put``: whether what is
    put was asked for.
    """
    state = _guards.thread_local_state()
    found = {name: getattr(state, name) for name in names}
    return {name: x if x is None or type(x) is bool else x.name.lower() for name, x in found.items()}


def set_transfer_guards(values: dict[str, Any]) -> None:
    """Set some of them in this thread, as :func:`transfer_guards` gives them."""
    state = _guards.thread_local_state()
    for name, value in values.items():
        level = value if name == "explicit_device_put" else value and _guards.TransferGuardLevel[value.upper()]
        setattr(state, name, level)


def set_default_transfer_guards(values: dict[str, str | None]) -> None:
    """Set those of threads that set none: direction -> level."""
    state = _guards.global_state()
    for name, value in values.items():
        setattr(state, name, value and _guards.TransferGuardLevel[value.upper()])


@contextmanager
def unguarded() -> Iterator[None]:
    """For what is no transfer from the host, and looks like one to jaxlib: views of the memory of CPU devices."""
    state = _guards.thread_local_state()
    earlier, state.host_to_device = state.host_to_device, _guards.TransferGuardLevel.ALLOW
    try:
        yield
    finally:
        state.host_to_device = earlier
