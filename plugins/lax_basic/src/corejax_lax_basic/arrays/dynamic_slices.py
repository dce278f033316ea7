"""`ds(start, size)`: an entry of an index that selects a block of a known size at a position that may be traced."""

from __future__ import annotations

import operator
from typing import Any

from corejax.extend import Tracer, as_array, dtypes, host_value, tree

__all__ = ["Slice", "ds"]


@tree.register_pytree_node_class
class Slice:
    """A block of an axis: `size` elements from `start` on, `stride` apart. `ds` makes it.

    Attributes:
        start: the first position, an integer or an integer scalar. A negative one counts from the end, and one that is
            too large is reduced so that the block fits, as in `lax.dynamic_slice`.
        size: the number of elements.
        stride: their distance; 1 if `start` is traced.
    """

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: int, stride: int = 1) -> None:
        if size < 0 or stride < 1:
            raise ValueError(f"ds: size must be 0 or more and stride 1 or more, got {size} and {stride}")
        self.start, self.size, self.stride = start, size, stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size}, stride={self.stride})"

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is an array, which may be traced."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """False: sizes are known."""
        return False

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the start if it is an array, and the static rest."""
        if self.is_dynamic_start:
            return (self.start,), (None, self.size, self.stride)
        return (), (self.start, self.size, self.stride)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: tuple[Any, ...]) -> Slice:
        """Return a slice with another start."""
        start, size, stride = aux_data
        self = object.__new__(cls)
        self.start, self.size, self.stride = children[0] if children else start, size, stride
        return self


def ds(start: Any, size: int | None = None, stride: int | None = None) -> Slice:
    """Return an entry for an index: a block of `size` elements from `start` on.

        x[corejax.ds(i, 3)]  # lax.dynamic_slice_in_dim(x, i, 3)
        x.at[corejax.ds(i, 3)].set(y)

    Args:
        start: the first position, an integer or an integer scalar, which may be traced; or the size, if `size` is None.
        size: the number of elements.
        stride: the distance between elements, by default 1; it must be 1 if `start` is traced.

    Raises:
        TypeError: the size or the stride is not an integer, or the start is no integer scalar.
        ValueError: the size is negative, or the stride is not positive.
    """
    if size is None:
        start, size = 0, start
    stride = 1 if stride is None else stride
    try:
        size, stride = operator.index(size), operator.index(stride)
    except TypeError:
        raise TypeError(f"ds: size and stride must be integers, got {size!r} and {stride!r}") from None
    try:
        start = operator.index(start)
    except TypeError:
        start = as_array(start)
        if start.aval.ndim or not dtypes.is_integer(start.aval.dtype):
            raise TypeError(f"ds: start must be an integer scalar, got {start.aval.str_short()}") from None
    return Slice(start, size, stride)


def placed(entry: Slice, axis: int, length: Any) -> slice | Slice:
    """Return the slice of an axis that a block is, if its start is known; else the block.

    Raises:
        IndexError: the axis is shorter than the block.
        NotImplementedError: the start is traced, and the stride is not 1.
    """
    extent = (entry.size - 1) * entry.stride + 1 if entry.size else 0
    if extent > length:
        raise IndexError(f"a block of {extent} elements does not fit into axis {axis}, which has size {length}")
    start = entry.start
    if isinstance(start, Tracer):
        value = start.concrete()
        if value is None:
            if entry.stride != 1:
                raise NotImplementedError(
                    f"ds: a traced start with stride {entry.stride}; index by start + stride * arange"
                )
            return entry
        start = value
    first = int(host_value(start)) if entry.is_dynamic_start else start
    first = min(max(first + length if first < 0 else first, 0), length - extent)
    return slice(first, first + extent, entry.stride)
