"""Device buffers: NumPy values to a device, without copies where the platform allows; back: `_readback`.

A buffer is jaxlib's ``ArrayImpl``. Importing jax adds methods to that class; nothing here relies on them.
Some C++ entry points import jax when it happens to be installed, and search the path for it in vain (65 us)
when not: ``batched_device_put`` of an ``ArrayImpl``, ``ArrayImpl._arrays``,
``_single_device_array_to_np_array_did_copy`` and
``disassemble_into_single_device_arrays``. They are kept for what cannot be done without them: on 0.10.2 that
is reading buffers of other devices than the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np

from corejax.extend import BackendError, ShapedArray
from corejax.extend.devices import aligned_empty, check_memory
from corejax_xla_backend import _exit

from . import _client
from ._client import Device, default_device, device_list, device_sharding
from ._probe import core, xla_client

Buffer = core.ArrayImpl

_COPY = core.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = core.HostBufferSemantics.ZERO_COPY

LARGE = 1 << 30  # bytes below which the machine's memory is not asked for


def is_immutable(value: np.ndarray) -> bool:
    """Nobody can write to the memory of ``value``: it and all arrays that it is a view of are read-only."""
    base: Any = value
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """A copy in such memory."""
    copied = aligned_empty(value.shape, value.dtype)
    bits = _BITS.get(value.itemsize)
    if bits is None:
        copied[...] = value
    else:  # NumPy copies numbers of its own several times faster than floats of 8 and 16 bits
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
    """A buffer with the value of a NumPy array.

    On the CPU the buffer may share the array's memory (where that is aligned to 64 bytes) and is then made
    without a copy; elsewhere the transfer goes on after this returns and keeps the array alive.

    Args:
        value: any array of a type that StableHLO has, of ``aval``'s shape and dtype, in any order of bytes
            and axes.
        aval: shape, dtype and weak type of the buffer, which has it as ``buffer.aval``; 64-bit types are kept.
        device: the default device unless given.
        committed: whether the buffer is bound to its device (jax's word); host values usually are not.
        alias: share memory. ``None``: only if the array is immutable (see :func:`is_immutable`). ``True`` is
            a promise that nobody writes to it any more.

    Raises:
        TypeError: the dtype is not one that XLA has.
        MemoryError: there is no place for it. A broadcast array is written out, and may be larger than the memory.
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
    """A buffer of one part for each device; what jaxlib says against it in corejax's words, as of `put`.

    Raises:
        BackendError: a guard of transfers refuses it.
    """
    try:
        return core.batched_device_put(
            aval, sharding, parts, devices, committed, False, _ALIAS if alias else _COPY, True
        )
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


def is_out_of_memory(error: Exception) -> bool:
    """Whether XLA found no memory."""
    return str(error).startswith("RESOURCE_EXHAUSTED")


def copy_to(
    buffer: Buffer,
    device: Device,
    *,
    committed: bool = False,
    memory_kind: str | None = None,
) -> Buffer:
    """The same values on another device (or the same buffer's memory where it is there already)."""
    sharding = device_sharding(device, memory_kind)
    moved = moved_to(buffer, device_list(device), sharding)
    return Buffer(buffer.aval, sharding, [moved], True, _skip_checks=True) if committed else moved


def start_copy_to_host(buffer: Buffer) -> None:
    """Begin the transfer that ``to_numpy`` will wait for."""
    buffer._copy_single_device_array_to_host_async()


def block_until_ready(buffers: Sequence[Buffer]) -> None:
    """Wait until all buffers hold their values.

    Raises:
        RuntimeError: one was deleted, or what went wrong in computing it.
        MemoryError: there was no place for its value.
        BackendError: nobody computes it: the process was forked meanwhile.
    """
    if _client.is_forked() and not all(b.is_deleted() or b.is_ready() for b in buffers):
        _client.check_not_forked()
    _exit.stop_at_exit()
    thread = get_ident()
    _exit.busy.add(thread)
    try:
        core.batched_block_until_ready(list(buffers))
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        awaited = ", ".join(f"{np.dtype(b.aval.dtype).name}{list(b.aval.shape)}" for b in buffers)
        raise MemoryError(f"while [{awaited}] was computed: {error}") from None
    finally:
        _exit.busy.discard(thread)


def device_of(buffer: Buffer) -> Any:
    """The device of a buffer that lives on one; of others what says where their parts are."""
    place = buffer._sharding
    return place._device if type(place) is xla_client.SingleDeviceSharding else place.sharding


def other_memory_of(buffer: Buffer) -> str | None:
    """The kind of memory that a buffer on one device is in, where that is not the device's default one."""
    place = buffer._sharding
    if type(place) is not xla_client.SingleDeviceSharding or place == device_sharding(place._device):
        return None
    kind = place._memory_kind
    return None if kind == place._device.default_memory().kind else kind


def is_spread(buffer: Buffer) -> bool:
    """Whether the buffer's parts are somewhere that a sharding says."""
    return type(buffer._sharding) is not xla_client.SingleDeviceSharding


def is_committed(buffer: Buffer) -> bool:
    """Whether the buffer is bound to its device."""
    return bool(buffer._committed)


def is_ready(buffer: Buffer) -> bool:
    """Whether the value is computed.

    Raises:
        RuntimeError: the buffer was deleted.
    """
    return bool(buffer.is_ready())


is_deleted = Buffer.is_deleted
"""Whether a buffer's memory was given up, to a program with donated arguments say."""


def place(buffer: Any, sharding: Any, layout: Any = None) -> Buffer:
    """The dispatcher's fallback for an argument that is not where the executable wants it."""
    if type(sharding) is not xla_client.SingleDeviceSharding:
        return sharding.place(buffer)
    if not isinstance(buffer, Buffer):
        raise TypeError(f"cannot place a {type(buffer).__name__} on a device: not a buffer.")
    return moved_to(buffer, sharding._internal_device_list, sharding)


def moved_to(buffer: Buffer, devices: Any, sharding: Any) -> Buffer:
    """The same values where a sharding of jaxlib's says, on its list of devices; what is there already is shared."""
    return core.batched_copy_array_to_devices_with_sharding(
        [buffer], [devices], [sharding], [core.ArrayCopySemantics.REUSE_INPUT]
    )[0]
