"""`corejax.experimental.multihost_utils`: values between processes. Each function is called by all of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import corejax
from corejax.extend import tree
from corejax_parallel.mesh import Mesh, grid
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]

_numbers = itertools.count()  # the same in all processes, which call in the same order


def sync_global_devices(name: str, timeout_seconds: float = 300.0) -> None:
    """Wait until all processes are here.

    Args:
        name: the same in all of them.
        timeout_seconds: how long to wait.

    Raises:
        BackendError: one did not come.
    """
    corejax.distributed.wait_at_barrier(f"{name} {next(_numbers)}", timeout_seconds)


def _over_processes() -> Mesh:
    """A device of each process."""
    first: dict[int, Any] = {}
    for device in corejax.devices():
        first.setdefault(device.process_index, device)
    return Mesh(grid([first[i] for i in sorted(first)], (len(first),)), ("processes",))


def _stacked(leaf: Any) -> Any:
    """An array of what all processes have, along a first axis; each has its own part."""
    value = np.asarray(leaf)[None]
    sharding = NamedSharding(_over_processes(), PartitionSpec("processes"))
    return corejax.make_array_from_process_local_data(sharding, value)


def _everywhere(fun: Any, stacked: Any) -> np.ndarray[Any, Any]:
    whole = NamedSharding(stacked.sharding.mesh, PartitionSpec())
    return np.asarray(corejax.jit(fun, out_shardings=whole)(stacked))


def _same(x: Any) -> Any:
    return x


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """What all processes have, for each of them.

    Args:
        in_tree: a pytree of arrays, of the same structure, shapes and dtypes in all processes.
        tiled: whether arrays are concatenated along their first axis; else they are stacked. Of arrays that are spread
            over the processes the parts are put together, and it is True.

    Returns:
        A pytree of NumPy arrays.

    Raises:
        ValueError: `tiled` is False, and an array is spread over the processes.
    """

    def one(leaf: Any) -> Any:
        if isinstance(leaf, corejax.Array) and not leaf.is_fully_addressable:
            return _put_together(leaf, tiled)
        found = np.asarray(leaf)[None] if corejax.process_count() == 1 else _everywhere(_same, _stacked(leaf))
        return found.reshape(-1, *found.shape[2:]) if tiled else found

    return tree.tree_map(one, in_tree)


def _put_together(x: Any, tiled: bool) -> np.ndarray[Any, Any]:
    """The whole value of an array whose parts several processes have."""
    if not tiled:
        raise ValueError(
            f"process_allgather: an array of shape {x.shape} is spread over the processes, which have none of their "
            "own to be stacked; with tiled=True it is put together"
        )
    devices = sorted(x.sharding.device_set, key=lambda device: int(device.id))
    mesh = x.sharding.mesh if isinstance(x.sharding, NamedSharding) else Mesh(np.array(devices), ("devices",))
    return np.asarray(corejax.device_put(x, NamedSharding(mesh, PartitionSpec())))


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """What one process has, for all.

    Args:
        in_tree: a pytree of arrays, of the same structure, shapes and dtypes in all processes.
        is_source: whether this is the process; exactly one says True. By default that with number 0.

    Returns:
        A pytree of NumPy arrays.
    """
    source = corejax.process_index() == 0 if is_source is None else bool(is_source)
    if corejax.process_count() == 1:
        return tree.tree_map(np.asarray, in_tree)

    def one(leaf: Any) -> Any:
        value = np.asarray(leaf)
        flat = np.frombuffer(value.tobytes(), np.uint8)  # any dtype, and no number changes
        total = _everywhere(_sum, _stacked(flat if source else np.zeros_like(flat)))
        return np.frombuffer(total.tobytes(), value.dtype).reshape(value.shape)

    return tree.tree_map(one, in_tree)


def _sum(x: Any) -> Any:
    return corejax.lax.reduce_sum(x, (0,))


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over the mesh, of the parts that each process has.

    Args:
        local_inputs: a pytree of arrays: this process's part of each, along what is split over processes.
        global_mesh: a mesh of devices of all processes.
        pspecs: how the arrays are split over it: a pytree of `PartitionSpec`s that is a prefix; None for copies.

    Returns:
        A pytree of arrays.

    Raises:
        TypeError, ValueError: a spec is none, or does not fit.
    """
    leaves, specs, treedef = _with_specs("host_local_array_to_global_array", local_inputs, pspecs)
    return tree.tree_unflatten(
        treedef,
        [
            corejax.make_array_from_process_local_data(NamedSharding(global_mesh, spec), np.asarray(x))
            for x, spec in zip(leaves, specs, strict=True)
        ],
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """This process's parts of arrays, as arrays over its own devices; arguments as above, whole arrays first.

    An array of which this process has all parts is returned itself.
    """
    leaves, specs, treedef = _with_specs("global_array_to_host_local_array", global_inputs, pspecs)

    def local(x: Any, spec: Any) -> Any:
        sharding = NamedSharding(global_mesh, spec)
        if not sharding.is_equivalent_to(getattr(x, "sharding", None), np.ndim(x)):
            x = corejax.jit(_same, out_shardings=sharding)(x)
        if x.is_fully_addressable:
            return x
        own = NamedSharding(global_mesh.local_mesh, spec)
        parts = [shard.data for shard in x.addressable_shards]
        counts = own.tiles(x.ndim).shape[:-1]
        shape = tuple(size * count for size, count in zip(parts[0].shape, counts, strict=True))
        return corejax.make_array_from_single_device_arrays(shape, own, parts)

    return tree.tree_unflatten(treedef, [local(x, spec) for x, spec in zip(leaves, specs, strict=True)])


def _with_specs(what: str, values: Any, pspecs: Any) -> tuple[list[Any], list[Any], Any]:
    leaves, treedef = tree.tree_flatten(values)
    structure = tree.tree_unflatten(treedef, range(treedef.num_leaves))
    specs = tree.broadcast_prefix(pspecs, structure, lambda x: x is None or isinstance(x, PartitionSpec))
    for spec in specs:
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise TypeError(f"{what}: pspecs is a pytree of PartitionSpecs (corejax.P), got {spec!r}")
    return leaves, [PartitionSpec() if spec is None else spec for spec in specs], treedef


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Have all processes check that they have the same.

    Raises:
        AssertionError: this one has something else than process 0.
    """
    expected = broadcast_one_to_all(in_tree)
    for got, want in zip(tree.tree_leaves(in_tree), tree.tree_leaves(expected), strict=True):
        if not np.array_equal(np.asarray(got), want, equal_nan=np.asarray(got).dtype.kind in "fc"):
            raise AssertionError(f"{fail_message}: process {corejax.process_index()} has {got!r}, process 0 {want!r}")
