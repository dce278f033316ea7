"""`corejax.sharding`: the placement of an array's parts on devices.

A sharding describes the placement as an array of positions (`tiles`): which of its devices, in order, holds which tile
of an array. Everything else is derived from the tiles: the slice that each device holds, XLA's text, and the
equivalence of shardings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, backends
from corejax.extend.devices import Device
from corejax.extend.plugins import exported, exported_names, missing_name
from corejax.extend.programs import register_param_type
from corejax.extend.types import Refinement

__all__ = ["Shard", "Sharding", "SingleDeviceSharding", "make_single_device_sharding"]

Index = tuple[slice, ...]


def devices_text(devices: Sequence[Any]) -> str:
    """Return the text of devices of one platform in printed programs: `cpu:0-3,7`; of a topology, `cpu@8x8:0-63`."""
    parts: list[list[int]] = []
    for device in devices:
        if parts and parts[-1][1] + 1 == device.id:
            parts[-1][1] = device.id
        else:
            parts.append([device.id, device.id])
    listed = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    if not devices:
        return ""
    topology = getattr(devices[0], "topology", None)
    return f"{devices[0].platform}{'' if topology is None else f'@{topology.name}'}:{listed}"


def devices_of_text(text: str) -> tuple[Any, ...]:
    """Return the devices of a text that `devices_text` has written.

    Raises:
        ValueError: this process does not have all of the devices.
    """
    platform, _, listed = text.partition(":")
    if not platform:
        return ()
    if "@" in platform:
        known = {device.id: device for device in devices_of_topology(platform)}
    else:
        backend, name = backends.find(platform)
        known = {device.id: device for device in backend.devices(name)}
    ids: list[int] = []
    for part in listed.split(","):
        first, _, last = part.partition("-")
        ids += range(int(first), int(last or first) + 1)
    missing = [i for i in ids if i not in known]
    if missing:
        raise ValueError(f"{text!r}: there are no devices {missing} of platform {platform}")
    return tuple(known[i] for i in ids)


def devices_of_topology(text: str) -> list[Any]:
    """Return the devices of a topology such as `cpu@8x8`, which need not be attached, from the platform's backend.

    Raises:
        BackendError: the backend compiles only for attached devices.
    """
    platform, _, name = text.partition("@")
    backend, _ = backends.find(platform)
    return list(backend.topology(name, platform))


class Grid(NamedTuple):
    """A grid of devices with named axes: a mesh as XLA's partitioner needs it.

    Attributes:
        shape_tuple: name and size of each axis.
        device_tuple: the devices, row by row; empty for a grid of any devices.
    """

    shape_tuple: tuple[tuple[str, int], ...]
    device_tuple: tuple[Device, ...]


class Sharding:
    """The placement of an array's parts; equal shardings mean the same placement.

    A subclass defines `device_tuple` and `tiles`, and for compilers `mesh` and `dimension_axes`.

    Attributes:
        device_tuple: the devices, in the order in which a program over them numbers them.
        memory_kind: the kind of memory of the devices; None for their default memory.
        mesh: the devices in a grid, with `shape_tuple` and `device_tuple` (see `Grid`).
    """

    device_tuple: tuple[Device, ...]
    memory_kind: str | None
    mesh: Any

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """Return which device holds which part of an array of `ndim` dimensions.

        Returns:
            Positions in `device_tuple`: one axis for each dimension, and a last axis for devices with the same part.

        Raises:
            ValueError: the sharding is for arrays of more dimensions.
        """
        raise NotImplementedError(f"{type(self).__name__}.tiles")

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """Return for each dimension the axes of `mesh` that it is split over; None if the compiler may choose."""
        raise NotImplementedError(f"{type(self).__name__}.dimension_axes")

    def of_type(self, ndim: int) -> Refinement | None:
        """Return the refinement of types of arrays of `ndim` dimensions, or None if the mesh has no Explicit axes."""
        return None

    def like(self, tiles: np.ndarray[Any, Any]) -> Sharding:
        """Return the sharding over the same devices with other tiles, over the mesh's axes if they can express it."""
        return TiledSharding(self.device_tuple, tiles)

    def over(self, devices: Sequence[Device]) -> Sharding:
        """Return a sharding over an abstract mesh as one over devices, row by row."""
        raise NotImplementedError(f"{type(self).__name__}.over")

    def known_devices(self) -> tuple[Device, ...]:
        """Return the most likely devices of a sharding over an abstract mesh, or (); else the devices."""
        return self.device_tuple

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """Return the sharding of arrays with one more dimension, which the compiler may split.

        Args:
            dim: the position of the new dimension.
            names: axes of the mesh over which the new dimension is split instead.
        """
        raise NotImplementedError(f"{type(self).__name__}.batched")

    @property
    def device_set(self) -> frozenset[Device]:
        """The devices."""
        return frozenset(self.device_tuple)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self.device_tuple)

    @property
    def addressable_devices(self) -> frozenset[Device]:
        """The devices of this process."""
        return frozenset(d for d in self.device_tuple if is_addressable(d))

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process has at least one of the devices."""
        return any(map(is_addressable, self.device_tuple))

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raise ValueError if arrays of a shape have too few dimensions or sizes that the sharding does not divide."""
        check_fits(type(self).__name__, self, tuple(aval_shape))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all of the devices."""
        return all(map(is_addressable, self.device_tuple))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return bool(self.tiles(self._least_ndim()).shape[-1] == len(self.device_tuple))

    def _least_ndim(self) -> int:
        """Return the least number of dimensions of arrays with this sharding."""
        return 0

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Device, Index]:
        """Return the index of the part that each device holds of an array of a shape.

        Raises:
            ValueError: the sharding does not divide a size.
        """
        shape = tuple(global_shape)
        tiles, part = self.tiles(len(shape)), _part_shape(self, shape)
        indices: dict[int, Index] = {}
        for place in np.ndindex(tiles.shape[:-1]):
            index = tuple(
                slice(i * size, (i + 1) * size) if count > 1 else slice(None)
                for i, size, count in zip(place, part, tiles.shape[:-1], strict=True)
            )
            indices.update((int(position), index) for position in tiles[place])
        return {device: indices[i] for i, device in enumerate(self.device_tuple)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Device, Index]:
        """Return the index of the part that each of this process's devices holds of an array of a shape."""
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if is_addressable(d)}

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a device's part of an array of a shape.

        Raises:
            ValueError: the sharding does not divide a size.
        """
        return _part_shape(self, tuple(global_shape))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Return whether both shardings place arrays of `ndim` dimensions in the same way."""
        if self is other:
            return True
        if self.device_set != other.device_set or self.memory_kind != other.memory_kind:
            return False
        ours, theirs = self.tiles(ndim), other.tiles(ndim)
        if ours.shape != theirs.shape:
            return False
        if self.device_tuple != other.device_tuple:
            place = {device: i for i, device in enumerate(self.device_tuple)}
            theirs = np.array([place[d] for d in other.device_tuple])[theirs]
        return bool(np.array_equal(np.sort(ours, -1), np.sort(theirs, -1)))


@lru_cache(maxsize=4096)
def _part_shape(sharding: Sharding, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a device's part; raise ValueError if the sharding does not divide a size."""
    counts = sharding.tiles(len(shape)).shape[:-1]
    for axis, (size, count) in enumerate(zip(shape, counts, strict=True)):
        if size % count:
            raise ValueError(
                f"{sharding} splits axis {axis} into {count} parts, but an array of shape {shape} has size "
                f"{size} there, which {count} does not divide. Pad the array, or do not split the axis"
            )
    return tuple(size // count for size, count in zip(shape, counts, strict=True))


class OwnParts(NamedTuple):
    """The parts of an array on this process's devices.

    Attributes:
        shape: shape of a part.
        indices: the parts' indices in the array, each once.
        devices: this process's devices, in order: jaxlib's objects.
        numbers: for each device, the position in `indices` of its part.
        first: for each of `indices`, the position of the first device that holds it.
        complete: whether the parts make up the whole array.
    """

    shape: tuple[int, ...]
    indices: tuple[Index, ...]
    devices: tuple[Any, ...]
    numbers: tuple[int, ...]
    first: tuple[int, ...]
    complete: bool


@lru_cache(maxsize=4096)
def own_parts(sharding: Sharding, shape: tuple[int, ...]) -> OwnParts:
    """Return the parts of an array of a shape on this process's devices.

    Raises:
        ValueError: the sharding does not divide a size.
    """
    held = sharding.addressable_devices_indices_map(shape)
    indices = {bounds(index): index for index in held.values()}
    order = {key: number for number, key in enumerate(indices)}
    numbers = tuple(order[bounds(index)] for index in held.values())
    own = [i for i, device in enumerate(sharding.device_tuple) if device in held]
    return OwnParts(
        sharding.shard_shape(shape),
        tuple(indices.values()),
        tuple(held),
        numbers,
        tuple(map(numbers.index, range(len(indices)))),
        bool(np.isin(sharding.tiles(len(shape)), own).any(-1).all()),
    )


def bounds(index: Index) -> tuple[tuple[int | None, int | None], ...]:
    """Return an index as a hashable tuple of starts and stops."""
    return tuple((part.start, part.stop) for part in index)


def check_fits(what: str, sharding: Sharding, shape: tuple[int, ...]) -> None:
    """Raise ValueError if a sharding does not fit a shape; `what` names the function and argument in the message."""
    try:
        sharding.shard_shape(shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def is_addressable(device: Any) -> bool:
    """Return whether a device belongs to this process."""
    if getattr(device, "topology", None) is not None:
        return False
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()


class TiledSharding(Sharding):
    """A sharding that axes of a mesh cannot express; results of compiled programs may have one.

    Args:
        device_tuple: the devices.
        tiles: positions of devices, with one axis for each dimension of the array and a last axis for copies.
    """

    memory_kind = None

    def __init__(self, device_tuple: tuple[Device, ...], tiles: np.ndarray[Any, Any]) -> None:
        self.device_tuple = device_tuple
        self._tiles = tiles
        self._key = (device_tuple, tiles.shape, tiles.tobytes())
        self._hash = hash(self._key)

    @cached_property
    def mesh(self) -> Grid:
        """A grid with one axis for each dimension, and one for copies."""
        axes = tuple((f"_{i}", size) for i, size in enumerate(self._tiles.shape))
        return Grid(axes, tuple(self.device_tuple[i] for i in self._tiles.reshape(-1).tolist()))

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """Return the tiles."""
        if ndim != self._tiles.ndim - 1:
            raise ValueError(f"{self} is for arrays of {self._tiles.ndim - 1} dimensions, got one of {ndim}")
        return self._tiles

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """Return one axis for each dimension."""
        return tuple((f"_{i}",) for i in range(ndim))

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """Return the sharding with a new dimension that is not split."""
        return TiledSharding(self.device_tuple, np.expand_dims(self._tiles, dim))

    def _least_ndim(self) -> int:
        return self._tiles.ndim - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TiledSharding) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __param_text__(self) -> tuple[Any, ...]:
        return tiled_sharding, (
            devices_text(self.device_tuple),
            self._tiles.shape,
            tuple(self._tiles.reshape(-1).tolist()),
        )

    def __repr__(self) -> str:
        ids = [getattr(d, "id", d) for d in self.device_tuple]
        return f"TiledSharding(devices={ids}, tiles={self._tiles.tolist()})"


@register_param_type
def tiled_sharding(devices: str, shape: tuple[int, ...], tiles: tuple[int, ...]) -> TiledSharding:
    """Return a tiled sharding from its text in a printed program."""
    return TiledSharding(devices_of_text(devices), np.array(tiles, np.int64).reshape(shape))


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
        device: one of `corejax.devices()`.
        memory_kind: a kind of memory that the device has (`device.addressable_memories()`); by default its default
            memory.

    Raises:
        TypeError: `device` is not a device.
        ValueError: the device has no memory of that kind.
    """

    __slots__ = ("_device", "device_tuple", "memory_kind")

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        backends.find()  # imports the backend, which is needed to recognise its devices
        backends.of_device(device)
        self._device = device
        self.device_tuple = (device,)
        self.memory_kind = memory_kind_of("SingleDeviceSharding", device, memory_kind)

    @property
    def mesh(self) -> Grid:
        """A grid without axes."""
        return Grid((), self.device_tuple)

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """Return a single tile, the whole array."""
        return np.zeros((1,) * (ndim + 1), np.int64)

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """Return no axes for each dimension, because no dimension is split."""
        return ((),) * ndim

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """Return the sharding itself."""
        return self

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        """Return the sharding on the same device with another kind of memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and (self._device, self.memory_kind) == (
            other._device,
            other.memory_kind,
        )

    def __hash__(self) -> int:
        return hash((self._device, self.memory_kind))

    def __param_text__(self) -> tuple[Any, ...]:
        return device_sharding, (devices_text(self.device_tuple),)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind is not None else ""
        return f"SingleDeviceSharding(device={self._device!r}{kind})"


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Return the sharding of a whole array on one device: `SingleDeviceSharding(device, memory_kind=memory_kind)`."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@register_param_type
def device_sharding(device: str) -> SingleDeviceSharding:
    """Return a single-device sharding from its text in a printed program."""
    return SingleDeviceSharding(*devices_of_text(device))


def memory_kind_of(what: str, device: Any, kind: str | None) -> str | None:
    """Return a kind of a device's memory, by default the default memory's; None if its backend has no kinds of memory.

    Raises:
        ValueError: the device has no memory of that kind. `what` names the function or class in the message.
    """
    if not hasattr(device, "addressable_memories"):
        if kind is not None:
            raise ValueError(f"{what}: memory_kind={kind!r}: the backend of {device} has no kinds of memory")
        return None
    default = str(device.default_memory().kind)
    if kind is None or kind == default:
        return default
    known = [memory.kind for memory in device.addressable_memories()]
    if kind not in known:
        raise ValueError(f"{what}: memory_kind={kind!r}: {device} has memory of the kinds {', '.join(known)}")
    return kind


def other_memory(sharding: Sharding) -> str | None:
    """Return the kind of memory that a sharding names; None for the devices' default memory."""
    kind = sharding.memory_kind
    if kind is None or not sharding.device_tuple:
        return None
    return None if kind == memory_kind_of("sharding", sharding.device_tuple[0], None) else kind


class Shard:
    """The part of an array that one device holds.

    Attributes:
        device: the device.
        index: the part's index in the whole array.
        replica_id: the device's number among the devices that hold the same part.
        data: the part, an array; None if the device belongs to another process.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Device, index: Index, data: Array | None, replica_id: int = 0) -> None:
        self.device = device
        self.index = index
        self.data: Any = data  # not `Array | None`: few programs have shards of other processes
        self.replica_id = replica_id

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data!r})"


def __getattr__(name: str) -> Any:
    """Return a mesh or sharding class that another plugin contributes."""
    if name.startswith("_"):  # every import from this module asks for `__path__`
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = exported(f"sharding.{name}")
    if value is None:
        raise missing_name(f"sharding.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *exported_names("sharding")})
