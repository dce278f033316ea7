"""Devices of arrays, and exchange of arrays with other libraries (DLPack)."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, as_array, backends, config, dtypes, get_aval

_DLPACK_KINDS = "biufc"  # the kinds of the dtypes that NumPy exchanges


def devices() -> list[Any]:
    """Return the devices of the default backend."""
    backend, platform = backends.find()
    return list(backend.devices(platform))


def on_device(x: Any, device: Any) -> Any:
    """Move a result to the device that the argument `device` names; None leaves the result where it is.

    Raises:
        TypeError: the argument is not a device.
    """
    return x if device is None else as_array(x).to_device(device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Create an array from an object of another library that supports DLPack.

    Args:
        x: an object in host memory with the methods `__dlpack__` and `__dlpack_device__`.
        device: the device of the result; by default the default device.
        copy: True copies the data. None, the default, shares memory if possible; the memory must then not be written
            to while the array is alive. False shares memory, or raises BufferError.

    Raises:
        TypeError: `x` does not have these methods.
        BufferError: the memory or dtype cannot be shared, or a copy is needed and `copy` is False.
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__ and __dlpack_device__, got {type(x).__name__}; "
            "convert it with corejax.numpy.asarray"
        )
    if type(x) is Array:
        array: Array = on_device(Array(np.array(x), x.aval) if copy else x, device)
        return array
    kind, number = x.__dlpack_device__()
    if kind != 1:
        raise BufferError(f"from_dlpack: x is on device {(int(kind), int(number))} of DLPack, not on the host, (1, 0)")
    try:
        host = np.from_dlpack(x)
    except (BufferError, RuntimeError) as error:
        raise BufferError(
            f"from_dlpack: NumPy, which reads arrays on the host, cannot read the {type(x).__name__} ({error}); if "
            "the dtype is not supported, pass its bits, as uint16 say, and restore the dtype by x.view(dtype)"
        ) from None
    if config.x64_compat and dtypes.canonicalize_dtype(host.dtype) != host.dtype:
        if copy is False:
            raise BufferError(f"from_dlpack: {host.dtype} is converted to 32 bits (x64_compat), which needs a copy")
        array = on_device(as_array(host), device)
    else:
        array = on_device(Array(np.array(host) if copy else host.view(), get_aval(host)), device)
    return array


def is_supported_dtype(dtype: Any) -> bool:
    """Return whether arrays of a dtype can be exchanged by DLPack."""
    return dtypes.dtype(dtype).kind in _DLPACK_KINDS
