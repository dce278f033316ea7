"""`PartitionSpec`: the axes of a mesh that split each dimension of an array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corejax.extend.programs import register_param_type


class _Unconstrained:
    """The class of `UNCONSTRAINED`, the entry that leaves a dimension to the compiler."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> tuple[Any, ...]:
        return (unconstrained, ())

    def __param_text__(self) -> tuple[Any, ...]:
        return unconstrained, ()


UNCONSTRAINED = _Unconstrained()


@register_param_type
def unconstrained() -> _Unconstrained:
    """Return the only instance, `UNCONSTRAINED`."""
    return UNCONSTRAINED


@register_param_type
class PartitionSpec:
    """The axes of a mesh that split each leading dimension of an array; the remaining dimensions are not split.

    A `PartitionSpec` is a sequence, and equal to a tuple of the same entries. It is also available as `corejax.P`.

    Args:
        partitions: for each dimension None (not split), a name, a tuple of names of which the first is the major one,
            or `PartitionSpec.UNCONSTRAINED` (the compiler may choose). A tuple of a single name equals the name, an
            empty tuple equals None.
        unreduced: axes over which the array remains to be summed. Arrays are never like that here: a `NamedSharding`
            does not accept such a spec.
        reduced: axes over which cotangents remain to be summed, with the same restriction.

    Raises:
        TypeError: an entry is none of these, or `unreduced` or `reduced` is not a set.
        ValueError: a name occurs twice.
    """

    __slots__ = ("_hash", "_partitions", "_sums")

    UNCONSTRAINED = UNCONSTRAINED

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> None:
        self._partitions = tuple(_entry(x, partitions) for x in partitions)
        self._sums = (_names("unreduced", unreduced), _names("reduced", reduced))
        names = [name for x in (*self.axes(), *self._sums) for name in x or ()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"PartitionSpec: {self} has axis {name!r} twice; an axis of a mesh splits one dimension at most"
                )
        self._hash = hash((self._partitions, *self._sums) if any(self._sums) else self._partitions)

    def axes(self) -> tuple[tuple[Any, ...] | None, ...]:
        """Return the entries as tuples of names, with None for UNCONSTRAINED."""
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
        """The axes over which the array remains to be summed."""
        return self._sums[0]

    @property
    def reduced(self) -> frozenset[Any]:
        """The axes over which cotangents remain to be summed."""
        return self._sums[1]

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> PartitionSpec:
        """Return a copy with other entries or sets of axes."""
        sums = self._sums if unreduced is None else (unreduced, self._sums[1])
        sums = sums if reduced is None else (sums[0], reduced)
        return PartitionSpec(*(self if partitions is None else partitions), unreduced=sums[0], reduced=sums[1])

    def index(self, value: Any) -> int:
        """Return the position of the first entry that equals a value."""
        return self._partitions.index(value)

    def count(self, value: Any) -> int:
        """Return the number of entries that equal a value."""
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
            return self._partitions == other._partitions and self._sums == other._sums
        return isinstance(other, tuple) and self._partitions == other and not any(self._sums)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        listed = [repr(x) for x in self._partitions]
        for name, axes in zip(("unreduced", "reduced"), self._sums, strict=True):
            listed += [f"{name}={{{', '.join(sorted(map(repr, axes)))}}}"] if axes else []
        return f"P({listed[0]},)" if len(self._partitions) == len(listed) == 1 else f"P({', '.join(listed)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self._partitions, *self._sums)) if any(self._sums) else (PartitionSpec, self._partitions)

    def __param_text__(self) -> tuple[Any, ...]:
        return PartitionSpec, self._partitions


P = PartitionSpec


def _rebuild(partitions: tuple[Any, ...], unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _names(what: str, given: Any) -> frozenset[Any]:
    if not isinstance(given, set | frozenset):
        raise TypeError(
            f"PartitionSpec: {what} is a set of names of axes, got {given!r} of type {type(given).__name__}"
        )
    if None in given:
        raise ValueError(f"PartitionSpec: {what} is a set of names of axes, got None in {set(given)}")
    return frozenset(given)


def _entry(given: Any, partitions: tuple[Any, ...]) -> Any:
    """Return an entry in its shortest form, or raise TypeError if it is not an entry."""
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
