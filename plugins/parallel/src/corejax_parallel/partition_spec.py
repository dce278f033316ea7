"""`PartitionSpec`: over which axes of a mesh each dimension of an array is split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corejax.extend import register_param_type


class _Unconstrained:
    """Says of a dimension that the compiler may choose."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> tuple[Any, ...]:
        return (unconstrained, ())

    def __param_text__(self) -> tuple[Any, ...]:
        return unconstrained, ()


UNCONSTRAINED = _Unconstrained()


@register_param_type
def unconstrained() -> _Unconstrained:
    """The one that there is."""
    return UNCONSTRAINED


@register_param_type
class PartitionSpec:
    """For each leading dimension of an array the axes of a mesh that it is split over; the others are whole.

    A sequence; equal to a tuple of the same entries. Also `corejax.P`.

    Args:
        partitions: of each dimension None (whole), a name, a tuple of names (the first is the major one), or
            `PartitionSpec.UNCONSTRAINED` (the compiler may choose). A tuple of one name is the name, an empty one None.

    Raises:
        TypeError: an entry is none of these.
        ValueError: a name is there twice.
    """

    __slots__ = ("_hash", "_partitions")

    UNCONSTRAINED = UNCONSTRAINED

    def __init__(self, *partitions: Any) -> None:
        self._partitions = tuple(_entry(x, partitions) for x in partitions)
        names = [name for x in self.axes() for name in x or ()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"PartitionSpec: {self} has axis {name!r} twice; an axis of a mesh splits one dimension at most"
                )
        self._hash = hash(self._partitions)

    def axes(self) -> tuple[tuple[Any, ...] | None, ...]:
        """The entries, each a tuple of names; None for UNCONSTRAINED."""
        return tuple(
            None if x is UNCONSTRAINED else () if x is None else x if isinstance(x, tuple) else (x,)
            for x in self._partitions
        )

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries."""
        return self._partitions

    @property
    def unreduced(self) -> frozenset[Any]:
        """Axes over which the array is still to be summed: none, arrays have their sums."""
        return frozenset()

    @property
    def reduced(self) -> frozenset[Any]:
        """Axes over which cotangents are still to be summed: none."""
        return frozenset()

    def update(self, partitions: Any = None) -> PartitionSpec:
        """With other entries."""
        return self if partitions is None else PartitionSpec(*partitions)

    def index(self, value: Any) -> int:
        """Position of the first entry that equals a value."""
        return self._partitions.index(value)

    def count(self, value: Any) -> int:
        """How many entries equal a value."""
        return self._partitions.count(value)

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        return PartitionSpec(*self, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*other, *self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._partitions == other._partitions
        return isinstance(other, tuple) and self._partitions == other

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        listed = ", ".join(map(repr, self._partitions))
        return f"P({listed})" if len(self._partitions) != 1 else f"P({listed},)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (PartitionSpec, self._partitions)

    def __param_text__(self) -> tuple[Any, ...]:
        return PartitionSpec, self._partitions


P = PartitionSpec


def _entry(given: Any, partitions: tuple[Any, ...]) -> Any:
    """An entry in its shortest form."""
    if isinstance(given, list):
        given = tuple(given)
    if isinstance(given, tuple):
        if not all(isinstance(name, str) for name in given):
            raise TypeError(_refusal(given, partitions))
        return None if not given else given[0] if len(given) == 1 else given
    if given is None or given is UNCONSTRAINED or isinstance(given, str):
        return given
    raise TypeError(_refusal(given, partitions))


def _refusal(given: Any, partitions: tuple[Any, ...]) -> str:
    return (
        "PartitionSpec: an entry is None, the name of a mesh's axis, a tuple of names, or PartitionSpec.UNCONSTRAINED; "
        f"got {given!r} of type {type(given).__name__} in {partitions}"
    )
