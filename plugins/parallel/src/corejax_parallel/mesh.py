"""Meshes: devices in a grid with named axes."""

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
from corejax.sharding import devices_of_text, devices_text


@register_param_type
class AxisType(enum.Enum):
    """What decides how arrays are split over an axis of a mesh."""

    Auto = "auto"  # the compiler, from what shardings are given
    Explicit = "explicit"  # the types of arrays, which say it: `f32[8@x]`; results' follow from operands'
    Manual = "manual"  # the program, inside of `shard_map`

    def __repr__(self) -> str:
        return self.name


class _Axes:
    """What meshes with devices and without have in common.

    Attributes:
        axis_names: names of the axes.
        axis_sizes: their sizes.
        axis_types: their types.
        device_tuple: the devices, row by row; empty for a mesh of any devices.
    """

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    device_tuple: tuple[Any, ...]

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Name and size of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape(self) -> collections.OrderedDict[Any, int]:
        """Size of each axis by name."""
        return collections.OrderedDict(self.shape_tuple)

    @property
    def size(self) -> int:
        """How many devices it is of."""
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        """Whether it is of none."""
        return self.size == 0

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(name for name, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type Manual."""
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
        """Whether it is one device without axes."""
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
    """The kind of the devices of a mesh without devices.

    Attributes:
        device_kind: the name of the kind.
        num_cores: cores of a device, None if it does not say.
        platform: the platform.
    """

    device_kind: str
    num_cores: int | None
    platform: str


@register_param_type
class AbstractMesh(_Axes):
    """Axes with sizes, and no devices: programs over it run on any that many.

    Args:
        axis_sizes: sizes of the axes.
        axis_names: their names.
        axis_types: their types; Auto unless given.
        abstract_device: an `AbstractDevice`, or None: the kind of devices that it is of. Meshes that differ in nothing
            else are equal.

    Raises:
        ValueError: names are not as many as sizes, or one is there twice.
        TypeError: a size is no integer, or a type no `AxisType`.
    """

    __slots__ = ("abstract_device", "axis_names", "axis_sizes", "axis_types")

    device_tuple = ()

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, *, abstract_device: Any = None
    ) -> None:
        if not isinstance(abstract_device, AbstractDevice | None):
            raise TypeError(f"AbstractMesh: abstract_device is an AbstractDevice or None, got {abstract_device!r}")
        self.abstract_device = abstract_device
        self.axis_sizes = _sizes("AbstractMesh", axis_sizes)
        self.axis_names = _names("AbstractMesh", axis_names, len(self.axis_sizes), f"axis_sizes {self.axis_sizes}")
        self.axis_types = _types("AbstractMesh", axis_types, self.axis_names)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None) -> AbstractMesh:
        """With other sizes, names or types of axes."""
        given = (axis_sizes, self.axis_sizes), (axis_names, self.axis_names), (axis_types, self.axis_types)
        return AbstractMesh(*[own if new is None else new for new, own in given], abstract_device=self.abstract_device)

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """The same axes, some of another type."""
        return self.update(axis_types=self._types_with(name_to_type))

    @property
    def devices(self) -> Any:
        """It has none.

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
    """Devices in a grid with named axes; hashable, equal where devices, names and types are.

    `with mesh:` makes it the mesh of the context, as `set_mesh` does.

    Args:
        devices: an array of devices, or a sequence of them, a grid with an axis for each name.
        axis_names: names of the axes; a string is one name.
        axis_types: their types; Auto unless given.

    Attributes:
        devices: the devices, a NumPy array of objects that nobody writes to.

    Raises:
        ValueError: names are not as many as axes, or one is there twice; or a device is, or devices are of several
            topologies.
        TypeError: what is given are no devices.
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
                    f"Mesh: devices are some of corejax.devices(), got {device!r} of type {type(device).__name__}"
                )
        topologies = {getattr(device, "topology", None) for device in self.device_tuple}
        if len(topologies) > 1:
            raise ValueError(f"Mesh: devices are all there, or all of one topology; got some of {topologies}")
        if len(set(self.device_tuple)) != len(self.device_tuple):
            raise ValueError(f"Mesh: a device is there twice: {list(self.device_tuple)}")
        self._hash = hash((self.device_tuple, self.axis_sizes, self.axis_names, self.axis_types))
        self._entered: list[Restoring] = []

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes without the devices."""
        device = None
        for d in self.device_tuple[:1]:  # devices of a mesh are of one kind
            device = AbstractDevice(d.device_kind, getattr(d, "num_cores", None), d.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The devices' numbers, in the grid."""
        return np.array([d.id for d in self.device_tuple], dtype=np.int64).reshape(self.axis_sizes)

    @property
    def is_multi_process(self) -> bool:
        """Whether it is of devices of several processes."""
        return len({d.process_index for d in self.device_tuple}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """Those of its devices that are this process's."""
        own = set(corejax.local_devices())
        return [d for d in self.device_tuple if d in own]

    @property
    def local_mesh(self) -> Mesh:
        """This process's part of it, which has to be a grid."""
        own = set(corejax.local_devices())
        here = np.vectorize(lambda d: d in own, otypes=[bool])(self.devices)
        if here.all():
            return self
        kept = np.ix_(*(np.unique(where) for where in np.nonzero(here)))
        if not here[kept].all():
            raise ValueError(f"{self}: this process's devices are no grid of it")
        return Mesh(self.devices[kept], self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """With other devices, names or types of axes."""
        given = (devices, self.devices), (axis_names, self.axis_names), (axis_types, self.axis_types)
        return Mesh(*[own if new is None else new for new, own in given])

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> Mesh:
        """The same devices and axes, some of another type."""
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
    """A mesh that was pickled or printed, of this process's devices of the same platform and numbers.

    Raises:
        ValueError: there are no such devices.
    """
    return Mesh(grid(devices_of_text(devices), sizes), names, types)


def grid(devices: Sequence[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Devices in an array of objects of a shape, row by row."""
    found = np.empty(len(devices), dtype=object)
    found[:] = devices
    return found.reshape(shape)


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Any, axis_types: Any = None, *, devices: Sequence[Any] | None = None
) -> Mesh:
    """A mesh of the first devices that there are.

    Args:
        axis_shapes: sizes of the axes.
        axis_names: their names.
        axis_types: their types; Auto unless given.
        devices: of which devices; of `corejax.devices()` unless given.

    Raises:
        ValueError: there are fewer devices, or names are not as many as sizes.
    """
    sizes = _sizes("make_mesh", axis_shapes)
    names = _names("make_mesh", axis_names, len(sizes), f"axis_shapes {sizes}")
    found = list(corejax.devices() if devices is None else devices)
    count = math.prod(sizes)
    if count > len(found):
        raise ValueError(
            f"make_mesh: axis_shapes {sizes} are {count} devices, and there are {len(found)}. For more CPU devices set "
            "corejax.config.num_cpu_devices before the first use"
        )
    return Mesh(grid(found[:count], sizes), names, axis_types)


def _sizes(what: str, given: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(map(as_dim, given))
    except TypeError:
        raise TypeError(f"{what}: sizes of axes are integers in a tuple, got {given!r}") from None
    if any(size < 0 for size in sizes) or sizes != tuple(given):
        raise ValueError(f"{what}: sizes of axes are integers, not negative; got {tuple(given)}")
    return sizes


def _names(what: str, given: Any, count: int, sized: str) -> tuple[Any, ...]:
    if not isinstance(given, Iterable):
        raise TypeError(f"{what}: axis_names are strings in a tuple, got {given!r}")
    names = (given,) if isinstance(given, str) else tuple(given)
    if len(names) != count:
        raise ValueError(f"{what}: {sized} have {count} axes, and axis_names are {len(names)}: {names}")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what}: axis name {name!r} is there twice: {names}")
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
