"""Buffers over several devices.

A `Placement` is jaxlib's sharding of a buffer over several devices. There is exactly one for each sharding and rank,
cached, because C++ compares placements by identity; it carries corejax's sharding, so that a buffer leads back to it.
Its tiles number the devices by their position in the program. jaxlib checks nothing, and a part of the wrong shape
aborts the process, so this module makes the parts and checks their number and shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, get_aval
from corejax.extend.devices import aligned_empty
from corejax.extend.messages import drop_oldest
from corejax_xla_backend.sharding import OwnParts, Sharding, bounds, other_memory, own_parts

from ._absent import absent, is_absent
from ._buffers import aligned_copy, block_until_ready, is_immutable, moved_to, put, put_on
from ._classes import Buffer, Device
from ._client import device_sharding
from ._parts import copied_parts, would_import_jax
from ._probe import xla_client
from ._readback import to_numpy
from ._transfers import unguarded

HloSharding = xla_client.HloSharding


class Placement(xla_client.GSPMDSharding):
    """jaxlib's form of a sharding, for buffers of one rank.

    Attributes:
        sharding: the corejax sharding.
        aval_sharding: the sharding in the avals of arrays placed here; None if their avals carry none.
        tiles: array of device positions, an axis for each dimension and a last one for copies.
    """

    __slots__ = ("aval_sharding", "sharding", "tiles")

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    sharding: Any
    aval_sharding: Any
    tiles: np.ndarray[Any, Any]

    num_devices = property(lambda self: len(self._internal_device_list))
    memory_kind = property(lambda self: self._memory_kind)
    device_set = property(lambda self: set(self._internal_device_list))

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self._hlo_sharding

    def place(self, value: Any) -> Buffer:
        """Return a buffer or host value resharded to this placement."""
        return place_parts(value, self)


@lru_cache(maxsize=4096)
def placement(sharding: Sharding, ndim: int) -> Placement:
    """Return the cached placement of a sharding for buffers of `ndim` dimensions.

    Raises:
        BackendError: its devices belong to a topology and can hold no arrays.
    """
    if is_absent(sharding.device_tuple[0]):
        raise absent("arrays are put on devices", sharding.device_tuple[0])
    tiles = sharding.tiles(ndim)
    made = Placement(sharding.device_tuple, hlo_of_tiles(tiles), other_memory(sharding))
    made.sharding, made.tiles, made.aval_sharding = sharding, tiles, sharding.of_type(ndim)
    return made


def hlo_of_tiles(tiles: np.ndarray[Any, Any]) -> Any:
    """Return the XLA sharding with the given tiles."""
    if tiles.shape[-1] == tiles.size:
        return HloSharding.replicate()
    shape, copies = (tiles.shape[:-1], "") if tiles.shape[-1] == 1 else (tiles.shape, " last_tile_dim_replicate")
    sizes, ids = ",".join(map(str, shape)), ",".join(map(str, tiles.reshape(-1).tolist()))
    return HloSharding.from_string(f"{{devices=[{sizes}]{ids}{copies}}}")


def tiles_of_hlo(hlo: Any, ndim: int, count: int) -> np.ndarray[Any, Any]:
    """Return the tiles of an XLA sharding, for a value of `ndim` dimensions in a program over `count` devices."""
    if hlo is None or not hlo.is_tiled():
        return np.arange(count).reshape((1,) * ndim + (count,))
    shape = tuple(hlo.tile_assignment_dimensions())
    ids = np.array(hlo.tile_assignment_devices(), np.int64)
    return ids.reshape(*shape[:ndim], -1)


# -- values ------------------------------------------------------------------------------------------------------------


def put_parts(value: np.ndarray, aval: ShapedArray, place: Placement, *, alias: bool = True) -> Buffer:
    """Return a buffer over several devices, committed to them, with the value of a NumPy array.

    Args:
        value: the value; its shape must be divisible into the parts.
        aval: the aval of the buffer, before the placement's sharding is added.
        place: the placement of the parts.
        alias: promises that the array is not modified afterwards, so that its memory may be shared.
    """
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    layout = own_parts(place.sharding, value.shape)
    indices: Sequence[Any] = layout.indices
    views = [value[(*index, ...)] for index in indices]  # the ellipsis prevents NumPy scalars
    # XLA copies contiguous parts that go to a single device; parts that several devices share are copied here.
    by_xla = not alias and len(views) == len(layout.devices) and all(view.flags.c_contiguous for view in views)
    parts = views if alias or by_xla else [aligned_copy(view) for view in views]
    return put_each([parts[i] for i in layout.numbers], aval, place, alias=not by_xla)


def put_each(parts: Sequence[np.ndarray], aval: ShapedArray, place: Placement, *, alias: bool = True) -> Buffer:
    """Return a buffer made of one part for each of this process's devices, in order.

    Args:
        parts: the parts, equal for devices that hold copies.
        aval: the aval of the whole buffer, before the placement's sharding is added.
        place: the placement of the parts.
        alias: promises that the parts are not modified afterwards, so that their memory may be shared.

    Raises:
        ValueError: a part has the wrong shape or dtype.
    """
    layout = own_parts(place.sharding, aval.shape)
    for part in parts:
        if part.shape != layout.shape or part.dtype != aval.dtype:
            raise ValueError(
                f"parts have shape {layout.shape} and dtype {aval.dtype}, got {part.shape} and {part.dtype}"
            )
    alias = alias or not aval.size  # with several processes, jaxlib cannot copy empty arrays
    return put_on(aval.refined(place.aval_sharding), place, list(parts), list(layout.devices), True, alias=alias)


def join_parts(parts: Sequence[Buffer], aval: ShapedArray, place: Placement) -> Buffer:
    """Join buffers, one on each of this process's devices, to a buffer over all devices that takes their memory."""
    return Buffer(aval.refined(place.aval_sharding), place, list(parts), True, _skip_checks=True)


def renumbered(buffer: Buffer, place: Placement) -> Buffer:
    """Return the buffer at a placement that orders the devices differently, with the same part on each device."""
    parts = dict(zip(own_parts(buffer._sharding.sharding, buffer.aval.shape).devices, parts_of(buffer), strict=True))
    return join_parts([parts[d] for d in own_parts(place.sharding, buffer.aval.shape).devices], buffer.aval, place)


def parts_of(buffer: Buffer) -> list[Buffer]:
    """Return the parts as buffers on this process's devices, in order.

    On 0.10, C++ imports jax if it is installed, to look up a class for the parts; if the lookup fails, jax gets the
    cached failure later. To avoid that, the parts on CPUs are copied by DLPack if it has their dtype.

    Raises:
        RuntimeError: the buffer was deleted.
    """
    if buffer.is_deleted():
        raise RuntimeError("this device buffer was deleted, or donated to a computation.")
    place, aval = buffer._sharding, buffer.aval
    layout = own_parts(place.sharding, aval.shape)
    part = ShapedArray(layout.shape, aval.dtype, aval.weak_type)
    if 0 in aval.shape:  # XLA may give empty parts the shape of the whole array
        return [put(np.empty(part.shape, part.dtype), part, d, committed=True) for d in layout.devices]
    copied = _copied_parts(buffer, layout, range(len(layout.devices)))
    if copied is not None:
        pairs = zip(copied, layout.devices, strict=True)
        with unguarded():
            return [put(value, part, device, committed=True, alias=True) for value, device in pairs]
    return [
        Buffer(part, device_sharding(device), [each], True, _skip_checks=True)
        for device, each in zip(layout.devices, buffer._arrays, strict=True)
    ]


def whole(buffer: Buffer) -> np.ndarray:
    """Return the value of a buffer over several devices as a read-only NumPy array, cached on the buffer.

    Raises:
        RuntimeError: the buffer was deleted, or other processes hold parts of it.
    """
    kept = buffer._npy_value
    if kept is not None and not buffer.is_deleted():
        return kept
    layout = own_parts(buffer._sharding.sharding, buffer.aval.shape)
    if not layout.complete:
        raise RuntimeError(
            f"an array of shape {buffer.aval.shape} has parts on devices of other processes, so its value is not here; "
            "x.addressable_shards are the parts that are"
        )
    views = _views(buffer, layout)
    if len(views) == 1:
        value = np.array(views[0])
    else:
        value = aligned_empty(buffer.aval.shape, np.dtype(buffer.aval.dtype))
        for index, view in zip(layout.indices, views, strict=True):
            value[index] = view
    value.flags.writeable = False
    buffer._npy_value = value
    return value


def _copied_parts(buffer: Buffer, layout: OwnParts, wanted: Sequence[int]) -> list[np.ndarray] | None:
    """Copy parts if splitting the buffer would import jax; return None if it would not, or if no copy is possible."""
    if layout.devices[0].platform != "cpu" or not layout.complete or not would_import_jax():
        return None
    block_until_ready((buffer,))

    def replicated(devices: tuple[Device, ...]) -> Placement:
        return Placement(devices, HloSharding.replicate(), buffer._sharding.memory_kind)

    return copied_parts(buffer, layout.shape, layout.devices, wanted, replicated)


def _views(buffer: Buffer, layout: OwnParts) -> list[np.ndarray]:
    """Return each distinct part once as a NumPy array: a view of its memory if that is readable, else a copy."""
    if layout.devices[0].platform == "cpu" and 0 not in buffer.aval.shape and not buffer.is_deleted():
        copied = _copied_parts(buffer, layout, layout.first)
        if copied is not None:
            return copied
        block_until_ready((buffer,))
        held = buffer._arrays
        try:
            return [np.asarray(memoryview(held[i])) for i in layout.first]
        except BufferError:  # the buffer protocol lacks the dtype
            pass
    parts = parts_of(buffer)
    return [to_numpy(parts[i]) for i in layout.first]


def move_parts(buffer: Buffer, place: Placement) -> Buffer | None:
    """Move a buffer to another placement without a compiled program, if possible.

    If both placements have the same tiles, the parts are copied from device to device. Otherwise, CPU buffers are split
    anew from views of their memory, which is faster than a program.

    Returns:
        None if the move needs a program.
    """
    source, shape = buffer._sharding, buffer.aval.shape
    if source is place:
        return buffer
    if not isinstance(source, Placement) or buffer.is_deleted():
        return None
    before, after = own_parts(source.sharding, shape), own_parts(place.sharding, shape)
    if 0 in shape:
        return put_parts(np.empty(shape, buffer.aval.dtype), buffer.aval, place)
    if not _is_ours(source, before) or not _is_ours(place, after):
        return None
    if before.devices[0].platform == after.devices[0].platform == "cpu":
        with unguarded():
            return _split_anew(buffer, place, before, after)
    same_client = before.devices[0].client is after.devices[0].client and source.aval_sharding == place.aval_sharding
    same_tiles = np.array_equal(source.tiles, place.tiles)
    return moved_to(buffer, place._internal_device_list, place) if same_client and same_tiles else None


def _is_ours(place: Placement, layout: OwnParts) -> bool:
    """Return whether all devices of a placement belong to this process."""
    return len(layout.devices) == place.tiles.size


def _split_anew(buffer: Buffer, place: Placement, before: OwnParts, after: OwnParts) -> Buffer:
    """Build the new parts from views of the old ones if each equals an old part, else from the whole value."""
    known = {bounds(index): number for number, index in enumerate(before.indices)}
    numbers = [known.get(bounds(index)) for index in after.indices]
    if len(before.indices) > 1 and None in numbers:
        return put_parts(whole(buffer), buffer.aval, place)
    views = _views(buffer, before)
    if len(views) == 1:
        return put_parts(views[0], buffer.aval, place)
    parts = [views[numbers[i]] for i in after.numbers]  # type: ignore[index]  # all are known here
    return put_each(parts, buffer.aval, place)


def place_parts(value: Any, place: Placement) -> Buffer:
    """Return a buffer or host value resharded to a placement."""
    if isinstance(value, Buffer):
        moved = move_parts(value, place)
        if moved is not None:
            return moved
        aval: Any = value.aval
        host = whole(value) if isinstance(value._sharding, Placement) else to_numpy(value)
        return put_parts(host, aval, place) if host.ndim else _scalar(host, aval, place)
    aval = get_aval(value)
    host = np.asarray(value, aval.dtype)
    return put_parts(host, aval, place, alias=is_immutable(host))


# Eager operations with numbers use the same few scalars again and again, so their sharded buffers are cached.
_scalars: dict[Any, Buffer] = {}
_MAX_SCALARS = 1024


def _scalar(host: np.ndarray, aval: Any, place: Placement) -> Buffer:
    """Return a scalar on all devices, from the cache unless the cached buffer was donated to a program."""
    key = (place, aval, host.tobytes())
    cached = _scalars.get(key)
    if cached is None or cached.is_deleted():
        drop_oldest(_scalars, _MAX_SCALARS - 1)
        cached = _scalars[key] = put_parts(host, aval, place)
    return cached


def forget_scalars() -> None:
    """Clear the cache of scalars on devices."""
    _scalars.clear()
