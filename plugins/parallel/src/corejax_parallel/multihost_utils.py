"""`corejax.experimental.multihost_utils`: values between processes. Each function is called by all of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import corejax
from corejax.extend import tree
from corejax_parallel.mesh import Mesh
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec

__all__ = ["assert_equal", "broadcast_one_to_all", "process_allgather", "sync_global_devices"]

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
    grid = np.empty(len(first), dtype=object)
    grid[:] = [first[i] for i in sorted(first)]
    return Mesh(grid, ("processes",))


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
        tiled: whether arrays are concatenated along their first axis; else they are stacked.

    Returns:
        A pytree of NumPy arrays.
    """

    def one(leaf: Any) -> Any:
        found = np.asarray(leaf)[None] if corejax.process_count() == 1 else _everywhere(_same, _stacked(leaf))
        return found.reshape(-1, *found.shape[2:]) if tiled else found

    return tree.tree_map(one, in_tree)


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


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Have all processes check that they have the same.

    Raises:
        AssertionError: this one has something else than process 0.
    """
    expected = broadcast_one_to_all(in_tree)
    for got, want in zip(tree.tree_leaves(in_tree), tree.tree_leaves(expected), strict=True):
        if not np.array_equal(np.asarray(got), want, equal_nan=np.asarray(got).dtype.kind in "fc"):
            raise AssertionError(f"{fail_message}: process {corejax.process_index()} has {got!r}, process 0 {want!r}")
