"""`corejax.experimental.topologies`: devices to compile for that this process does not have."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import backends
from corejax.extend.plugins import exported
from corejax_xla_backend.sharding import devices_of_topology

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """Devices for meshes.

    Args:
        devices: the devices.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices = list(devices)

    def __repr__(self) -> str:
        kind = f" of platform {self.devices[0].platform!r}" if self.devices else ""
        return f"TopologyDescription({len(self.devices)} devices{kind})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return the attached devices.

    Args:
        platform: their platform; by default the default platform.
    """
    backend, name = backends.find(platform)
    return TopologyDescription(backend.devices(name))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """Return devices that need not be attached: programs over meshes of them can be compiled and inspected, not run.

    Args:
        topology_name: sizes of a grid, `"8x8"` or `"4096"`; their product is the number of devices.
        platform: `"cpu"`, the default.
        **kwargs: must be empty; JAX passes them to other platforms.

    Raises:
        ValueError: the name is not a list of sizes.
        TypeError: `kwargs` are passed.
        NotImplementedError: the platform is not "cpu".
    """
    if platform not in (None, "cpu"):
        raise NotImplementedError(
            f"get_topology_desc: platform={platform!r}: programs are compiled ahead of time for 'cpu', and for "
            f"attached devices (get_attached_topology({platform!r}))"
        )
    if kwargs:
        raise TypeError(f"get_topology_desc: platform 'cpu' takes no {', '.join(kwargs)}; sizes are in topology_name")
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", str(topology_name)):
        raise ValueError(
            f"get_topology_desc: topology_name of platform 'cpu' must be the sizes of a grid of devices, such as '8x8' "
            f"or '4096', got {topology_name!r}"
        )
    return TopologyDescription(devices_of_topology(f"cpu@{topology_name}"))


def make_mesh(
    topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: Any, *, contiguous_submeshes: bool = False
) -> Any:
    """Return a mesh of all devices of a topology, in their order.

    Args:
        topo: the topology.
        mesh_shape: sizes of the axes.
        axis_names: names of the axes.
        contiguous_submeshes: ignored, because these devices have no neighbours.

    Raises:
        ValueError: the topology has more or fewer devices than the mesh.
    """
    count = math.prod(mesh_shape)
    if count != len(topo.devices):
        raise ValueError(
            f"topologies.make_mesh: mesh_shape {tuple(mesh_shape)} needs {count} devices, but the topology has "
            f"{len(topo.devices)}; corejax.make_mesh(mesh_shape, axis_names, devices=topo.devices) takes the first ones"
        )
    grid = np.empty(count, dtype=object)
    grid[:] = topo.devices
    return exported("sharding.Mesh")(grid.reshape(tuple(mesh_shape)), axis_names)
