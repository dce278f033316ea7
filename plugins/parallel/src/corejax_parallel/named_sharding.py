"""`NamedSharding`: arrays split over the axes of a mesh."""

from __future__ import annotations

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
"""By axes the devices of the last mesh that an array was put on whose type names some of them."""


@register_param_type
class NamedSharding(Sharding):
    """Dimensions of an array split over axes of a mesh; copies along the axes that its spec does not name.

    Args:
        mesh: a `Mesh`, or an `AbstractMesh`: then it says of no devices.
        spec: the axes for each dimension.
        memory_kind: a kind of memory that the devices have; their default one unless given.

    Raises:
        TypeError: they are no mesh and no spec.
        ValueError: the mesh has no such axis, or the devices no such memory.
    """

    def __init__(self, mesh: Any, spec: Any, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(f"NamedSharding: mesh is a Mesh, got {mesh!r} of type {type(mesh).__name__}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding: spec is a PartitionSpec, P('x', None) say, got {spec!r} of type {type(spec).__name__}"
            )
        if spec.unreduced or spec.reduced:
            raise NotImplementedError(f"NamedSharding: arrays have their sums here, got {spec}; sum with lax.psum")
        for axes in spec.axes():
            for name in axes or ():
                if name not in mesh.axis_names:
                    known = ", ".join(map(repr, mesh.axis_names)) or "none"
                    raise ValueError(f"NamedSharding: {spec} names axis {name!r}, and the mesh has {known}")
        self.mesh = mesh
        self.spec = spec
        self.device_tuple = mesh.device_tuple
        self.memory_kind = _checked_memory(mesh, memory_kind)
        self._hash = hash((mesh, spec, self.memory_kind))
        self._known: dict[int, np.ndarray[Any, Any]] = {}
        self._explicit: dict[int, NamedSharding | None] = {}

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh's axes that the spec does not name: along them are copies."""
        return frozenset(self.mesh.axis_names).difference(*(axes or () for axes in self.spec.axes()))

    def tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        """As the spec says; dimensions that it leaves open are whole."""
        found = self._known.get(ndim)
        if found is None:
            found = self._known[ndim] = self._tiles(ndim)
        return found

    def _tiles(self, ndim: int) -> np.ndarray[Any, Any]:
        sizes, order, shape = self.mesh.axis_sizes, [], []
        for axes in self.dimension_axes(ndim):
            numbers = [self.mesh.axis_names.index(name) for name in axes or ()]
            order += numbers
            shape.append(int(np.prod([sizes[i] for i in numbers], dtype=np.int64)))
        rest = [i for i in range(len(sizes)) if i not in order]
        positions = np.arange(self.mesh.size, dtype=np.int64).reshape(sizes)
        return positions.transpose(order + rest).reshape(*shape, -1)

    def dimension_axes(self, ndim: int) -> tuple[tuple[str, ...] | None, ...]:
        """The spec's entries, and nothing for dimensions that it does not have."""
        axes = self.spec.axes()
        if len(axes) > ndim:
            raise ValueError(
                f"{self} is of arrays of at least {len(axes)} dimensions, and is given for one of {ndim}; leave "
                "entries of its spec out"
            )
        return axes + ((),) * (ndim - len(axes))

    # -- in types (`corejax_parallel.types`) ---------------------------------------------------------------------------

    def of_type(self, ndim: int) -> MeshAxes | None:
        """Return the refinement of types of arrays that lie so; None if the mesh has no axes of type Explicit."""
        sharding = self.explicit_part(ndim)
        return None if sharding is None else MeshAxes(sharding=sharding)

    def explicit_part(self, ndim: int) -> NamedSharding | None:
        """Return the sharding over the axes of type Explicit, of a mesh without devices; None if there are none."""
        if ndim not in self._explicit:
            self._explicit[ndim] = self._explicit_part(ndim)
        return self._explicit[ndim]

    def _explicit_part(self, ndim: int) -> NamedSharding | None:
        told = self.mesh.explicit_axes
        if not told:
            return None
        if self.device_tuple:
            _latest[self.mesh.abstract_mesh] = self.device_tuple
        axes = [x if x is None else tuple(name for name in x if name in told) for x in self.dimension_axes(ndim)]
        return NamedSharding(self.mesh.abstract_mesh, _spec(axes))

    def with_axes(self, axes: Sequence[tuple[Any, ...] | None]) -> NamedSharding:
        """Over the same mesh, with other axes for each dimension; None where the compiler may choose."""
        return NamedSharding(self.mesh, _spec(axes))

    def known_devices(self) -> tuple[Any, ...]:
        """Those of the context's mesh, or of the last one with these axes that types are about."""
        axes, found = self.mesh.abstract_mesh, config.context_mesh
        if found is not None and found.abstract_mesh == axes and found.device_tuple:
            return tuple(found.device_tuple)
        return _latest.get(axes, self.device_tuple)

    def place(self, x: Any) -> Any:
        """A value laid out so."""
        return lax.with_sharding_constraint(x, self)

    # ------------------------------------------------------------------------------------------------------------------

    def like(self, tiles: np.ndarray[Any, Any]) -> Sharding:
        """A spec over the same mesh, where one says it."""
        spec = spec_of_tiles(self.mesh, tiles)
        return super().like(tiles) if spec is None else NamedSharding(self.mesh, spec)

    def over(self, devices: Sequence[Any]) -> NamedSharding:
        """The same spec over a mesh of these devices, row by row."""
        mesh = Mesh(grid(devices, self.mesh.axis_sizes), self.mesh.axis_names, self.mesh.axis_types)
        return NamedSharding(mesh, self.spec, memory_kind=self.memory_kind)

    def batched(self, dim: int, names: tuple[str, ...] = ()) -> Sharding:
        """With a dimension more: split over axes of the mesh, or unconstrained.

        Raises:
            ValueError: the mesh does not have the axes, or another dimension is split over one.
        """
        entries = [*self.spec, *[None] * (dim - len(self.spec))]
        try:
            spec = PartitionSpec(*entries[:dim], names or UNCONSTRAINED, *entries[dim:])
            return NamedSharding(self.mesh, spec, memory_kind=self.memory_kind)
        except ValueError as error:
            raise ValueError(f"vmap with spmd_axis_name={names} of what is laid out as {self.spec}: {error}") from None

    def update(self, *, mesh: Any = None, spec: Any = None) -> NamedSharding:
        """With another mesh or spec."""
        return NamedSharding(
            self.mesh if mesh is None else mesh, self.spec if spec is None else spec, memory_kind=self.memory_kind
        )

    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        """The same placement, with a kind of memory."""
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
    """The kind of memory by name: the devices' default one unless given."""
    if not mesh.device_tuple or not hasattr(mesh.device_tuple[0], "default_memory"):
        return kind
    kinds = [memory.kind for memory in mesh.device_tuple[0].addressable_memories()]
    if kind is not None and kind not in kinds:
        raise ValueError(
            f"NamedSharding: memory_kind={kind!r}: {mesh.device_tuple[0]} has memory of the kinds {', '.join(kinds)}"
        )
    return str(mesh.device_tuple[0].default_memory().kind) if kind is None else kind


def spec_of_tiles(mesh: Any, tiles: np.ndarray[Any, Any]) -> PartitionSpec | None:
    """The spec over a mesh that has these tiles; None where none has.

    A step along an axis of the mesh moves along one dimension of the tiles or along none: its stride there tells the
    axes that split a dimension, and their order.
    """
    sizes = mesh.axis_sizes
    place = np.empty((tiles.size, tiles.ndim - 1), np.int64)  # which tile a device holds
    for where in np.ndindex(tiles.shape[:-1]):
        place[tiles[where]] = where
    place = place.reshape(*sizes, tiles.ndim - 1)
    found: list[list[tuple[int, Any]]] = [[] for _ in range(tiles.ndim - 1)]
    for i, (name, size) in enumerate(mesh.shape_tuple):
        if size == 1:
            continue
        step = place[tuple(int(k == i) for k in range(len(sizes)))]
        moved = np.flatnonzero(step)
        if len(moved) > 1:
            return None
        if len(moved):
            found[moved[0]].append((-int(step[moved[0]]), name))
    entries: list[Any] = [tuple(name for _, name in sorted(axes, key=lambda x: x[0])) for axes in found]
    while entries and not entries[-1]:
        entries.pop()
    spec = PartitionSpec(*entries)
    same = NamedSharding(mesh, spec).tiles(tiles.ndim - 1)
    return spec if same.shape == tiles.shape and np.array_equal(np.sort(same, -1), np.sort(tiles, -1)) else None
