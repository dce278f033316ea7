"""`corejax.dlpack`: exchange of arrays with other libraries."""

from __future__ import annotations

from typing import Any

from corejax.extend import Array
from corejax_numpy import devices
from corejax_numpy.devices import is_supported_dtype as is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """Create an array by DLPack, as `corejax.numpy.from_dlpack` does; all arguments may be positional."""
    return devices.from_dlpack(external_array, device=device, copy=copy)
