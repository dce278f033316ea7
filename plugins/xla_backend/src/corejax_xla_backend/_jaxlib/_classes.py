"""jaxlib's classes of clients, devices and buffers, with the types of the members that corejax uses.

The classes are C++ and have no stubs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._probe import core

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy as np

    class Client:
        """A PJRT client: a platform's devices and the compiler for them."""

        platform: str
        platform_version: str

        def device_count(self) -> int: ...
        def devices(self) -> list[Device]: ...
        def local_devices(self) -> list[Device]: ...
        def live_executables(self) -> list[Any]: ...
        def heap_profile(self) -> bytes: ...
        def compile_and_load(self, module: Any, devices: Any, options: Any, **host_callbacks: Any) -> Any: ...
        def deserialize_executable(self, data: bytes, devices: Any, options: Any) -> Any: ...

    class Device:
        """A device of a client."""

        id: int
        process_index: int
        platform: str
        device_kind: str
        client: Client

        def memory_stats(self) -> Mapping[str, int] | None: ...
        def default_memory(self) -> Any: ...

    class Buffer:
        """jaxlib's ``ArrayImpl``: a value on one device, or in parts on several."""

        aval: Any
        _sharding: Any
        _committed: bool
        _arrays: Sequence[Any]
        _npy_value: np.ndarray[Any, Any] | None

        def __init__(self, aval: Any, sharding: Any, parts: Any, committed: bool, *, _skip_checks: bool) -> None: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def _rewrap_with_aval_and_sharding(self, aval: Any, sharding: Any) -> Buffer: ...
        def is_deleted(self) -> bool: ...
        def is_ready(self) -> bool: ...
        def _copy_single_device_array_to_host_async(self) -> None: ...
        def _to_np_array_did_copy(self) -> tuple[np.ndarray[Any, Any], bool]: ...
        def _single_device_array_to_np_array_did_copy(self) -> tuple[np.ndarray[Any, Any], bool]: ...

else:
    Client = core.Client
    Device = core.Device
    Buffer = core.ArrayImpl
