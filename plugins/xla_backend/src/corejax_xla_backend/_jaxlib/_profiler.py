"""XLA's profiler: sessions, annotations, files, and the origins of the instructions of live programs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from corejax_xla_backend._hlo_text import Module, Origin

from ._client import started_clients
from ._interrupts import uninterrupted

with uninterrupted():
    from jaxlib import _profile_data
    from jaxlib import _profiler as _loaded  # type: ignore[attr-defined]  # C++ without stubs

_profiler: Any = _loaded

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfileLine = _profile_data.ProfileLine
ProfilePlane = _profile_data.ProfilePlane
ProfilerSession = _profiler.ProfilerSession
register_subprocess = _profiler.register_subprocess
start_server = _profiler.start_server

if TYPE_CHECKING:

    class ProfileOptions:
        """What a session records."""

        python_tracer_level: int
        host_tracer_level: int

    class TraceMe:
        """An entry of a trace, from the start to the end of a `with` block."""

        def __init__(self, name: str, **metadata: Any) -> None: ...
        def __enter__(self) -> TraceMe: ...
        def __exit__(self, *error: object) -> None: ...
        @staticmethod
        def is_enabled() -> bool: ...

else:
    ProfileOptions = _profiler.ProfileOptions
    TraceMe = _profiler.TraceMe


def heap_profile(client: Any) -> bytes:
    """Return a profile of the buffers on a client's devices, in pprof's format."""
    return bytes(client.heap_profile())


def live_instructions(modules: Collection[str]) -> dict[tuple[str, str], Origin | None]:
    """Return a dict from (program, instruction) to the instruction's origin, for live programs of these names.

    The origin is None if several programs have the same name and disagree about an instruction of that name.
    """
    origins: dict[tuple[str, str], Origin | None] = {}
    for client in started_clients():
        for executable in client.live_executables():
            for module in executable.hlo_modules():
                if module.name in modules:
                    for name, origin in Module(module.to_string()).origins():
                        key = (module.name, name)
                        origins[key] = origin if origins.get(key, origin) == origin else None
    return origins
