"""`corejax.sharding`: where the parts of an array are.

A sharding says it as an array of positions (`tiles`): which of its devices, in order, holds which tile of an array. All
else is made of that: which slice a device holds, XLA's text, and whether two shardings place alike.
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
    """Devices of one platform as text, as they are in printed programs: `cpu:0-3,7`, of a topology `cpu@8x8:0-63`."""
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
    """The devices of such a text.

    Raises:
        ValueError: this process has no such device.
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
    """The devices of a topology, which need not be there, `cpu@8x8`: of the backend's that has the platform.

    Raises:
        BackendError: it compiles for no devices but its own.
    """
    platform, _, name = text.partition("@")
    backend, _ = backends.find(platform)
    return list(backend.topology(name, platform))


class Grid(NamedTuple):
    """Devices in a grid with named axes: what XLA's partitioner wants to know of a mesh.

    Attributes:
        shape_tuple: name and size of each axis.
        device_tuple: the devices, row by row; empty for a grid of any devices.
    """

    shape_tuple: tuple[tuple[str, int], ...]
    device_tuple: tuple[Device, ...]


class Sharding:
    """Where the parts of an array are; equal ones mean the same placement.

    A subclass has `device_tuple`, `tiles`, and `mesh` with `dimension_axes` for what compiles programs.

    Attributes:
        device_tuple: the devices, in the order in which a program over them numbers them.
        memory_kind: the kind of their memory, None for their default one.
        mesh: its devices in a grid: has `shape_tuple` and `device_tuple` (see `Grid`).
    """

    device_tuple: tuple[Device, ...]
    memory_kind: str | None
    mesh: Any

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """Which device holds which part of an array of `ndim` dimensions.

        Returns:
            Positions in `device_tuple`: an axis for each dimension, and a last one for the devices that hold the same.

        Raises:
            ValueError: it says more than `ndim` dimensions have.
        """
        raise NotImplementedError(f"{type(self).__name__}.tiles")

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """For each dimension the axes of `mesh` that it is split over; None where the compiler may choose."""
        raise NotImplementedError(f"{type(self).__name__}.dimension_axes")

    def of_type(self, ndim: int) -> Refinement | None:
        """Return the refinement of types of arrays of `ndim` dimensions: None but for meshes with Explicit axes."""
        return None

    def like(self, tiles: np.ndarray[Any, Any]) -> Sharding:
        """The sharding over the same devices with these tiles; with the mesh's axes, where they say it."""
        return TiledSharding(self.device_tuple, tiles)

    def over(self, devices: Sequence[Device]) -> Sharding:
        """Of one over a mesh without devices the same over these, row by row."""
        raise NotImplementedError(f"{type(self).__name__}.over")

    def known_devices(self) -> tuple[Device, ...]:
        """Of one over a mesh without devices those that it is most likely about; empty where nothing tells."""
        return self.device_tuple

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """Of arrays with one more dimension at `dim`, which the compiler may split.

        Args:
            dim: where the dimension is.
            names: axes of the mesh, where there is one, over which it is split instead.
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
        """Those of this process."""
        return frozenset(d for d in self.device_tuple if is_addressable(d))

    @property
    def has_addressable_devices(self) -> bool:
        """Whether a device is this process's."""
        return any(map(is_addressable, self.device_tuple))

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Refuse shapes that it does not fit.

        Raises:
            ValueError: an array of this shape has too few dimensions, or a size does not divide.
        """
        check_fits(type(self).__name__, self, tuple(aval_shape))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are this process's."""
        return all(map(is_addressable, self.device_tuple))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return self.tiles(self._least_ndim()).shape[-1] == len(self.device_tuple)

    def _least_ndim(self) -> int:
        """Dimensions that an array has at least."""
        return 0

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Device, Index]:
        """Which part of an array of a shape each device holds.

        Raises:
            ValueError: a size does not divide.
        """
        shape = tuple(global_shape)
        tiles, part = self.tiles(len(shape)), _part_shape(self, shape)
        found: dict[int, Index] = {}
        for place in np.ndindex(tiles.shape[:-1]):
            index = tuple(
                slice(i * size, (i + 1) * size) if count > 1 else slice(None)
                for i, size, count in zip(place, part, tiles.shape[:-1], strict=True)
            )
            found.update((int(position), index) for position in tiles[place])
        return {device: found[i] for i, device in enumerate(self.device_tuple)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Device, Index]:
        """The same of this process's devices."""
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if is_addressable(d)}

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a device's part of an array of a shape.

        Raises:
            ValueError: a size does not divide.
        """
        return _part_shape(self, tuple(global_shape))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of `ndim` dimensions are placed alike."""
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
    counts = sharding.tiles(len(shape)).shape[:-1]
    for axis, (size, count) in enumerate(zip(shape, counts, strict=True)):
        if size % count:
            raise ValueError(
                f"{sharding} splits axis {axis} into {count} parts, and an array of shape {shape} has size "
                f"{size} there, which {count} does not divide. Pad the array, or leave the axis whole"
            )
    return tuple(size // count for size, count in zip(shape, counts, strict=True))


class OwnParts(NamedTuple):
    """The parts of an array that this process has.

    Attributes:
        shape: of a part.
        indices: which parts of the array they are, each once.
        devices: the devices, in order.
        numbers: for each device which of `indices` it holds.
        first: for each of `indices` the first of `devices` that holds it, as a position.
        complete: whether they are the whole array.
    """

    shape: tuple[int, ...]
    indices: tuple[Index, ...]
    devices: tuple[Device, ...]
    numbers: tuple[int, ...]
    first: tuple[int, ...]
    complete: bool


@lru_cache(maxsize=4096)
def own_parts(sharding: Sharding, shape: tuple[int, ...]) -> OwnParts:
    """The parts of an array of a shape that this process has.

    Raises:
        ValueError: a size does not divide.
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
    """An index, hashable."""
    return tuple((part.start, part.stop) for part in index)


def check_fits(what: str, sharding: Sharding, shape: tuple[int, ...]) -> None:
    """Refuse an array that a sharding does not divide.

    Raises:
        ValueError: with `what` in front, which says whose argument the array is.
    """
    try:
        sharding.shard_shape(shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def is_addressable(device: Any) -> bool:
    """Whether a device is this process's."""
    if getattr(device, "topology", None) is not None:
        return False
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()


class TiledSharding(Sharding):
    """Parts in an order that no axes of a mesh say; results of compiled programs may have one.

    Args:
        device_tuple: the devices.
        tiles: positions of devices; as many axes as arrays have dimensions, and a last one for copies.
    """

    memory_kind = None

    def __init__(self, device_tuple: tuple[Device, ...], tiles: np.ndarray[Any, Any]) -> None:
        self.device_tuple = device_tuple
        self._tiles = tiles
        self._key = (device_tuple, tiles.shape, tiles.tobytes())
        self._hash = hash(self._key)

    @cached_property
    def mesh(self) -> Grid:  # type: ignore[override]
        """An axis for each dimension, and one for copies."""
        axes = tuple((f"_{i}", size) for i, size in enumerate(self._tiles.shape))
        return Grid(axes, tuple(self.device_tuple[i] for i in self._tiles.reshape(-1).tolist()))

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """As given."""
        if ndim != self._tiles.ndim - 1:
            raise ValueError(f"{self} is of arrays of {self._tiles.ndim - 1} dimensions, got one of {ndim}")
        return self._tiles

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """An axis for each."""
        return tuple((f"_{i}",) for i in range(ndim))

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """With the new dimension whole."""
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
    """The sharding of a printed program."""
    return TiledSharding(devices_of_text(devices), np.array(tiles, np.int64).reshape(shape))


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
        device: one of `corejax.devices()`.
        memory_kind: a kind of memory that the device has (`device.addressable_memories()`); its default one unless
            given.

    Raises:
        TypeError: it is no device.
        ValueError: the device has no such memory.
    """

    __slots__ = ("_device", "device_tuple", "memory_kind")

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        backends.find()  # imported when first asked for
        backends.of_device(device)
        self._device = device
        self.device_tuple = (device,)
        self.memory_kind = memory_kind_of("SingleDeviceSharding", device, memory_kind)

    @property
    def mesh(self) -> Grid:  # type: ignore[override]
        """A grid without axes."""
        return Grid((), self.device_tuple)

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """One, the whole."""
        return np.zeros((1,) * (ndim + 1), np.int64)

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """None is split."""
        return ((),) * ndim

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """Itself."""
        return self

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        """The same device, with a kind of memory."""
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
    """The whole array on one device: `SingleDeviceSharding(device, memory_kind=memory_kind)`."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@register_param_type
def device_sharding(device: str) -> SingleDeviceSharding:
    """The sharding of a printed program."""
    return SingleDeviceSharding(*devices_of_text(device))


def memory_kind_of(what: str, device: Any, kind: str | None) -> str | None:
    """A kind of memory that the device has: its default one unless given; None where its backend tells of none.

    Raises:
        ValueError: it has no such memory; `what` says whose it is.
    """
    if not hasattr(device, "addressable_memories"):
        if kind is not None:
            raise ValueError(f"{what}: memory_kind={kind!r}: the backend of {device} tells of no kinds of memory")
        return None
    default = str(device.default_memory().kind)
    if kind is None or kind == default:
        return default
    known = [memory.kind for memory in device.addressable_memories()]
    if kind not in known:
        raise ValueError(f"{what}: memory_kind={kind!r}: {device} has memory of the kinds {', '.join(known)}")
    return kind


def other_memory(sharding: Sharding) -> str | None:
    """The kind of memory that a sharding names, where that is not the devices' default one."""
    kind = sharding.memory_kind
    if kind is None or not sharding.device_tuple:
        return None
    return None if kind == memory_kind_of("sharding", sharding.device_tuple[0], None) else kind


class Shard:
    """The part of an array that one device holds.

    Attributes:
        device: the device.
        index: which part of the whole array it is.
        replica_id: its number among the devices that hold the same part.
        data: the part, an array; None of another process's.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Device, index: Index, data: Array | None, replica_id: int = 0) -> None:
        self.device = device
        self.index = index
        self.data = data
        self.replica_id = replica_id

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data!r})"


def __getattr__(name: str) -> Any:
    """Meshes and shardings over them, which another plugin contributes."""
    found = None if name.startswith("_") else exported(f"sharding.{name}")
    if found is None:
        raise missing_name(f"sharding.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *exported_names("sharding")})
