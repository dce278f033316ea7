"""`NamedSharding`: shardings of arrays over the named axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.lax as lax
from corejax.extend import config
from corejax.extend.programs import register_param_type
from corejax.sharding import Sharding
from corejax_parallel.mesh import AbstractMesh, Mesh, grid
from corejax_parallel.partition_spec import UNCONSTRAINED, PartitionSpec
from corejax_parallel.types.refinement import MeshAxes

_latest: dict[AbstractMesh, tuple[Any, ...]] = {}
"""Dict from a mesh's axes to the devices of the latest mesh with these axes, some of them Explicit, that held an array.

A type has an explicit sharding over a mesh without devices; this dict leads back to the devices.
"""


@register_param_type
class NamedSharding(Sharding):
    """A sharding that splits the dimensions of an array over axes of a mesh, and replicates it along all other axes.

    Args:
        mesh: a `Mesh`, or an `AbstractMesh` for a sharding without devices.
        spec: the axes that split each dimension.
        memory_kind: a kind of memory of the devices; their default memory unless given.

    Raises:
        TypeError: `mesh` is not a mesh, or `spec` not a `PartitionSpec`.
        ValueError: the mesh does not have an axis of the spec, or the devices do not have the memory.
    """

    def __init__(self, mesh: Any, spec: Any, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(f"NamedSharding: mesh must be a Mesh, got {mesh!r} of type {type(mesh).__name__}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding: spec must be a PartitionSpec such as P('x', None), got {spec!r} of type "
                f"{type(spec).__name__}"
            )
        if spec.unreduced or spec.reduced:
            raise NotImplementedError(f"NamedSharding: unreduced arrays do not exist, got {spec}; sum with lax.psum")
        for axes in spec.axes():
            for name in axes or ():
                if name not in mesh.axis_names:
                    known = ", ".join(map(repr, mesh.axis_names)) or "none"
                    raise ValueError(f"NamedSharding: {spec} names axis {name!r}, but the mesh has {known}")
        self.mesh = mesh
        self.spec = spec
        self.device_tuple = mesh.device_tuple
        self.memory_kind = _checked_memory(mesh, memory_kind)
        self._hash = hash((mesh, spec, self.memory_kind))
        self._tiles_by_ndim: dict[int, np.ndarray[Any, Any]] = {}
        self._explicit: dict[int, NamedSharding | None] = {}

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh's axes that the spec does not name, along which arrays are replicated."""
        return frozenset(self.mesh.axis_names).difference(*(axes or () for axes in self.spec.axes()))

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """Return the tiles; UNCONSTRAINED dimensions are not split."""
        tiles = self._tiles_by_ndim.get(ndim)
        if tiles is None:
            tiles = self._tiles_by_ndim[ndim] = self._tiles(ndim)
        return tiles

    def _tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        sizes, order, shape = self.mesh.axis_sizes, [], []
        for axes in self.dimension_axes(ndim):
            numbers = [self.mesh.axis_names.index(name) for name in axes or ()]
            order += numbers
            shape.append(int(np.prod([sizes[i] for i in numbers], dtype=np.int64)))
        rest = [i for i in range(len(sizes)) if i not in order]
        positions = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
        return positions.transpose(order + rest).reshape(*shape, -1)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array; True over an empty mesh."""
        return bool(self.tiles(self._least_ndim()).shape[-1] == math.prod(self.mesh.axis_sizes))

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """Return the axes that split each dimension: the spec's entries, padded with empty tuples."""
        axes = self.spec.axes()
        if len(axes) > ndim:
            raise ValueError(
                f"{self} is for arrays of at least {len(axes)} dimensions, but is given for one of {ndim}; leave "
                "entries of its spec out"
            )
        return axes + ((),) * (ndim - len(axes))

    # -- in types (`corejax_parallel.types`) ---------------------------------------------------------------------------

    def of_type(self, ndim: int) -> MeshAxes | None:
        """Return the refinement of types of arrays with this sharding; None if the mesh has no Explicit axes."""
        sharding = self.explicit_part(ndim)
        return None if sharding is None else MeshAxes(sharding=sharding)

    def explicit_part(self, ndim: int) -> NamedSharding | None:
        """Return the sharding over the Explicit axes, on a mesh without devices; None if there are no such axes."""
        if ndim not in self._explicit:
            self._explicit[ndim] = self._explicit_part(ndim)
        return self._explicit[ndim]

    def _explicit_part(self, ndim: int) -> NamedSharding | None:
        explicit = self.mesh.explicit_axes
        if not explicit:
            return None
        if self.device_tuple:
            _latest[self.mesh.abstract_mesh] = self.device_tuple
        axes = [x if x is None else tuple(name for name in x if name in explicit) for x in self.dimension_axes(ndim)]
        return NamedSharding(self.mesh.abstract_mesh, _spec(axes))

    def with_axes(self, axes: Sequence[tuple[Any, ...] | None]) -> NamedSharding:
        """Return a sharding over the same mesh with other axes for each dimension; None leaves it to the compiler."""
        return NamedSharding(self.mesh, _spec(axes))

    def known_devices(self) -> tuple[Any, ...]:
        """Return the devices of the context's mesh if it has these axes, else of the latest such mesh of an array."""
        axes, current = self.mesh.abstract_mesh, config.context_mesh
        if current is not None and current.abstract_mesh == axes and current.device_tuple:
            return tuple(current.device_tuple)
        return _latest.get(axes, self.device_tuple)

    def place(self, x: Any) -> Any:
        """Return a value with this sharding as a constraint."""
        return lax.with_sharding_constraint(x, self)

    # ------------------------------------------------------------------------------------------------------------------

    def like(self, tiles: np.ndarray[Any, Any]) -> Sharding:
        """Return a sharding with these tiles: a `NamedSharding` over the same mesh if a spec expresses them."""
        spec = spec_of_tiles(self.mesh, tiles)
        return super().like(tiles) if spec is None else NamedSharding(self.mesh, spec)

    def over(self, devices: Sequence[Any]) -> NamedSharding:
        """Return a sharding with the same spec over a mesh of these devices, in row-major order."""
        mesh = Mesh(grid(devices, self.mesh.axis_sizes), self.mesh.axis_names, self.mesh.axis_types)
        return NamedSharding(mesh, self.spec, memory_kind=self.memory_kind)

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """Insert a dimension that is split over axes of the mesh, or is unconstrained if no axes are given.

        Raises:
            ValueError: the mesh does not have an axis, or the axis splits another dimension.
        """
        entries = [*self.spec, *[None] * (dim - len(self.spec))]
        try:
            spec = PartitionSpec(*entries[:dim], names or UNCONSTRAINED, *entries[dim:])
            return NamedSharding(self.mesh, spec, memory_kind=self.memory_kind)
        except ValueError as error:
            raise ValueError(f"vmap with spmd_axis_name={names} of a value with spec {self.spec}: {error}") from None

    def update(self, *, mesh: Any = None, spec: Any = None) -> NamedSharding:
        """Return a copy with another mesh or spec."""
        return NamedSharding(
            self.mesh if mesh is None else mesh, self.spec if spec is None else spec, memory_kind=self.memory_kind
        )

    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        """Return a copy with another kind of memory."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def _least_ndim(self) -> int:
        return len(self.spec)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, NamedSharding)
            and self._hash == other._hash
            and self.spec == other.spec
            and self.memory_kind == other.memory_kind
            and self.mesh == other.mesh
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.mesh, self.spec, self.memory_kind))

    def __param_text__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec)

    def __deepcopy__(self, memo: Any) -> NamedSharding:
        return self

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind is not None else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec!r}{kind})"


def _spec(axes: Sequence[tuple[Any, ...] | None]) -> PartitionSpec:
    return PartitionSpec(*(UNCONSTRAINED if x is None else x for x in axes))


def _rebuild(mesh: Any, spec: Any, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


def _checked_memory(mesh: Any, kind: str | None) -> str | None:
    """Return the kind of memory, the devices' default unless given; raise ValueError if they do not have it."""
    if not mesh.device_tuple or not hasattr(mesh.device_tuple[0], "default_memory"):
        return kind
    kinds = [memory.kind for memory in mesh.device_tuple[0].addressable_memories()]
    if kind is not None and kind not in kinds:
        raise ValueError(
            f"NamedSharding: memory_kind={kind!r}: {mesh.device_tuple[0]} has memory of the kinds {', '.join(kinds)}"
        )
    return str(mesh.device_tuple[0].default_memory().kind) if kind is None else kind


def spec_of_tiles(mesh: Any, tiles: np.ndarray[Any, Any]) -> PartitionSpec | None:
    """Return the spec over a mesh that has these tiles, or None if there is no such spec.

    If a spec has these tiles, a step along an axis of the mesh moves along at most one dimension of the tiles. So the
    strides of these steps determine the axes that split a dimension, and their order.
    """
    sizes = mesh.axis_sizes
    place = np.empty((tiles.size, tiles.ndim - 1), np.int64)  # the index of each device's tile
    for index in np.ndindex(tiles.shape[:-1]):
        place[tiles[index]] = index
    place = place.reshape(*sizes, tiles.ndim - 1)
    strides: list[list[tuple[int, Any]]] = [[] for _ in range(tiles.ndim - 1)]
    for i, (name, size) in enumerate(mesh.shape_tuple):
        if size == 1:
            continue
        step = place[tuple(int(k == i) for k in range(len(sizes)))]
        moved = np.flatnonzero(step)
        if len(moved) > 1:
            return None
        if len(moved):
            strides[moved[0]].append((-int(step[moved[0]]), name))
    entries: list[Any] = [tuple(name for _, name in sorted(axes, key=lambda x: x[0])) for axes in strides]
    while entries and not entries[-1]:
        entries.pop()
    spec = PartitionSpec(*entries)
    same = NamedSharding(mesh, spec).tiles(tiles.ndim - 1)
    return spec if same.shape == tiles.shape and np.array_equal(np.sort(same, -1), np.sort(tiles, -1)) else None
