"""Arrays over several devices.

A `Placement` is jaxlib's sharding of a buffer over several devices. One is made for each sharding and rank, and kept:
C++ compares its identity, and what it was made of comes back with the buffer. Positions in it number the devices as the
program does. jaxlib checks nothing: a part of the wrong shape ends the process, so parts are made and counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, get_aval
from corejax.extend.messages import drop_oldest
from corejax_xla_backend.sharding import OwnParts, Sharding, bounds, other_memory, own_parts

from ._absent import absent, is_absent
from ._buffers import (
    Buffer,
    aligned_copy,
    aligned_empty,
    block_until_ready,
    is_immutable,
    moved_to,
    put,
    put_on,
)
from ._client import Device, device_sharding
from ._parts import copied_parts, would_import_jax
from ._probe import xla_client
from ._readback import to_numpy
from ._transfers import unguarded

HloSharding = xla_client.HloSharding


class Placement(xla_client.GSPMDSharding):
    """Where the parts of buffers of one rank lie.

    Attributes:
        sharding: what it was made of.
        told: what types of arrays there say of it; None where they say nothing.
        tiles: positions of the devices that hold them.
    """

    __slots__ = ("sharding", "tiles", "told")

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    sharding: Any
    told: Any
    tiles: np.ndarray[Any, Any]

    num_devices = property(lambda self: len(self._internal_device_list))
    memory_kind = property(lambda self: self._memory_kind)
    device_set = property(lambda self: set(self._internal_device_list))

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self._hlo_sharding

    def place(self, value: Any) -> Buffer:
        """A buffer, or a host value, with its parts here."""
        return place_parts(value, self)


@lru_cache(maxsize=4096)
def placement(sharding: Sharding, ndim: int) -> Placement:
    """The one placement of buffers of `ndim` dimensions that a sharding says.

    Raises:
        BackendError: it is over devices of a topology, on which no array can be.
    """
    if is_absent(sharding.device_tuple[0]):
        raise absent("arrays are put on devices", sharding.device_tuple[0])
    tiles = sharding.tiles(ndim)
    made = Placement(sharding.device_tuple, hlo_of_tiles(tiles), other_memory(sharding))
    made.sharding, made.tiles, made.told = sharding, tiles, sharding.of_type(ndim)
    return made


def hlo_of_tiles(tiles: np.ndarray[Any, Any]) -> Any:
    """XLA's own sharding with the same tiles."""
    if tiles.shape[-1] == tiles.size:
        return HloSharding.replicate()
    shape, copies = (tiles.shape[:-1], "") if tiles.shape[-1] == 1 else (tiles.shape, " last_tile_dim_replicate")
    sizes, ids = ",".join(map(str, shape)), ",".join(map(str, tiles.reshape(-1).tolist()))
    return HloSharding.from_string(f"{{devices=[{sizes}]{ids}{copies}}}")


def tiles_of_hlo(hlo: Any, ndim: int, count: int) -> np.ndarray[Any, Any]:
    """The same as `tiles` of a sharding, of XLA's own one for a program over `count` devices."""
    if hlo is None or not hlo.is_tiled():
        return np.arange(count).reshape((1,) * ndim + (count,))
    shape = tuple(hlo.tile_assignment_dimensions())
    ids = np.array(hlo.tile_assignment_devices(), np.int64)
    return ids.reshape(*shape[:ndim], -1)


# -- values ------------------------------------------------------------------------------------------------------------


def put_parts(value: np.ndarray, aval: ShapedArray, place: Placement, *, alias: bool = True) -> Buffer:
    """Return a buffer over several devices, committed to them, with the value of a NumPy array that the parts divide.

    Memory may be shared if `alias` says that the array is not written to any more.
    """
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    layout = own_parts(place.sharding, value.shape)
    views = [value[(*index, ...)] for index in layout.indices]  # dots: no scalars of NumPy's
    # XLA copies what lies in one piece, to the one device that has it; copies that several share are made here.
    by_xla = not alias and len(views) == len(layout.devices) and all(view.flags.c_contiguous for view in views)
    parts = views if alias or by_xla else [aligned_copy(view) for view in views]
    return put_each([parts[i] for i in layout.numbers], aval, place, alias=not by_xla)


def put_each(parts: Sequence[np.ndarray], aval: ShapedArray, place: Placement, *, alias: bool = True) -> Buffer:
    """Return a buffer of one part for each of this process's devices, in their order.

    Memory may be shared if `alias` says that the parts are not written to any more.

    Raises:
        ValueError: a part has another shape.
    """
    layout = own_parts(place.sharding, aval.shape)
    for part in parts:
        if part.shape != layout.shape or part.dtype != aval.dtype:
            raise ValueError(
                f"parts have shape {layout.shape} and dtype {aval.dtype}, got {part.shape} and {part.dtype}"
            )
    alias = alias or not aval.size  # jaxlib cannot copy nothing where there are more processes
    return put_on(aval.refined(place.told), place, list(parts), list(layout.devices), True, alias=alias)


def join_parts(parts: Sequence[Buffer], aval: ShapedArray, place: Placement) -> Buffer:
    """A buffer over several devices of one buffer on each of this process's; their memory becomes its own."""
    return Buffer(aval.refined(place.told), place, list(parts), True, _skip_checks=True)


def renumbered(buffer: Buffer, place: Placement) -> Buffer:
    """The buffer at a placement that numbers its devices in another order, and has the same part on each."""
    parts = dict(zip(own_parts(buffer._sharding.sharding, buffer.aval.shape).devices, parts_of(buffer), strict=True))
    return join_parts([parts[d] for d in own_parts(place.sharding, buffer.aval.shape).devices], buffer.aval, place)


def parts_of(buffer: Buffer) -> list[Buffer]:
    """Buffers of the parts, on this process's devices in order.

    On 0.10 C++ imports jax where that is installed: it looks there for a type of the parts, and remembers for jax that
    there was none if it does not find it. Instead these are copies, on CPUs, of dtypes that DLPack has.

    Raises:
        RuntimeError: the buffer was deleted.
    """
    if buffer.is_deleted():
        raise RuntimeError("this device buffer was deleted, or donated to a computation.")
    place, aval = buffer._sharding, buffer.aval
    layout = own_parts(place.sharding, aval.shape)
    part = ShapedArray(layout.shape, aval.dtype, aval.weak_type)
    if 0 in aval.shape:  # those that XLA makes may be of the whole array's shape
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
    """The value of a buffer over several devices as a read-only NumPy array, kept with the buffer.

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
    """Copies of parts where taking the buffer apart would import jax; None where it does not, or they cannot be had."""
    if layout.devices[0].platform != "cpu" or not layout.complete or not would_import_jax():
        return None
    block_until_ready((buffer,))

    def replicated(devices: tuple[Device, ...]) -> Placement:
        return Placement(devices, HloSharding.replicate(), buffer._sharding.memory_kind)

    return copied_parts(buffer, layout.shape, layout.devices, wanted, replicated)


def _views(buffer: Buffer, layout: OwnParts) -> list[np.ndarray]:
    """The parts as NumPy arrays, of which each is taken once; of the memory itself where that can be read."""
    if layout.devices[0].platform == "cpu" and 0 not in buffer.aval.shape and not buffer.is_deleted():
        copied = _copied_parts(buffer, layout, layout.first)
        if copied is not None:
            return copied
        block_until_ready((buffer,))
        held = buffer._arrays
        try:
            return [np.asarray(memoryview(held[i])) for i in layout.first]
        except BufferError:  # Python's buffers lack the type
            pass
    parts = parts_of(buffer)
    return [to_numpy(parts[i]) for i in layout.first]


def move_parts(buffer: Buffer, place: Placement) -> Buffer | None:
    """The buffer with its parts at another placement, where no program has to move them.

    Parts that stay as they are go from device to device. Others are cut anew on CPUs alone, whose memory is the host's:
    views of it are taken, and a program would take longer.

    Returns:
        None where neither can be.
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
            return _cut_anew(buffer, place, before, after)
    one_client = before.devices[0].client is after.devices[0].client and source.told == place.told
    same_tiles = np.array_equal(source.tiles, place.tiles)
    return moved_to(buffer, place._internal_device_list, place) if one_client and same_tiles else None


def _is_ours(place: Placement, layout: OwnParts) -> bool:
    """Whether all devices are this process's."""
    return len(layout.devices) == place.tiles.size


def _cut_anew(buffer: Buffer, place: Placement, before: OwnParts, after: OwnParts) -> Buffer:
    """Of views of the parts' memory where each is of one part; of the whole value else."""
    known = {bounds(index): number for number, index in enumerate(before.indices)}
    numbers = [known.get(bounds(index)) for index in after.indices]
    if len(before.indices) > 1 and None in numbers:
        return put_parts(whole(buffer), buffer.aval, place)
    views = _views(buffer, before)
    if len(views) == 1:
        return put_parts(views[0], buffer.aval, place)
    return put_each([views[numbers[i]] for i in after.numbers], buffer.aval, place)  # type: ignore[index]


def place_parts(value: Any, place: Placement) -> Buffer:
    """A buffer, wherever it is, or a host value, with its parts at a placement."""
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


_scalars: dict[Any, Buffer] = {}  # operands of eager operations with numbers, the same again and again
_MAX_SCALARS = 1024


def _scalar(host: np.ndarray, aval: Any, place: Placement) -> Buffer:
    """A number on all devices; the one that was put there before, unless a program took it."""
    key = (place, aval, host.tobytes())
    found = _scalars.get(key)
    if found is None or found.is_deleted():
        drop_oldest(_scalars, _MAX_SCALARS - 1)
        found = _scalars[key] = put_parts(host, aval, place)
    return found


def forget_scalars() -> None:
    """Drop the numbers that are kept on devices."""
    _scalars.clear()
