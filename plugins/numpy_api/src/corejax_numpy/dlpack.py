"""`corejax.dlpack`: memory shared with other libraries."""

from __future__ import annotations

from corejax_numpy.devices import from_dlpack as from_dlpack
from corejax_numpy.devices import is_supported_dtype as is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]
