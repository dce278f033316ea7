"""What arrays say of their place, as JAX's do: methods and properties of `Array` (see `plugin`)."""

from __future__ import annotations

from typing import Any

from corejax.extend import Array, Tracer, backends
from corejax.extend.devices import bound_device, placed
from corejax.extend.types import device_buffer
from corejax_xla_backend.arrays_of_parts import parts_of
from corejax_xla_backend.memory_spaces import other_memory_of
from corejax_xla_backend.sharding import Shard, Sharding, SingleDeviceSharding, bounds, is_addressable


def _of_value(name: str, x: Any) -> Array:
    if isinstance(x, Tracer):
        raise AttributeError(f"a traced value has no attribute {name!r}: it is wherever the program will run")
    return x


def _sharding(self: Any) -> Any:
    """Where the array is, or would be put."""
    x = _of_value("sharding", self)
    if isinstance(x.device, Sharding):
        return x.device
    return SingleDeviceSharding(x.device, memory_kind=other_memory_of(device_buffer(x)))


def _committed(self: Any) -> bool:
    """Whether the array is bound to its device, by `device_put` to one: programs that take it run there."""
    x = _of_value("committed", self)
    return bound_device(x, backends.of_device(x.device)) is not None


def _addressable_shards(self: Any) -> list[Shard]:
    """The array's parts on this process's devices, in the order of its sharding."""
    x = _of_value("addressable_shards", self)
    sharding = _sharding(x)
    if isinstance(sharding, SingleDeviceSharding):
        return [Shard(x.device, (slice(None),) * x.ndim, x)]
    return [shard for shard in _global_shards(x) if shard.data is not None]


def _global_shards(self: Any) -> list[Shard]:
    """The array's parts on all devices; those of other processes have no data."""
    x = _of_value("global_shards", self)
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
    """Whether all of the array is on devices of this process."""
    return _sharding(_of_value("is_fully_addressable", self)).is_fully_addressable


def _is_fully_replicated(self: Any) -> bool:
    """Whether each of its devices holds the whole array."""
    x = _of_value("is_fully_replicated", self)
    return bool(_sharding(x).tiles(x.ndim).shape[-1] == _sharding(x).num_devices)


def _addressable_data(self: Any, index: int) -> Array:
    """The part number `index` on this process's devices.

    Raises:
        IndexError: there are not as many.
    """
    return _addressable_shards(_of_value("addressable_data", self))[index].data


def _platform(self: Any) -> str:
    """The kind of its device, "cpu"."""
    return str(_sharding(_of_value("platform", self)).device_tuple[0].platform)


def _unsafe_buffer_pointer(self: Any) -> int:
    """The address of the array's memory on its device. It is the array's as long as that lives, and read-only.

    Raises:
        ValueError: it is on several.
    """
    x = _of_value("unsafe_buffer_pointer", self)
    if len(_sharding(x).device_tuple) > 1:
        raise ValueError(
            "unsafe_buffer_pointer: the array has parts on several devices, each with memory of its own: "
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
