"""Arrays made of parts on several devices, and taken apart into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, backends, dtypes, get_aval
from corejax.extend.devices import buffer_of
from corejax.extend.types import device_buffer, physical_aval
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, is_addressable, own_parts

_ALONE = 2  # references to what a local variable alone has: its own, and the argument's


def parts_of(x: Array) -> list[Array]:
    """The parts of an array that lies over several devices, on this process's, in the order of its sharding.

    Raises:
        RuntimeError: it was deleted.
    """
    from corejax_xla_backend import _jaxlib

    buffers = _jaxlib.parts_of(device_buffer(x))
    if x.dtype.names is None:
        return [Array(buffer, buffer.aval) for buffer in buffers]
    inner = len(device_buffer(x).aval.shape) - x.ndim
    return [Array(b, ShapedArray(b.aval.shape[: len(b.aval.shape) - inner], x.dtype)) for b in buffers]


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[..., Any], dtype: Any = None
) -> Array:
    """An array over several devices of parts that a function gives, one for each device of this process.

    Args:
        shape: of the whole array.
        sharding: where its parts are.
        data_callback: gives the part at an index, a tuple of slices; called once for each index. A part that is a view
            of other memory is read when it has given all of them.
        dtype: of the array; of the first part unless given. Needed where no device is this process's.

    Raises:
        ValueError: a part has another shape or dtype than the sharding asks for, or a size does not divide.
    """
    name, shape = "make_array_from_callback", _shape("make_array_from_callback", shape)
    checked = _sharding(name, sharding)
    own = own_parts(checked, shape)
    parts: list[np.ndarray[Any, Any]] = []
    for index in own.indices:
        part = _part(name, data_callback(index), own.shape, dtype, index)
        dtype = part.dtype
        # Whoever else has it may write the next part to it, or give it again, which jaxlib takes no array for twice.
        parts.append(part.copy() if getrefcount(part) > _ALONE else part)
    if dtype is None:
        raise ValueError(f"{name}: none of the devices of {checked} is this process's; give the dtype")
    return _of_host_parts(parts, own.numbers, ShapedArray(shape, np.dtype(dtype)), checked)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Arrays over several devices, of which this process has a part: a contiguous one for each leaf.

    Args:
        sharding: where the parts are; also a pytree of shardings that is a prefix of `local_data`.
        local_data: what of the arrays is on this process's devices, a pytree of NumPy arrays.
        global_shape: of the whole; None for a size that is to be worked out. As many times the process's own in the
            dimensions that are split over processes, unless given.

    Raises:
        ValueError: the data is not this process's part of such an array.
    """
    from corejax.extend import tree
    from corejax_xla_backend.sharding_constraint import shardings_of

    name = "make_array_from_process_local_data"
    leaves, treedef = tree.tree_flatten(local_data)
    shardings = shardings_of(name + ": sharding", treedef, sharding)
    shapes = [None] * len(leaves)
    if global_shape is not None:
        is_shape = lambda x: isinstance(x, tuple | list) and all(d is None or isinstance(d, int) for d in x)  # noqa: E731
        shapes = tree.broadcast_prefix(global_shape, local_data, is_shape)
    made = [_of_local(name, _sharding(name, s), x, g) for s, x, g in zip(shardings, leaves, shapes, strict=True)]
    return tree.tree_unflatten(treedef, made)


def _of_local(name: str, sharding: Sharding, given: Any, shape: Any) -> Array:
    local = np.asarray(given)
    tiles = sharding.tiles(local.ndim)
    own = np.vectorize(lambda i: is_addressable(sharding.device_tuple[i]), otypes=[bool])(tiles).any(-1)
    where = np.nonzero(own)
    steps = [len(np.unique(w)) for w in where]  # this process's tiles in each dimension: a contiguous box of them
    starts = [int(w.min()) for w in where]
    box = tuple(slice(a, a + n) for a, n in zip(starts, steps, strict=True))
    if not own[box].all():
        raise ValueError(f"{name}: this process's parts of {sharding} are no contiguous part of an array")
    guess = tuple(size * count // step for size, count, step in zip(local.shape, own.shape, steps, strict=True))
    full = guess if shape is None else tuple(g if d is None else d for g, d in zip(guess, shape, strict=True))
    part = sharding.shard_shape(full)
    if local.shape == full:  # the whole, which every process has
        return make_array_from_callback(full, sharding, lambda index: local[index], local.dtype)
    if tuple(size * step for size, step in zip(part, steps, strict=True)) != local.shape:
        raise ValueError(
            f"{name}: of an array of shape {full} over {sharding} this process has "
            f"{tuple(n * s for n, s in zip(part, steps, strict=True))}, got data of shape {local.shape}"
        )
    offset = tuple(a * n for a, n in zip(starts, part, strict=True))

    def at(index: tuple[slice, ...]) -> Any:
        begins = [i.start or 0 for i in index]
        return local[tuple(slice(b - o, b - o + n) for b, o, n in zip(begins, offset, part, strict=True))]

    return make_array_from_callback(full, sharding, at, local.dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """An array over several devices of arrays that are on them, whose memory is shared.

    Args:
        shape: of the whole array.
        sharding: where its parts are.
        arrays: the parts on this process's devices, in any order.
        dtype: of the array; needed where there are no parts.

    Raises:
        TypeError: a part is no array.
        ValueError: a part has another shape or dtype than the sharding asks for, or a device has none or two of them.
    """
    from corejax_xla_backend import _jaxlib

    name, shape = "make_array_from_single_device_arrays", _shape("make_array_from_single_device_arrays", shape)
    checked = _sharding(name, sharding)
    wanted, by_device = checked.shard_shape(shape), {}
    for i, x in enumerate(arrays):
        if type(x) is not Array:
            raise TypeError(f"{name}: arrays[{i}] is an array on one device, got {x!r} of type {type(x).__name__}")
        if x.shape != wanted or (dtype is not None and x.dtype != dtype):
            raise ValueError(
                f"{name}: parts of an array of shape {shape} over {checked} have shape {wanted}"
                f"{f' and dtype {dtype}' if dtype is not None else ''}, and arrays[{i}] is {x.aval.str_short()}"
            )
        dtype = x.dtype
        if isinstance(x.device, Sharding) or x.device in by_device:
            raise ValueError(f"{name}: arrays[{i}] is on {x.device}, as another one of the arrays is")
        by_device[x.device] = x
    own = [d for d in checked.device_tuple if is_addressable(d)]
    missing, foreign = [d for d in own if d not in by_device], [d for d in by_device if d not in own]
    if missing or foreign:
        raise ValueError(
            f"{name}: one array on each device of the sharding: {missing or 'none'} have none, and {foreign or 'none'} "
            "are not its devices"
        )
    if dtype is None:
        raise ValueError(f"{name}: there are no parts; give the dtype")
    aval = ShapedArray(shape, np.dtype(dtype)).refined(checked.of_type(len(shape)))
    backend = backends.of_device(checked.device_tuple[0])
    buffers = [buffer_of(by_device[d], backend) for d in own]
    if isinstance(checked, SingleDeviceSharding):
        return by_device[own[0]]
    held = physical_aval(aval)
    return Array(_jaxlib.join_parts(buffers, held, _jaxlib.placement(checked, held.ndim)), aval)


def _of_host_parts(
    parts: Sequence[np.ndarray[Any, Any]], numbers: Sequence[int], aval: ShapedArray, sharding: Sharding
) -> Array:
    """An array of parts that are the caller's, who may write to them; `numbers` says which one each device gets."""
    from corejax_xla_backend import _jaxlib

    if isinstance(sharding, SingleDeviceSharding):
        backend = backends.of_device(sharding.device_tuple[0])
        return Array(backend.put(np.array(parts[0]), aval, sharding.device_tuple[0]), aval)
    aval = aval.refined(sharding.of_type(aval.ndim))
    alias = len(parts) < len(numbers)  # one copy for all of the devices that hold the same
    own = [_jaxlib.aligned_copy(part) for part in parts] if alias else parts
    place = _jaxlib.placement(sharding, aval.ndim)
    return Array(_jaxlib.put_each([own[i] for i in numbers], aval, place, alias=alias), aval)


def _shape(name: str, given: Any) -> tuple[int, ...]:
    try:
        shape = tuple(map(int, given))
    except TypeError:
        raise TypeError(f"{name}: shape is a tuple of integers, got {given!r}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"{name}: shape has a negative size: {shape}")
    return shape


def _sharding(name: str, given: Any) -> Sharding:
    from corejax_xla_backend.sharding_constraint import as_sharding

    found = as_sharding(f"{name}: sharding", given)
    if not found.device_tuple:
        raise ValueError(f"{name}: {found} has no devices")
    return found


def _part(name: str, given: Any, shape: tuple[int, ...], dtype: Any, index: Any) -> np.ndarray[Any, Any]:
    if type(given) is np.ndarray and given.dtype is dtype and given.shape == shape:
        return given
    aval = get_aval(given)
    value = np.asarray(given, dtype=aval.dtype)
    if value.shape != shape or (dtype is not None and value.dtype != np.dtype(dtype)):
        expected = f"shape {shape}" + (f" and dtype {dtypes.short_name(np.dtype(dtype))}" if dtype is not None else "")
        raise ValueError(f"{name}: the part at {index} has {expected}, and the function gave {aval.str_short()}")
    return value
