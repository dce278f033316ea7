"""`corejax.experimental.multihost_utils`: exchange values between processes. All processes must call each function."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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

_numbers = itertools.count()  # numbers the barriers; all processes call them in the same order


def sync_global_devices(name: str, timeout_seconds: float = 300.0) -> None:
    """Wait until all processes have called this function.

    Args:
        name: name of the barrier, the same in all processes.
        timeout_seconds: how long to wait.

    Raises:
        BackendError: waiting for a process timed out.
    """
    corejax.distributed.wait_at_barrier(f"{name} {next(_numbers)}", timeout_seconds)


def _over_processes() -> Mesh:
    """Return a mesh of one device of each process."""
    first: dict[int, Any] = {}
    devices: Sequence[Any] = corejax.devices()
    for device in devices:
        first.setdefault(device.process_index, device)
    return Mesh(grid([first[i] for i in sorted(first)], (len(first),)), ("processes",))


def _stacked(leaf: Any) -> Any:
    """Stack the values of all processes along a first axis, as an array of which each process has its own part."""
    value = np.asarray(leaf)[None]
    sharding = NamedSharding(_over_processes(), PartitionSpec("processes"))
    return corejax.make_array_from_process_local_data(sharding, value)


def _replicated(fun: Any, stacked: Any) -> np.ndarray[Any, Any]:
    """Apply a function and return the result on each process."""
    everywhere = NamedSharding(stacked.sharding.mesh, PartitionSpec())
    return np.asarray(corejax.jit(fun, out_shardings=everywhere)(stacked))


def _identity(x: Any) -> Any:
    return x


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gather the values of all processes, and return the result on each.

    Args:
        in_tree: a pytree of arrays, of the same structure, shapes and dtypes in all processes.
        tiled: whether to concatenate arrays along their first axis instead of stacking them. Must be True for arrays
            that are sharded over the processes; their parts are assembled to the whole array.

    Returns:
        A pytree of NumPy arrays.

    Raises:
        ValueError: `tiled` is False and an array is sharded over the processes.
    """

    def one(leaf: Any) -> Any:
        if isinstance(leaf, corejax.Array) and not leaf.is_fully_addressable:
            return _assembled(leaf, tiled)
        gathered = np.asarray(leaf)[None] if corejax.process_count() == 1 else _replicated(_identity, _stacked(leaf))
        return gathered.reshape(-1, *gathered.shape[2:]) if tiled else gathered

    return tree.tree_map(one, in_tree)


def _assembled(x: Any, tiled: bool) -> np.ndarray[Any, Any]:
    """Return the whole value of an array that is sharded over several processes."""
    if not tiled:
        raise ValueError(
            f"process_allgather: an array of shape {x.shape} is sharded over the processes, so there are no arrays of "
            "single processes to stack; tiled=True returns the whole array"
        )
    devices = sorted(x.sharding.device_set, key=lambda device: int(device.id))
    mesh = x.sharding.mesh if isinstance(x.sharding, NamedSharding) else Mesh(np.array(devices), ("devices",))
    return np.asarray(corejax.device_put(x, NamedSharding(mesh, PartitionSpec())))


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Return the values of one process on all processes.

    Args:
        in_tree: a pytree of arrays, of the same structure, shapes and dtypes in all processes.
        is_source: whether this process is the source; exactly one process must pass True. By default process 0.

    Returns:
        A pytree of NumPy arrays.
    """
    source = corejax.process_index() == 0 if is_source is None else bool(is_source)
    if corejax.process_count() == 1:
        return tree.tree_map(np.asarray, in_tree)

    def one(leaf: Any) -> Any:
        value = np.asarray(leaf)
        # The sum of the source's bytes and the others' zeros preserves every bit of every dtype.
        flat = np.frombuffer(value.tobytes(), np.uint8)
        total = _replicated(_sum, _stacked(flat if source else np.zeros_like(flat)))
        return np.frombuffer(total.tobytes(), value.dtype).reshape(value.shape)

    return tree.tree_map(one, in_tree)


def _sum(x: Any) -> Any:
    return corejax.lax.reduce_sum(x, (0,))


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Assemble arrays over a mesh from the parts of each process.

    Args:
        local_inputs: a pytree of arrays, each this process's part of a global array.
        global_mesh: a mesh of devices of all processes.
        pspecs: a pytree of `PartitionSpec`s that is a prefix of `local_inputs`: how the global arrays are split over
            the mesh. None stands for replicated arrays.

    Returns:
        A pytree of global arrays.

    Raises:
        TypeError, ValueError: a spec is not a `PartitionSpec`, or does not fit its array.
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
    """Return this process's parts of global arrays, as arrays over its own devices.

    The inverse of `host_local_array_to_global_array`. An array with all parts on this process is returned itself.

    Args:
        global_inputs: a pytree of global arrays.
        global_mesh: a mesh of devices of all processes.
        pspecs: a pytree of `PartitionSpec`s that is a prefix of `global_inputs`; None stands for replicated arrays.
    """
    leaves, specs, treedef = _with_specs("global_array_to_host_local_array", global_inputs, pspecs)

    def local(x: Any, spec: Any) -> Any:
        sharding = NamedSharding(global_mesh, spec)
        current: Any = getattr(x, "sharding", None)
        if not sharding.is_equivalent_to(current, np.ndim(x)):
            x = corejax.jit(_identity, out_shardings=sharding)(x)
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
    """Raise AssertionError if the values of this process differ from those of process 0.

    Args:
        in_tree: a pytree of arrays, of the same structure, shapes and dtypes in all processes.
        fail_message: the beginning of the error's message.
    """
    expected = broadcast_one_to_all(in_tree)
    for got, want in zip(tree.tree_leaves(in_tree), tree.tree_leaves(expected), strict=True):
        if not np.array_equal(np.asarray(got), want, equal_nan=np.asarray(got).dtype.kind in "fc"):
            raise AssertionError(f"{fail_message}: process {corejax.process_index()} has {got!r}, process 0 {want!r}")
