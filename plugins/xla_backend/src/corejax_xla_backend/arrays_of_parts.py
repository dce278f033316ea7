"""Arrays over several devices: their parts, and functions that make such arrays from parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, backends, dtypes, get_aval
from corejax.extend.devices import buffer_of
from corejax.extend.types import device_buffer
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, is_addressable, own_parts

_LOCAL_REFCOUNT = 2  # references to an object that only a local variable holds: the variable's and the argument's


def parts_of(x: Array) -> list[Array]:
    """Return the parts of an array over several devices that are on this process's devices, in its sharding's order.

    Raises:
        RuntimeError: the array was deleted.
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
    """Make an array over several devices from parts that a function returns.

    Args:
        shape: shape of the whole array.
        sharding: the array's sharding.
        data_callback: returns the part at an index, a tuple of slices. It is called once for each index of a part on
            this process's devices. A part that is a view of other memory is read after the last call.
        dtype: dtype of the array; by default of the first part. It is required if this process has none of the devices.

    Raises:
        ValueError: a part has a wrong shape or dtype, or the sharding does not divide a size.
    """
    name, shape = "make_array_from_callback", _shape("make_array_from_callback", shape)
    checked = _sharding(name, sharding)
    own = own_parts(checked, shape)
    parts: list[np.ndarray[Any, Any]] = []
    for index in own.indices:
        part = _part(name, data_callback(index), own.shape, dtype, index)
        dtype = part.dtype
        # Another owner may write the next part to the same memory, or return the same array again, and jaxlib must not
        # get one array twice.
        parts.append(part.copy() if getrefcount(part) > _LOCAL_REFCOUNT else part)
    if dtype is None:
        raise ValueError(f"{name}: this process has none of the devices of {checked}; pass the dtype")
    return _from_host_parts(parts, own.numbers, ShapedArray(shape, np.dtype(dtype)), checked)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Make arrays over the devices of several processes from this process's part of each.

    Args:
        sharding: the arrays' sharding, or a pytree of shardings that is a prefix of `local_data`.
        local_data: a pytree of NumPy arrays: the contiguous part of each array on this process's devices.
        global_shape: shape of the whole array, with None for sizes to infer. By default all sizes are inferred: in
            dimensions that are split over processes, the global size is the local size times the number of parts.

    Raises:
        ValueError: the data does not have the shape of this process's part.
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
    arrays = [_from_local(name, _sharding(name, s), x, g) for s, x, g in zip(shardings, leaves, shapes, strict=True)]
    return tree.tree_unflatten(treedef, arrays)


def _from_local(name: str, sharding: Sharding, data: Any, shape: Any) -> Array:
    """Make an array from this process's part of it."""
    local = np.asarray(data)
    tiles = sharding.tiles(local.ndim)
    own = np.vectorize(lambda i: is_addressable(sharding.device_tuple[i]), otypes=[bool])(tiles).any(-1)
    where = np.nonzero(own)
    steps = [len(np.unique(w)) for w in where]  # number of this process's tiles in each dimension; they form a box
    starts = [int(w.min()) for w in where]
    box = tuple(slice(a, a + n) for a, n in zip(starts, steps, strict=True))
    if not own[box].all():
        raise ValueError(f"{name}: this process's parts of {sharding} are not a contiguous part of an array")
    guess = tuple(size * count // step for size, count, step in zip(local.shape, own.shape, steps, strict=True))
    full = guess if shape is None else tuple(g if d is None else d for g, d in zip(guess, shape, strict=True))
    part = sharding.shard_shape(full)
    if local.shape == full:  # every process has the whole array
        return make_array_from_callback(full, sharding, lambda index: local[index], local.dtype)
    if tuple(size * step for size, step in zip(part, steps, strict=True)) != local.shape:
        raise ValueError(
            f"{name}: this process's part of an array of shape {full} over {sharding} has shape "
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
    """Make an array over several devices from arrays on them; the result shares their memory.

    Args:
        shape: shape of the whole array.
        sharding: the array's sharding.
        arrays: the parts on this process's devices, in any order.
        dtype: dtype of the array; it is required if there are no parts.

    Raises:
        TypeError: a part is not an array.
        ValueError: a part has a wrong shape or dtype, or a device has no part or two.
    """
    from corejax_xla_backend import _jaxlib

    name, shape = "make_array_from_single_device_arrays", _shape("make_array_from_single_device_arrays", shape)
    checked = _sharding(name, sharding)
    wanted, by_device = checked.shard_shape(shape), {}
    for i, x in enumerate(arrays):
        if type(x) is not Array:
            raise TypeError(f"{name}: arrays[{i}] must be an array on one device, got {x!r} of type {type(x).__name__}")
        if x.shape != wanted or (dtype is not None and x.dtype != dtype):
            raise ValueError(
                f"{name}: parts of an array of shape {shape} over {checked} have shape {wanted}"
                f"{f' and dtype {dtype}' if dtype is not None else ''}, but arrays[{i}] is {x.aval.str_short()}"
            )
        dtype = x.dtype
        if isinstance(x.device, Sharding) or x.device in by_device:
            raise ValueError(f"{name}: arrays[{i}] is on {x.device}, which has another one of the arrays")
        by_device[x.device] = x
    own = [d for d in checked.device_tuple if is_addressable(d)]
    missing, foreign = [d for d in own if d not in by_device], [d for d in by_device if d not in own]
    if missing or foreign:
        raise ValueError(
            f"{name}: there must be one array on each device of the sharding: devices without one: "
            f"{missing or 'none'}, devices outside the sharding: {foreign or 'none'}"
        )
    if dtype is None:
        raise ValueError(f"{name}: there are no parts; pass the dtype")
    aval = ShapedArray(shape, np.dtype(dtype)).refined(checked.of_type(len(shape)))
    backend = backends.of_device(checked.device_tuple[0])
    buffers = [buffer_of(by_device[d], backend) for d in own]
    if isinstance(checked, SingleDeviceSharding):
        return by_device[own[0]]
    (held,) = aval.parts()
    return Array(_jaxlib.join_parts(buffers, held, _jaxlib.placement(checked, held.ndim)), aval)


def _from_host_parts(
    parts: Sequence[np.ndarray[Any, Any]], numbers: Sequence[int], aval: ShapedArray, sharding: Sharding
) -> Array:
    """Make an array from copies of parts, because the caller may write to them; device i gets `parts[numbers[i]]`."""
    from corejax_xla_backend import _jaxlib

    if isinstance(sharding, SingleDeviceSharding):
        backend = backends.of_device(sharding.device_tuple[0])
        return Array(backend.put(np.array(parts[0]), aval, sharding.device_tuple[0]), aval)
    aval = aval.refined(sharding.of_type(aval.ndim))
    alias = len(parts) < len(numbers)  # devices with the same part share one copy
    own = [_jaxlib.aligned_copy(part) for part in parts] if alias else parts
    place = _jaxlib.placement(sharding, aval.ndim)
    return Array(_jaxlib.put_each([own[i] for i in numbers], aval, place, alias=alias), aval)


def _shape(name: str, value: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; raise TypeError or ValueError if it is not one."""
    try:
        shape = tuple(map(int, value))
    except TypeError:
        raise TypeError(f"{name}: shape must be a tuple of integers, got {value!r}") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"{name}: shape has a negative size: {shape}")
    return shape


def _sharding(name: str, value: Any) -> Sharding:
    """Return a sharding that has devices, from a sharding, device or spec."""
    from corejax_xla_backend.sharding_constraint import as_sharding

    sharding = as_sharding(f"{name}: sharding", value)
    if not sharding.device_tuple:
        raise ValueError(f"{name}: {sharding} has no devices")
    return sharding


def _part(name: str, part: Any, shape: tuple[int, ...], dtype: Any, index: Any) -> np.ndarray[Any, Any]:
    """Return a part as a NumPy array; raise ValueError if its shape or dtype is wrong."""
    if type(part) is np.ndarray and part.dtype is dtype and part.shape == shape:
        return part
    aval = get_aval(part)
    value = np.asarray(part, dtype=aval.dtype)
    if value.shape != shape or (dtype is not None and value.dtype != np.dtype(dtype)):
        expected = f"shape {shape}" + (f" and dtype {dtypes.short_name(np.dtype(dtype))}" if dtype is not None else "")
        raise ValueError(f"{name}: the part at {index} must have {expected}, the function returned {aval.str_short()}")
    return value
