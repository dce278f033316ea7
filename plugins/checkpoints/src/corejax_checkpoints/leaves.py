"""Convert the leaves of a tree to the data that is saved: a description, and the parts that this process writes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corejax
from corejax.extend import Array, Tracer, as_array, dtypes, host_value
from corejax.extend.types import array_method, device_buffer, numbers_of
from corejax_checkpoints.files import Host
from corejax_checkpoints.index import Leaf, dtype_text

_PYTHON = {kind: kind.__name__ for kind in (bool, int, float, complex, str)}


class Taken(NamedTuple):
    """A leaf at the time of the save.

    Attributes:
        leaf: the description, without parts.
        own: the parts that this process writes: pairs of their start in the array and their numbers.
    """

    leaf: Leaf
    own: tuple[tuple[tuple[int, ...], Host], ...]


def take(path: str, value: Any, process: int, copy: bool) -> Taken:
    """Return the data of a leaf that this process saves.

    Each part of an array over several devices is written by the process that has its first copy, and everything else by
    process 0.

    Args:
        path: path of the leaf, for the index and messages.
        value: the leaf.
        process: number of this process.
        copy: whether the leaf may be modified before it is written; NumPy arrays are then copied.

    Raises:
        TypeError: the leaf's type cannot be saved; the message names the leaf.
        RuntimeError: the array was deleted.
    """
    name = path or "the tree, which is one leaf,"
    if isinstance(value, Tracer):
        raise TypeError(f"save: {name} is traced, {value!r}; save outside of the transformed function")
    if array_method(type(value)) is not None:
        value = as_array(value)
    if type(value) is Array:
        return _of_array(path, name, value, process)
    if isinstance(value, np.ndarray | np.generic):
        kind = "numpy" if isinstance(value, np.ndarray) else "scalar"
        host = np.array(value) if copy else np.asarray(value)
        leaf = Leaf(path, kind, _named(name, host.dtype), host.shape)
        return Taken(leaf, _whole(host) if process == 0 else ())
    if type(value) in _PYTHON:
        return Taken(Leaf(path, _PYTHON[type(value)], value=value), ())
    raise TypeError(
        f"save: {name} is {value!r} of type {type(value).__qualname__}; leaves can be arrays, Python numbers and "
        "strings. Leave it out of the tree, or make its class a node: corejax.tree.register_pytree_node"
    )


def _named(name: str, dtype: np.dtype[Any]) -> str:
    try:
        return dtype_text(dtype)
    except TypeError as error:
        raise TypeError(f"save: {name}: {error}") from None


def _of_array(path: str, name: str, x: Array, process: int) -> Taken:
    leaf = Leaf(path, "array", shape=x.shape, weak_type=x.aval.weak_type)
    if x.dtype.names is None:
        leaf = leaf._replace(dtype=_named(name, x.dtype))
    else:
        leaf = leaf._replace(dtype=dtypes.short_name(x.dtype), impl=_generator(name, x), inner=_inner(x))
    try:
        return Taken(leaf, _own(x, process))
    except RuntimeError as error:
        error.add_note(f"save: the array is {name} of the tree")
        raise


def _generator(name: str, keys: Array) -> str:
    impl = corejax.random.key_impl(keys) if dtypes.issubdtype(keys.dtype, dtypes.prng_key) else None
    if not isinstance(impl, str):
        raise TypeError(
            f"save: {name} has dtype {dtypes.short_name(keys.dtype)}, which a checkpoint cannot store; only keys of "
            "registered generators can be saved. Save its numbers: corejax.random.key_data(x)"
        )
    return impl


def _inner(x: Array) -> tuple[int, ...]:
    return tuple(dtypes.element_of(x.dtype)[1])


def _own(x: Array, process: int) -> tuple[tuple[tuple[int, ...], Host], ...]:
    if device_buffer(x) is None or len(x.sharding.device_tuple) == 1:
        return _whole(_numbers(x)) if process == 0 else ()
    inner = len(_inner(x)) if x.dtype.names is not None else 0
    return tuple(
        (tuple(int(index.start or 0) for index in shard.index) + (0,) * inner, _numbers(shard.data))
        for shard in x.global_shards
        if shard.replica_id == 0 and shard.data is not None
    )


def _numbers(x: Any) -> Host:
    host = host_value(x)
    return host if x.dtype.names is None else numbers_of(host)


def _whole(host: Host) -> tuple[tuple[tuple[int, ...], Host], ...]:
    return (((0,) * host.ndim, host),)
