"""Methods and properties of `Array` about its placement, as in JAX (see `plugin`)."""

from __future__ import annotations

from typing import Any

from corejax.extend import Array, Tracer, backends
from corejax.extend.devices import bound_device, placed
from corejax.extend.types import device_buffer
from corejax_xla_backend.arrays_of_parts import parts_of
from corejax_xla_backend.memory_spaces import other_memory_of
from corejax_xla_backend.sharding import Shard, Sharding, SingleDeviceSharding, bounds, is_addressable


def _check_concrete(name: str, x: Any) -> Array:
    """Return an array; raise AttributeError for a tracer."""
    if isinstance(x, Tracer):
        raise AttributeError(f"a traced value has no attribute {name!r}: its place is known only when the program runs")
    array: Array = x
    return array


def _sharding(self: Any) -> Any:
    """Return the array's sharding; for an array on the host, the sharding that it would get on a device."""
    x = _check_concrete("sharding", self)
    if isinstance(x.device, Sharding):
        return x.device
    return SingleDeviceSharding(x.device, memory_kind=other_memory_of(device_buffer(x)))


def _committed(self: Any) -> bool:
    """Return whether `device_put` has bound the array to its device, so that programs which take it run there."""
    x = _check_concrete("committed", self)
    return bound_device(x, backends.of_device(x.device)) is not None


def _addressable_shards(self: Any) -> list[Shard]:
    """Return the array's parts on this process's devices, in the order of its sharding."""
    x = _check_concrete("addressable_shards", self)
    sharding = _sharding(x)
    if isinstance(sharding, SingleDeviceSharding):
        return [Shard(x.device, (slice(None),) * x.ndim, x)]
    return [shard for shard in _global_shards(x) if shard.data is not None]


def _global_shards(self: Any) -> list[Shard]:
    """Return the array's parts on all devices; parts of other processes have no data."""
    x = _check_concrete("global_shards", self)
    sharding = _sharding(x)
    if isinstance(sharding, SingleDeviceSharding):
        return _addressable_shards(x)
    parts = iter(parts_of(x))
    numbers: dict[Any, int] = {}
    shards = []
    for device, index in sharding.devices_indices_map(x.shape).items():
        replica = numbers[bounds(index)] = numbers.get(bounds(index), -1) + 1
        shards.append(Shard(device, index, next(parts) if is_addressable(device) else None, replica))
    return shards


def _is_fully_addressable(self: Any) -> bool:
    """Return whether all of the array is on devices of this process."""
    return bool(_sharding(_check_concrete("is_fully_addressable", self)).is_fully_addressable)


def _is_fully_replicated(self: Any) -> bool:
    """Return whether each of its devices holds the whole array."""
    x = _check_concrete("is_fully_replicated", self)
    return bool(_sharding(x).tiles(x.ndim).shape[-1] == _sharding(x).num_devices)


def _addressable_data(self: Any, index: int) -> Array:
    """Return the part number `index` on this process's devices.

    Raises:
        IndexError: `index` is not below the number of parts.
    """
    data: Array | None = _addressable_shards(_check_concrete("addressable_data", self))[index].data
    assert data is not None  # only parts of other processes have no data
    return data


def _platform(self: Any) -> str:
    """Return the platform of the array's device, such as "cpu"."""
    return str(_sharding(_check_concrete("platform", self)).device_tuple[0].platform)


def _unsafe_buffer_pointer(self: Any) -> int:
    """Return the address of the array's memory on its device; it is read-only, and valid as long as the array lives.

    Raises:
        ValueError: the array has parts on several devices.
    """
    x = _check_concrete("unsafe_buffer_pointer", self)
    if len(_sharding(x).device_tuple) > 1:
        raise ValueError(
            "unsafe_buffer_pointer: the array has parts on several devices, each with memory of its own; use "
            "x.addressable_data(i).unsafe_buffer_pointer()"
        )
    return int(placed(x, backends.of_device(x.device))._buf.unsafe_buffer_pointer())


ATTRIBUTES = {
    "sharding": property(_sharding),
    "committed": property(_committed),
    "addressable_shards": property(_addressable_shards),
    "global_shards": property(_global_shards),
    "is_fully_addressable": property(_is_fully_addressable),
    "is_fully_replicated": property(_is_fully_replicated),
    "addressable_data": _addressable_data,
    "platform": _platform,
    "unsafe_buffer_pointer": _unsafe_buffer_pointer,
}
