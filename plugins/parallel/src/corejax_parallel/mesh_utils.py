"""`corejax.experimental.mesh_utils`: create grids of devices for `corejax.sharding.Mesh`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax
from corejax_parallel.mesh import grid

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Arrange devices in a grid, in order, so that devices of one process are neighbours along the last axes.

    Args:
        mesh_shape: sizes of the axes; their product must be the number of devices.
        devices: the devices; `corejax.devices()` unless given.
        contiguous_submeshes: ignored; it concerns devices that are connected as a torus, unlike CPUs and GPUs.
        allow_split_physical_axes: ignored for the same reason.

    Returns:
        An array of devices, of shape `mesh_shape`.

    Raises:
        ValueError: the number of devices is wrong.
    """
    shape = tuple(mesh_shape)
    available = list(corejax.devices() if devices is None else devices)
    if math.prod(shape) != len(available):
        raise ValueError(
            f"create_device_mesh: mesh_shape {shape} is of {math.prod(shape)} devices, but there are {len(available)}; "
            "pass as many (devices=)"
        )
    return grid(available, shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Arrange devices in a grid of groups, for devices that are connected fast within groups and slowly between them.

    Args:
        mesh_shape: sizes of the axes within a group.
        dcn_mesh_shape: number of groups along each axis.
        devices: the devices; `corejax.devices()` unless given.
        process_is_granule: whether a group is the devices of a process. Otherwise it is the devices with the same
            `slice_index`, or of a process if devices have no `slice_index`.
        should_sort_granules_by_key: whether to sort the groups by their numbers.
        allow_split_physical_axes: ignored; see `create_device_mesh`.

    Returns:
        An array of devices; its sizes are the products of the sizes in both shapes.

    Raises:
        ValueError: the shapes differ in length, or the number of groups or devices is wrong.
    """
    inner, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    if len(inner) != len(outer):
        raise ValueError(
            f"create_hybrid_device_mesh: mesh_shape {inner} and dcn_mesh_shape {outer} must have a size for each axis"
        )
    groups: dict[int, list[Any]] = {}
    members: Sequence[Any] = corejax.devices() if devices is None else devices
    for device in members:
        key = device.process_index if process_is_granule else getattr(device, "slice_index", device.process_index)
        groups.setdefault(key, []).append(device)
    if math.prod(outer) != len(groups):
        raise ValueError(
            f"create_hybrid_device_mesh: dcn_mesh_shape {outer} is of {math.prod(outer)} groups of devices, but there "
            f"are {len(groups)}: {sorted(groups)}"
        )
    order = sorted(groups) if should_sort_granules_by_key else list(groups)
    grids = np.array([create_device_mesh(inner, groups[key]) for key in order], dtype=object)
    count = len(inner)
    # (outer..., inner...) -> (outer 0, inner 0, outer 1, inner 1, ...)
    grids = grids.reshape(outer + inner).transpose([i + count * k for i in range(count) for k in (0, 1)])
    return grids.reshape(tuple(a * b for a, b in zip(outer, inner, strict=True)))
