"""Read device buffers of every dtype back as NumPy arrays, without importing jax.

Python's buffer protocol reads most buffers on the CPU in place. The C++ function that reads the others imports
jax on 0.10.2. There a small program first converts the buffer to a type that the protocol supports: the same bits
as unsigned integers, or the same values in a wider type (for types narrower than a byte, which NumPy stores one
element to a byte).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from corejax.extend import ShapedArray
from corejax_xla_backend._element_types import ELEMENT_TYPES, readable_as

from ._buffers import block_until_ready, device_of
from ._classes import Buffer, Device
from ._executable import Executable, compile_module
from ._probe import FEATURES


def to_numpy(buffer: Buffer) -> np.ndarray:
    """Return a buffer's value as a read-only NumPy array, after waiting for its computation.

    On the CPU the result is a view of the buffer's memory (0.6 us), which stays valid when the buffer is deleted.
    For other devices, and for types that Python's buffer protocol lacks (bfloat16, 8-bit floats, integers narrower
    than a byte), the result is a copy that is cached on the buffer.

    Raises:
        RuntimeError: the buffer was deleted or donated, or the computation that makes it failed.
    """
    if not buffer.is_deleted():
        block_until_ready((buffer,))  # the buffer protocol aborts the process if the computation failed
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:
        if buffer.is_deleted():
            raise RuntimeError("this device buffer was deleted, or donated to a computation.") from None
    kept = buffer._npy_value
    if kept is None:
        kept = _copy_to_numpy(buffer)
        kept.flags.writeable = False
        buffer._npy_value = kept
    return kept


def _copy_to_numpy(buffer: Buffer) -> np.ndarray:
    if FEATURES.copies_to_numpy:
        return np.array(buffer._to_np_array_did_copy()[0])
    dtype = np.dtype(buffer.aval.dtype)
    device = device_of(buffer)
    readable = readable_as(dtype)
    if device.platform != "cpu" or readable is None:
        return np.array(buffer._single_device_array_to_np_array_did_copy()[0])
    operation, kind = readable
    (bits,) = _reader(operation, dtype, kind, tuple(buffer.aval.shape), device)(buffer)
    host = np.asarray(memoryview(bits))
    return np.array(host.view(dtype) if operation == "bitcast_convert" else host.astype(dtype))


@lru_cache(maxsize=512)
def _reader(operation: str, dtype: np.dtype, readable: np.dtype, shape: tuple[int, ...], device: Device) -> Executable:
    """Compile the program that applies a single conversion, which takes 20 ms."""
    from ._mlir import parse_module  # as in `name_of`

    dims = "".join(f"{size}x" for size in shape)
    before, after = (f"tensor<{dims}{ELEMENT_TYPES[kind.name]}>" for kind in (dtype, readable))
    module = parse_module(
        f"""module @read {{ func.func public @main(%x: {before}) -> {after} {{
          %0 = "stablehlo.{operation}"(%x) : ({before}) -> {after}
          return %0 : {after} }} }}"""
    )
    return compile_module(module, [ShapedArray(shape, readable)], device)


def forget_readers() -> None:
    """Clear the cache of the programs that convert buffers."""
    _reader.cache_clear()
