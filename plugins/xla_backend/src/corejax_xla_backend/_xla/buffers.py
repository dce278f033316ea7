"""Values to devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.devices import check_memory
from corejax_xla_backend import _jaxlib

LARGE = 1 << 30  # bytes below which nothing is checked


def put(
    value: np.ndarray[Any, Any], aval: ShapedArray, device: Any = None, *, committed: bool = False, alias: bool
) -> Any:
    """A buffer on a device, the default one unless given.

    Args:
        value: a NumPy array.
        aval: its type.
        device: the device.
        committed: whether the buffer is bound to it.
        alias: whether nobody writes to the array, so that the buffer may share its memory.

    Raises:
        MemoryError: there is no place for it. A broadcast array is written out, and may be larger than the memory.
    """
    if value.nbytes > LARGE:
        check_memory(value.nbytes, f"a buffer for an array of shape {aval.shape} and dtype {aval.dtype.name}")
    return _jaxlib.put(value, aval, device, committed=committed, alias=alias)
