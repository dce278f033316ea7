"""Device buffers: transfer NumPy values to a device, without a copy if the platform allows; `_readback` reads them.

A buffer is jaxlib's ``ArrayImpl``. Importing jax adds methods to that class; nothing here relies on them.
Some C++ entry points import jax if it is installed, and otherwise search the path for it in vain (65 us):
``batched_device_put`` of an ``ArrayImpl``, ``ArrayImpl._arrays``, ``_single_device_array_to_np_array_did_copy``
and ``disassemble_into_single_device_arrays``. They are used only if there is no alternative: on 0.10.2, to read
buffers of devices other than the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import BackendError, ShapedArray
from corejax.extend.devices import aligned_empty, check_memory
from corejax_xla_backend import _exit

from . import _client
from ._classes import Buffer, Device
from ._client import default_device, device_list, device_sharding
from ._probe import core, xla_client

_COPY = core.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = core.HostBufferSemantics.ZERO_COPY

# Only transfers of more bytes than this check the machine's free memory first.
LARGE = 1 << 30


def is_immutable(value: np.ndarray) -> bool:
    """Return whether ``value`` and all arrays that it is a view of are read-only."""
    base: Any = value
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """Return a C-contiguous copy of an array in memory that is aligned, so that XLA can share it."""
    copied = aligned_empty(value.shape, value.dtype)
    bits = _BITS.get(value.itemsize)
    if bits is None:
        copied[...] = value
    else:  # NumPy copies unsigned integers several times faster than 8- and 16-bit floats
        copied.view(bits)[...] = value.view(bits)
    return copied


_BITS = {1: np.uint8, 2: np.uint16}


def put(
    value: np.ndarray,
    aval: ShapedArray,
    device: Device | None = None,
    *,
    committed: bool = False,
    alias: bool | None = None,
) -> Buffer:
    """Return a buffer with the value of a NumPy array.

    On the CPU the buffer may alias the array's memory, if that is aligned to 64 bytes, and then costs no copy. On
    other devices the transfer may still run when this returns, and keeps the array alive.

    Args:
        value: an array of a dtype that StableHLO has, of ``aval``'s shape and dtype, in any byte order and memory
            layout.
        aval: shape, dtype and weak type of the buffer, which has it as ``buffer.aval``; 64-bit types are kept.
        device: the default device unless given.
        committed: whether the buffer is bound to its device (jax's word); host values usually are not.
        alias: whether the buffer may share the array's memory. ``None``: only if the array is immutable (see
            :func:`is_immutable`). ``True`` promises that the array is not modified afterwards.

    Raises:
        TypeError: XLA does not have the dtype.
        MemoryError: there is not enough memory. A broadcast array is materialised, which may take far more memory.
    """
    if value.nbytes > LARGE:
        check_memory(value.nbytes, f"a buffer for an array of shape {aval.shape} and dtype {aval.dtype.name}")
    target = default_device() if device is None else device
    if not value.dtype.isnative:  # jaxlib reads the bytes as if they were native
        value = value.astype(value.dtype.newbyteorder("="))
    share = is_immutable(value) if alias is None else alias
    if not value.flags.c_contiguous and (value.itemsize in _BITS or min(value.strides) < 0):
        value, share = aligned_copy(value), True  # jaxlib would go element by element
    return put_on(aval, device_sharding(target), [value], [target], committed, alias=share)


def put_on(
    aval: ShapedArray, sharding: Any, parts: list[np.ndarray], devices: list[Device], committed: bool, *, alias: bool
) -> Buffer:
    """Return a buffer made of one part for each device, translating jaxlib's errors to those that `put` documents.

    Raises:
        BackendError: a transfer guard refuses the transfer.
    """
    try:
        made: Buffer = core.batched_device_put(
            aval, sharding, parts, devices, committed, False, _ALIAS if alias else _COPY, True
        )
        return made
    except RuntimeError as error:
        where = str(devices[0]) if len(devices) == 1 else f"{len(devices)} devices"
        what = f"an array of shape {aval.shape} and dtype {aval.dtype}"
        if "NumPy dtype" in str(error):
            raise TypeError(f"values of dtype {aval.dtype} cannot be put on a device.") from error
        if "Disallowed" in str(error):
            raise BackendError(
                f"a transfer_guard refuses to put {what} on {where}; put it there before, corejax.device_put(x), or "
                "outside of the guard"
            ) from None
        if is_out_of_memory(error):
            nbytes = f" ({parts[0].nbytes} bytes)" if len(devices) == 1 else ""
            raise MemoryError(f"{what}{nbytes} cannot be put on {where}: {error}") from None
        raise


if TYPE_CHECKING:

    def dlpack_of(buffer: Buffer) -> Any:
        """Return a buffer on the CPU as a capsule of DLPack that shares its memory, after waiting for it."""

else:
    dlpack_of = core.buffer_to_dlpack_managed_tensor


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an XLA error says that memory ran out."""
    return str(error).startswith("RESOURCE_EXHAUSTED")


def copy_to(
    buffer: Buffer,
    device: Device,
    *,
    committed: bool = False,
    memory_kind: str | None = None,
) -> Buffer:
    """Copy a buffer to a device; if the buffer is there already, the result shares its memory."""
    sharding = device_sharding(device, memory_kind)
    moved = moved_to(buffer, device_list(device), sharding)
    return Buffer(buffer.aval, sharding, [moved], True, _skip_checks=True) if committed else moved


def start_copy_to_host(buffer: Buffer) -> None:
    """Start the transfer to the host that ``to_numpy`` waits for."""
    buffer._copy_single_device_array_to_host_async()


def block_until_ready(buffers: Sequence[Buffer]) -> None:
    """Wait until all buffers hold their values.

    Raises:
        RuntimeError: a buffer was deleted, or its computation failed.
        MemoryError: its computation ran out of memory.
        BackendError: the process was forked before the value was computed, so it never will be.
    """
    if _client.is_forked() and not all(b.is_deleted() or b.is_ready() for b in buffers):
        _client.check_not_forked()
    thread = get_ident()
    nested = thread in _exit.busy
    _exit.busy.add(thread)
    try:
        _exit.stop_at_exit()
        core.batched_block_until_ready(list(buffers))
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        awaited = ", ".join(f"{np.dtype(b.aval.dtype).name}{list(b.aval.shape)}" for b in buffers)
        raise MemoryError(f"while [{awaited}] was computed: {error}") from None
    finally:
        if not nested:
            _exit.busy.discard(thread)


def device_of(buffer: Buffer) -> Any:
    """Return the device of a buffer on a single device, or the sharding of a sharded buffer."""
    place = buffer._sharding
    return place._device if type(place) is xla_client.SingleDeviceSharding else place.sharding


def other_memory_of(buffer: Buffer) -> str | None:
    """Return the memory kind of a buffer on a single device, or None if it is in the device's default memory."""
    place = buffer._sharding
    if type(place) is not xla_client.SingleDeviceSharding or place == device_sharding(place._device):
        return None
    kind = place._memory_kind
    return None if kind == place._device.default_memory().kind else kind


def is_spread(buffer: Buffer) -> bool:
    """Return whether the buffer is sharded over several devices."""
    return type(buffer._sharding) is not xla_client.SingleDeviceSharding


def is_committed(buffer: Buffer) -> bool:
    """Return whether the buffer is bound to its device."""
    return bool(buffer._committed)


def is_ready(buffer: Buffer) -> bool:
    """Return whether the buffer's value is computed.

    Raises:
        RuntimeError: the buffer was deleted.
    """
    return bool(buffer.is_ready())


if TYPE_CHECKING:

    def is_deleted(buffer: Buffer) -> bool:
        """Return whether a buffer was deleted, or donated to a program."""

else:
    is_deleted = Buffer.is_deleted


def place(buffer: Any, sharding: Any, layout: Any = None) -> Buffer:
    """Move an argument to the sharding that the executable expects; the dispatcher's fallback."""
    if type(sharding) is not xla_client.SingleDeviceSharding:
        placed: Buffer = sharding.place(buffer)
        return placed
    if not isinstance(buffer, Buffer):
        raise TypeError(f"cannot place a {type(buffer).__name__} on a device: not a buffer.")
    return moved_to(buffer, sharding._internal_device_list, sharding)


def moved_to(buffer: Buffer, devices: Any, sharding: Any) -> Buffer:
    """Copy a buffer to a jaxlib sharding on its device list; parts that are in place already are shared."""
    moved: list[Buffer] = core.batched_copy_array_to_devices_with_sharding(
        [buffer], [devices], [sharding], [core.ArrayCopySemantics.REUSE_INPUT]
    )
    return moved[0]
