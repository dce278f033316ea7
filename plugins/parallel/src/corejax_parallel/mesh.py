"""Meshes: grids of devices with named axes."""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import config
from corejax.extend.messages import Restoring
from corejax.extend.programs import register_param_type
from corejax.extend.types import as_dim
from corejax.sharding import devices_of_text, devices_text  # type: ignore[attr-defined]  # for plugins, not in stubs


@register_param_type
class AxisType(enum.Enum):
    """The type of a mesh's axis: what determines how arrays are split over the axis."""

    Auto = "auto"  # the compiler, from the given shardings
    Explicit = "explicit"  # the types of arrays, such as `f32[8@x]`; types of results follow from those of operands
    Manual = "manual"  # the program, inside `shard_map`

    def __repr__(self) -> str:
        return self.name


class _Axes:
    """The base class of meshes with and without devices.

    Attributes:
        axis_names: names of the axes.
        axis_sizes: sizes of the axes.
        axis_types: types of the axes.
        device_tuple: the devices in row-major order; empty for a mesh without devices.
    """

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    device_tuple: tuple[Any, ...]

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """The name and size of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape(self) -> collections.OrderedDict[Any, int]:
        """The size of each axis by name."""
        return collections.OrderedDict(self.shape_tuple)

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        """Whether the mesh has no devices."""
        return self.size == 0

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(name for name, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, and all are of type Auto."""
        return self._all_of_type(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, and all are of type Explicit."""
        return self._all_of_type(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, and all are of type Manual."""
        return self._all_of_type(AxisType.Manual)

    @property
    def is_scalar(self) -> bool:
        """Whether the mesh is a single device without axes."""
        return self.size == 1 and not self.axis_names

    def _all_of_type(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and set(self.axis_types) == {kind}

    def _types_with(self, types: Mapping[Any, AxisType]) -> tuple[AxisType, ...]:
        return tuple(types.get(name, t) for name, t in zip(self.axis_names, self.axis_types, strict=True))

    def __str__(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple) or "()"
        return f"{type(self).__name__}({axes}, axis_types={self.axis_types!r})"


@dataclasses.dataclass(frozen=True)
class AbstractDevice:
    """The kind of devices that an `AbstractMesh` stands for.

    Attributes:
        device_kind: name of the kind.
        num_cores: number of cores of a device, None if unknown.
        platform: name of the platform.
    """

    device_kind: str
    num_cores: int | None
    platform: str


@register_param_type
class AbstractMesh(_Axes):
    """A mesh without devices: axes with names and sizes. Programs over it run on any devices of that number.

    Args:
        axis_sizes: sizes of the axes.
        axis_names: names of the axes.
        axis_types: types of the axes; Auto unless given.
        abstract_device: the kind of the devices, an `AbstractDevice` or None; ignored when meshes are compared.

    Raises:
        ValueError: the numbers of names, sizes and types differ, or a name occurs twice.
        TypeError: a size is not an integer, or a type is not an `AxisType`.
    """

    __slots__ = ("abstract_device", "axis_names", "axis_sizes", "axis_types")

    device_tuple = ()

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, *, abstract_device: Any = None
    ) -> None:
        if not isinstance(abstract_device, AbstractDevice | None):
            raise TypeError(f"AbstractMesh: abstract_device must be an AbstractDevice or None, got {abstract_device!r}")
        self.abstract_device = abstract_device
        self.axis_sizes = _sizes("AbstractMesh", axis_sizes)
        self.axis_names = _names("AbstractMesh", axis_names, len(self.axis_sizes), f"axis_sizes {self.axis_sizes}")
        self.axis_types = _types("AbstractMesh", axis_types, self.axis_names)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None) -> AbstractMesh:
        """Return a copy with other sizes, names or types of axes."""
        pairs = (axis_sizes, self.axis_sizes), (axis_names, self.axis_names), (axis_types, self.axis_types)
        parts: list[Any] = [own if new is None else new for new, own in pairs]
        return AbstractMesh(*parts, abstract_device=self.abstract_device)

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """Return a copy with other types for some axes."""
        return self.update(axis_types=self._types_with(name_to_type))

    @property
    def devices(self) -> Any:
        """The devices, which an abstract mesh does not have.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{self} has no devices; a Mesh has (corejax.make_mesh)")

    def _key(self) -> tuple[Any, ...]:
        return (self.axis_sizes, self.axis_names, self.axis_types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractMesh, self._key()

    __param_text__ = __reduce__

    __repr__ = _Axes.__str__


class Mesh(_Axes):
    """A grid of devices with named axes. Meshes of equal devices, names and types are equal; meshes are hashable.

    `with mesh:` makes it the mesh of the context, as `set_mesh` does.

    Args:
        devices: an array or nested sequence of devices, with an axis for each name.
        axis_names: names of the axes; a string is a single name.
        axis_types: types of the axes; Auto unless given.

    Attributes:
        devices: the devices, a read-only NumPy array of objects.

    Raises:
        ValueError: the numbers of names and axes differ, a name or device occurs twice, or devices belong to several
            topologies.
        TypeError: an entry of `devices` is not a device.
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        self.devices = np.array(devices, dtype=object)
        self.devices.flags.writeable = False
        self.axis_sizes = shape = self.devices.shape
        self.axis_names = _names("Mesh", axis_names, len(shape), f"devices of shape {shape}")
        self.axis_types = _types("Mesh", axis_types, self.axis_names)
        self.device_tuple = tuple(self.devices.reshape(-1).tolist())
        for device in self.device_tuple:
            if not hasattr(device, "device_kind"):
                raise TypeError(
                    f"Mesh: devices must be of corejax.devices(), got {device!r} of type {type(device).__name__}"
                )
        topologies = {getattr(device, "topology", None) for device in self.device_tuple}
        if len(topologies) > 1:
            raise ValueError(f"Mesh: devices must all exist, or all belong to one topology; got some of {topologies}")
        if len(set(self.device_tuple)) != len(self.device_tuple):
            raise ValueError(f"Mesh: a device occurs twice: {list(self.device_tuple)}")
        self._hash = hash((self.device_tuple, self.axis_sizes, self.axis_names, self.axis_types))
        self._entered: list[Restoring] = []

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The `AbstractMesh` with the same axes."""
        device = None
        for d in self.device_tuple[:1]:  # all devices of a mesh are of the same kind
            device = AbstractDevice(d.device_kind, getattr(d, "num_cores", None), d.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The ids of the devices, an array of the mesh's shape."""
        return np.array([d.id for d in self.device_tuple], dtype=np.int64).reshape(self.axis_sizes)

    @property
    def is_multi_process(self) -> bool:
        """Whether the devices belong to several processes."""
        return len({d.process_index for d in self.device_tuple}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        own = set(corejax.local_devices())
        return [d for d in self.device_tuple if d in own]

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of this process's devices; raises ValueError if they are not a grid."""
        own = set(corejax.local_devices())
        here = np.vectorize(lambda d: d in own, otypes=[bool])(self.devices)
        if here.all():
            return self
        kept = np.ix_(*(np.unique(where) for where in np.nonzero(here)))
        if not here[kept].all():
            raise ValueError(f"{self}: this process's devices are no grid of it")
        return Mesh(self.devices[kept], self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Return a copy with other devices, names or types of axes."""
        pairs = (devices, self.devices), (axis_names, self.axis_names), (axis_types, self.axis_types)
        return Mesh(*[own if new is None else new for new, own in pairs])

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> Mesh:
        """Return a copy with other types for some axes."""
        return Mesh(self.devices, self.axis_names, self._types_with(name_to_type))

    def __enter__(self) -> Mesh:
        entered = config.override(context_mesh=self)
        self._entered.append(entered)
        entered.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh)
            and self._hash == other._hash
            and self.device_tuple == other.device_tuple
            and self.axis_sizes == other.axis_sizes
            and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types!r})"

    def __deepcopy__(self, memo: Any) -> Mesh:
        return self

    def __param_text__(self) -> tuple[Any, ...]:
        return mesh_of, (devices_text(self.device_tuple), self.axis_sizes, self.axis_names, self.axis_types)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__param_text__()


@register_param_type
def mesh_of(devices: str, sizes: Any, names: Any, types: Any) -> Mesh:
    """Rebuild a mesh that was pickled or printed, with this process's devices of the same platform and ids.

    Raises:
        ValueError: the devices do not exist.
    """
    return Mesh(grid(devices_of_text(devices), sizes), names, types)


def grid(devices: Sequence[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return devices as an array of objects of a shape, in row-major order."""
    flat = np.empty(len(devices), dtype=object)
    flat[:] = devices
    return flat.reshape(shape)


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Any, axis_types: Any = None, *, devices: Sequence[Any] | None = None
) -> Mesh:
    """Return a mesh of the first available devices.

    Args:
        axis_shapes: sizes of the axes.
        axis_names: names of the axes.
        axis_types: types of the axes; Auto unless given.
        devices: devices to choose from; `corejax.devices()` unless given.

    Raises:
        ValueError: there are not enough devices, or the numbers of names and sizes differ.
    """
    sizes = _sizes("make_mesh", axis_shapes)
    names = _names("make_mesh", axis_names, len(sizes), f"axis_shapes {sizes}")
    available = list(corejax.devices() if devices is None else devices)
    count = math.prod(sizes)
    if count > len(available):
        raise ValueError(
            f"make_mesh: axis_shapes {sizes} are {count} devices, but there are {len(available)}. For more CPU devices "
            "set corejax.config.num_cpu_devices before the first use"
        )
    return Mesh(grid(available[:count], sizes), names, axis_types)


def _sizes(what: str, axis_sizes: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(map(as_dim, axis_sizes))
    except TypeError:
        raise TypeError(f"{what}: sizes of axes are integers in a tuple, got {axis_sizes!r}") from None
    if any(size < 0 for size in sizes) or sizes != tuple(axis_sizes):
        raise ValueError(f"{what}: sizes of axes are integers, not negative; got {tuple(axis_sizes)}")
    return sizes


def _names(what: str, axis_names: Any, count: int, sized: str) -> tuple[Any, ...]:
    if not isinstance(axis_names, Iterable):
        raise TypeError(f"{what}: axis_names are strings in a tuple, got {axis_names!r}")
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(names) != count:
        raise ValueError(f"{what}: {sized} have {count} axes, but axis_names are {len(names)}: {names}")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what}: axis name {name!r} occurs twice: {names}")
        if name is None or not isinstance(name, str):
            raise TypeError(f"{what}: names of axes are strings, got {name!r}")
    return names


def _types(what: str, given: Any, names: tuple[Any, ...]) -> tuple[AxisType, ...]:
    types = (AxisType.Auto if given is None else given,) * len(names) if not isinstance(given, Sequence) else given
    if len(types) != len(names):
        raise ValueError(f"{what}: axis_types {tuple(types)} are not as many as axis_names {names}")
    for kind in types:
        if not isinstance(kind, AxisType):
            raise TypeError(f"{what}: axis_types are of corejax.sharding.AxisType, got {kind!r}")
    return tuple(types)
