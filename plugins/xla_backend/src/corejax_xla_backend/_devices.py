"""Public functions on devices: `corejax.devices`, `device_put` and related functions."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, as_array, backends, config, dtypes, get_aval, tree
from corejax.extend.devices import Device, bound_device, placed
from corejax.extend.types import Packed, device_buffer
from corejax_xla_backend._parts import stored_arrays
from corejax_xla_backend.memory_spaces import Space, in_space, other_memory_of
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, check_fits, is_addressable, other_memory
from corejax_xla_backend.sharding_constraint import as_sharding, constrain, is_spec, settled


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of all processes, of a backend or platform ("cpu", "cuda"); by default of the default one."""
    implementation, platform = backends.find(backend)
    return list(implementation.devices(platform))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Return the devices of one process, by default of this one.

    Raises:
        ValueError: no process has that number.
    """
    index = host_id if process_index is None else process_index
    all_devices = devices(backend)
    if index is None:
        return [device for device in all_devices if is_addressable(device)]
    if not 0 <= index < process_count(backend):
        raise ValueError(f"local_devices: process_index must be below {process_count(backend)}, got {index}")
    return [device for device in all_devices if getattr(device, "process_index", 0) == index]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices of all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of this process's devices."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """Return the number of this process."""
    return int(getattr(local_devices(backend=backend)[0], "process_index", 0))


def process_count(backend: str | None = None) -> int:
    """Return the number of processes."""
    return len({getattr(device, "process_index", 0) for device in devices(backend)})


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of all processes."""
    return list(range(process_count(backend)))


def default_backend() -> str:
    """Return the platform that programs are compiled for by default."""
    backend, platform = backends.find()
    return platform or backend.platform()


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Put arrays on a device and bind them to it, so that programs which take them run there.

    The function does not wait for the transfers.

    Args:
        x: a pytree of arrays.
        device: a device, a sharding, a `PartitionSpec` over the mesh of the context, a `memory.Space` (which changes
            only the memory), or a pytree of these that is a prefix of `x`. By default the arrays go to the default
            device and are not bound to it. Memory kinds do not apply to traced values.
        src: accepted for compatibility, and ignored.
        donate: whether the arrays are deleted afterwards.
        may_alias: False copies, so that the results share no memory with `x`.

    Raises:
        TypeError: a leaf of `device` is not a device or sharding.
        ValueError: the structure of `device` is not a prefix of `x`, or both `donate` and `may_alias` are true.
    """
    if donate and may_alias:
        raise ValueError("device_put: donate and may_alias exclude each other")
    if device is None or not _is_pytree(device):
        return _all_to(x, device, bool(donate), may_alias)
    leaves, prefix = tree.tree_flatten(device, is_leaf=_is_place)
    try:
        parts = prefix.flatten_up_to(x)
    except ValueError:
        what = "; ".join(tree.prefix_errors(device, x, _is_place))
        raise ValueError(
            f"device_put: device must be a device or sharding, or a pytree of these that is a prefix of x; {what}"
        ) from None
    moved = [_all_to(part, place, bool(donate), may_alias) for part, place in zip(parts, leaves, strict=True)]
    return tree.tree_unflatten(prefix, moved)


def _is_place(x: Any) -> bool:
    """Return whether a value says where an array goes: a device, sharding, spec, memory space, or None."""
    return x is None or hasattr(x, "device_set") or hasattr(x, "device_kind") or is_spec(x) or isinstance(x, Space)


def _is_pytree(device: Any) -> bool:
    """Return whether a value is a container of places."""
    return not _is_place(device) and tree.is_tree_node(type(device))


def _all_to(x: Any, place: Any, donate: bool, may_alias: bool | None) -> Any:
    """Put all arrays of a pytree at one place."""
    from corejax_xla_backend.transfers import explicit_put

    if isinstance(place, Space):
        return tree.tree_map(lambda leaf: _all_to(leaf, _in_space(leaf, place), donate, may_alias), x)
    backend = backends.find().backend
    where: Any = None
    if place is not None:
        where = as_sharding("device_put: device", place)
        if not where.device_tuple:
            raise ValueError(f"device_put: {where} has no devices; its mesh is an AbstractMesh")
        backend = backends.of_device(where.device_tuple[0])
        if isinstance(where, SingleDeviceSharding) and other_memory(where) is None:
            where = where.device_tuple[0]

    def put(leaf: Any) -> Any:
        if isinstance(leaf, Tracer):
            is_sharded = isinstance(where, Sharding) and not isinstance(where, SingleDeviceSharding)
            return constrain(leaf, in_space(where, Space.Device), "device_put") if is_sharded else leaf
        if type(leaf) is Packed:
            return Packed(leaf.aval, tuple(map(put, leaf.parts)))
        if isinstance(where, Sharding):
            return put_at(leaf, where)
        return to_place(leaf, as_array(leaf), where)

    def put_at(leaf: Any, sharding: Sharding) -> Any:
        array = None if _is_callers(leaf) else as_array(leaf)
        aval = get_aval(leaf) if array is None else array.aval
        check_fits("device_put", sharding, aval.shape)
        to = settled(sharding, aval.ndim)
        put_copy = None if isinstance(to, SingleDeviceSharding) else getattr(backend, "put_copy", None)
        if array is not None or put_copy is None:
            return to_place(leaf, as_array(leaf) if array is None else array, to)
        return Array(put_copy(leaf, aval, to))

    def to_place(leaf: Any, array: Array, to: Any) -> Any:
        held = device_buffer(array)
        # An array in another memory may be on the right device already, so that the sharding names the default memory.
        if not isinstance(to, Sharding) and other_memory_of(held) is not None:
            to = SingleDeviceSharding(bound_device(array, backend) if to is None else to)
        moved = placed(Array(np.array(array), array.aval) if may_alias is False else array, backend, to)
        if donate and type(leaf) is Array and moved is not leaf:
            moved.block_until_ready()
            leaf.delete()
        return moved

    with explicit_put():
        return tree.tree_map(put, x)


def _in_space(leaf: Any, space: Space) -> Any:
    """Return an array's sharding in another memory; None for a traced value, which stays unchanged."""
    if isinstance(leaf, Tracer):
        return None
    place = as_array(leaf).device
    return in_space(place if isinstance(place, Sharding) else SingleDeviceSharding(place), space)


def _is_callers(x: Any) -> bool:
    """Return whether a value is a NumPy array that needs no conversion, and that its owner may write to."""
    return type(x) is np.ndarray and not config.x64_compat and x.dtype.isnative and x.size > 0


def device_get(x: Any) -> Any:
    """Return the arrays of a pytree as NumPy arrays; keys and other extended dtypes stay unchanged."""
    for leaf in tree.tree_leaves(x):
        if type(leaf) is Array:
            leaf.copy_to_host_async()

    def fetched(leaf: Any) -> Any:
        return np.asarray(leaf) if type(leaf) is Array and not dtypes.is_extended(leaf.dtype) else leaf

    return tree.tree_map(fetched, x)


def copy_to_host_async(x: Any) -> Any:
    """Start the transfer of all arrays of a pytree to the host, and return the pytree.

    For other leaves, call their method `copy_to_host_async` if they have one.
    """
    for leaf in tree.tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a pytree are computed, and return the pytree."""
    if type(x) is Array:
        return x.block_until_ready()
    flat = type(x) in _FLAT and {*map(type, x)} == _ARRAYS
    for leaf in x if flat else stored_arrays(tree.tree_leaves(x)):
        if type(leaf) is Array:
            leaf.block_until_ready()
    return x


_FLAT, _ARRAYS = {tuple, list}, {Array}  # the usual results, a tuple or list of arrays, need no flattening


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return all arrays that are referenced and not deleted. This is slow; use it to find memory leaks.

    Args:
        platform: return only arrays on this platform's devices ("cpu"); by default on all devices and on the host.
    """
    live = [x for x in [x for x in gc.get_objects() if type(x) is Array] if not x.is_deleted()]
    if platform is None:
        return live
    wanted: Sequence[Any] = devices(platform)
    return [x for x in live if device_buffer(x) is not None and any(device in wanted for device in x.devices())]
