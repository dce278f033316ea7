"""jaxlib's transfer guards, thread-local state that its C++ code consults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._probe import core

_guards = core.guard_lib if hasattr(core, "guard_lib") else core.transfer_guard_lib
_ALL = "host_to_device", "device_to_device", "device_to_host", "explicit_device_put"


def transfer_guards(names: Iterable[str] = _ALL) -> dict[str, Any]:
    """Return this thread's guards as a dict from direction to level, or to None if the thread sets none.

    The entry ``explicit_device_put`` is a bool: whether the current ``device_put`` is explicit.
    """
    state = _guards.thread_local_state()
    levels = {name: getattr(state, name) for name in names}
    return {name: x if x is None or type(x) is bool else x.name.lower() for name, x in levels.items()}


def set_transfer_guards(values: dict[str, Any]) -> None:
    """Set guards of this thread, in the format of :func:`transfer_guards`."""
    state = _guards.thread_local_state()
    for name, value in values.items():
        level = value if name == "explicit_device_put" else value and _guards.TransferGuardLevel[value.upper()]
        setattr(state, name, level)


def set_default_transfer_guards(values: dict[str, str | None]) -> None:
    """Set the guards of threads that set none themselves, as a dict from direction to level."""
    state = _guards.global_state()
    for name, value in values.items():
        setattr(state, name, value and _guards.TransferGuardLevel[value.upper()])


@contextmanager
def unguarded() -> Iterator[None]:
    """Allow host transfers within the block, for views of CPU device memory that jaxlib mistakes for transfers."""
    state = _guards.thread_local_state()
    earlier, state.host_to_device = state.host_to_device, _guards.TransferGuardLevel.ALLOW
    try:
        yield
    finally:
        state.host_to_device = earlier
