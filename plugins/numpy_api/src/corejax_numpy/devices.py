"""Arrays on devices, and arrays that other libraries own (DLPack)."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, as_array, backends, config, dtypes, get_aval

_DLPACK_KINDS = "biufc"  # NumPy's kinds of the dtypes that it exchanges


def devices() -> list[Any]:
    """The devices of the default backend."""
    backend, platform = backends.find()
    return list(backend.devices(platform))


def on_device(x: Any, device: Any) -> Any:
    """A function's result where its argument `device` asks for it: None is wherever it is.

    Raises:
        TypeError: it is no device.
    """
    return x if device is None else as_array(x).to_device(device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array with the value of an object of another library, by DLPack.

    Args:
        x: the object; it has the methods `__dlpack__` and `__dlpack_device__`, and is in the host's memory.
        device: where to put the array.
        copy: True: copy. None: share memory where possible; then nobody may write to it as long as the array lives.
            False: share it, or raise.

    Raises:
        TypeError: `x` has not these methods.
        BufferError: its memory or dtype cannot be shared, or a copy is needed that `copy=False` forbids.
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__ and __dlpack_device__, got {type(x).__name__}; "
            "make it an array with corejax.numpy.asarray"
        )
    if type(x) is Array:
        return on_device(Array(np.array(x), x.aval) if copy else x, device)  # type: ignore[no-any-return]
    kind, number = x.__dlpack_device__()
    if kind != 1:
        raise BufferError(f"from_dlpack: x is on device {(int(kind), int(number))} of DLPack, not on the host, (1, 0)")
    try:
        host = np.from_dlpack(x)
    except (BufferError, RuntimeError) as error:
        raise BufferError(
            f"from_dlpack: NumPy, which reads what is on the host, cannot take the {type(x).__name__} ({error}); of "
            "another dtype take the bits, as uint16 say, and give them their dtype by x.view(dtype)"
        ) from None
    if config.x64_compat and dtypes.canonicalize_dtype(host.dtype) != host.dtype:
        if copy is False:
            raise BufferError(f"from_dlpack: {host.dtype} is made 32 bits wide (x64_compat), which needs a copy")
        return on_device(as_array(host), device)  # type: ignore[no-any-return]
    return on_device(Array(np.array(host) if copy else host.view(), get_aval(host)), device)  # type: ignore[no-any-return]


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack."""
    return dtypes.dtype(dtype).kind in _DLPACK_KINDS
