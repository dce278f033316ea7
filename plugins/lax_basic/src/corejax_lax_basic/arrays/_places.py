"""Translation of an index to gathers and scatters: the elements that it selects, and their order.

The order is NumPy's: the axes of adjacent index arrays replace the axis of the first array; those of others come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import ShapedArray, Tracer, as_array, config, dtypes, host_value
from corejax.extend.types import SymbolicDim
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.scalars import is_array, make_scalar
from corejax_lax_basic.arrays._basic_indexing import (
    common_index_dtype,
    forward,
    in_index_dtype,
    is_advanced,
    position_in_symbol,
)
from corejax_lax_basic.arrays.dynamic_slices import Slice
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.iota import iota_p
from corejax_lax_basic.elementwise.select import clamp
from corejax_lax_basic.indexing.dimension_numbers import GatherDimensionNumbers
from corejax_lax_basic.indexing.from_front import from_front
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p, broadcast_shapes
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.slicing import canonical_index

_INDEX = np.dtype(np.int32)


class Places(NamedTuple):
    """The elements that an index selects.

    Attributes:
        indices: the indices of the gather that reads the elements.
        numbers: the dimension numbers of the gather.
        sizes: the slice sizes of the gather.
        shape: shape of the elements as the index orders them, new axes included.
        new_axes: axes of that shape that the gather's result lacks.
        reverse: axes of the gather's result that the index reverses.
        distinct: whether no element is selected twice.
    """

    indices: Any
    numbers: GatherDimensionNumbers
    sizes: Ints
    shape: Ints
    new_axes: Ints
    reverse: Ints
    distinct: bool


def places_of(x: Any, entries: Sequence[Any], *, strict: bool, wrap: bool = True) -> Places:
    """Return the elements that a complete index without boolean arrays selects.

    Args:
        x: the array.
        entries: an entry for each axis, Nones, and an Ellipsis that stands for no axis.
        strict: whether static integers out of bounds raise an error.
        wrap: whether negative positions count from the end.

    Raises:
        IndexError: index arrays do not broadcast together, or a static integer is out of bounds.
        TypeError: an index array is not of integers.
    """
    building = _Building(x.aval)
    joint: Ints = ()
    start = -1
    if any(map(is_advanced, entries)):
        advanced = [i for i, e in enumerate(entries) if type(e) is int or is_array(e)]
        joint = joint_shape([entries[i].aval.shape for i in advanced if is_array(entries[i])])
        start = advanced[0] if advanced[-1] - advanced[0] + 1 == len(advanced) else 0
    for i, entry in enumerate(entries):
        if i == start:
            building.joint(joint)
        if entry is None:
            building.new_axis()
        elif isinstance(entry, slice):
            building.slice(entry)
        elif type(entry) is Slice:
            building.block(entry)
        elif entry is not Ellipsis:
            building.position(entry, strict, wrap)
    return building.places(distinct=start < 0)


def joint_shape(shapes: Sequence[Ints]) -> Ints:
    """Return the shape to which index arrays broadcast.

    Raises:
        IndexError: they do not broadcast together.
    """
    try:
        return broadcast_shapes(*shapes)
    except ValueError as error:
        raise IndexError(f"index arrays do not broadcast together: {error}") from None


class _Building:
    """A builder of `Places`, which takes the entries of an index one by one."""

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval
        self.sizes: list[int] = []  # slice sizes of the operand's axes so far
        self.outer: list[int] = []  # sizes of the axes of the gather's indices so far
        self.shape: list[int] = []
        self.new_axes: list[int] = []
        self.offsets: list[int] = []
        self.collapsed: list[int] = []
        self.reverse: list[int] = []
        # The components of an index: operand axes, positions, and the first axis of indices along which they
        # lie. That axis is None for arrays, which may come before their joint axes: `places` computes it.
        self.index_map: list[int] = []
        self.values: list[Any] = []
        self.firsts: list[int | None] = []
        self.joint_end = 0

    def joint(self, shape: Ints) -> None:
        """Insert the joint axes of the index arrays."""
        self.outer += shape
        self.shape += shape
        self.joint_end = len(self.outer)

    def new_axis(self) -> None:
        self.new_axes.append(len(self.shape))
        self.shape.append(1)

    def slice(self, entry: slice) -> None:
        axis = len(self.sizes)
        size = self.aval.shape[axis]
        start, limit, step = forward(entry, size)
        count = -((start - limit) // abs(step))
        place = len(self.shape) - len(self.new_axes)
        if step < 0:
            self.reverse.append(place)
        if abs(step) == 1 or (not isinstance(count, SymbolicDim) and count <= 1):
            self.offsets.append(place)
            self.sizes.append(count)
            if count != size:
                self._component(axis, _constant(start), 0)
        else:
            self._component(axis, _every(start, limit, abs(step)), len(self.outer))
            self.outer.append(count)
            self._collapse(axis)
        self.shape.append(count)

    def block(self, entry: Slice) -> None:
        """Add a block of an axis at a traced position, which is clamped as by `dynamic_slice`."""
        axis = len(self.sizes)
        size = self.aval.shape[axis]
        dtype = common_index_dtype([entry.start], self.aval.shape)
        start = from_front(in_index_dtype(entry.start, dtype), size)
        self._component(axis, clamp(make_scalar(0, dtype), start, make_scalar(size - entry.size, dtype)), 0)
        self.offsets.append(len(self.shape) - len(self.new_axes))
        self.sizes.append(entry.size)
        self.shape.append(entry.size)

    def position(self, entry: Any, strict: bool, wrap: bool) -> None:
        axis = len(self.sizes)
        size = self.aval.shape[axis]
        if type(entry) is int and isinstance(size, SymbolicDim):
            entry = as_array(np.asarray(entry, _INDEX)) if not strict else position_in_symbol(entry, axis, size)
        if type(entry) is int:
            strict = strict and not config.x64_compat  # JAX clamps in reads and drops in writes
            entry = canonical_index(entry, axis, size) if strict else entry + size * (wrap and entry < 0)
            value: Any = np.asarray(min(max(entry, -1), size), _index_dtype(self.aval.shape))
        elif isinstance(entry, SymbolicDim):
            value = _constant(entry)
        else:
            if not dtypes.is_integer(entry.aval.dtype):
                raise TypeError(
                    f"arrays can be indexed by integer and boolean arrays, got one of type {entry.aval.str_short()}"
                )
            value = _positions(entry, self.aval.shape, size, wrap)
        self._component(axis, value, None)
        self._collapse(axis)

    def _collapse(self, axis: int) -> None:
        self.sizes.append(1)
        self.collapsed.append(axis)

    def _component(self, axis: int, value: Any, first: int | None) -> None:
        self.index_map.append(axis)
        self.values.append(value)
        self.firsts.append(first)

    def places(self, distinct: bool) -> Places:
        """Return the elements that the entries select."""
        firsts = [
            self.joint_end - len(v.shape) if first is None else first
            for v, first in zip(self.values, self.firsts, strict=True)
        ]
        numbers = GatherDimensionNumbers(tuple(self.offsets), tuple(self.collapsed), tuple(self.index_map))
        indices = _stacked(self.values, firsts, tuple(self.outer), self.aval.shape)
        return Places(
            indices,
            numbers,
            tuple(self.sizes),
            tuple(self.shape),
            tuple(self.new_axes),
            tuple(self.reverse),
            distinct,
        )


def _constant(position: Any) -> Any:
    """Return a static position as a NumPy array; a symbolic one becomes a value of the program."""
    return as_array(position) if isinstance(position, SymbolicDim) else np.asarray(position, _INDEX)


def _every(start: Any, limit: Any, step: int) -> Any:
    """Return the positions from `start` to `limit` in steps of `step`."""
    if type(start) is int and type(limit) is int:
        return np.arange(start, limit, step).astype(_INDEX)
    count = -((start - limit) // step)
    steps = iota_p.bind(dtype=_INDEX, shape=(count,), dimension=0)
    return steps * step + as_array(start)


def _index_dtype(shape: Ints) -> np.dtype[Any]:
    return common_index_dtype([], shape)


def _positions(entry: Any, shape: Ints, size: int, wrap: bool) -> Any:
    """Return an index array counted from the front: a NumPy array if it is concrete, else a tracer."""
    if isinstance(entry, Tracer) or isinstance(size, SymbolicDim):
        entry = entry if entry.aval.dtype.itemsize >= 4 else convert_element_type(entry, _index_dtype(shape))
        return from_front(entry, size) if wrap else entry
    positions = host_value(entry)
    if positions.dtype == np.uint64:
        positions = np.minimum(positions, np.uint64(size))
    positions = positions.astype(np.int64)
    if wrap:
        positions = np.where(positions < 0, positions + size, positions)
    # Positions out of bounds stay out of bounds: windows on this axis have size 1.
    return np.asarray(np.clip(positions, -1, size), _index_dtype(shape))  # `np.clip` of a scalar is no array


def _stacked(values: list[Any], firsts: list[int], outer: Ints, shape: Ints) -> Any:
    """Stack components along the last axis of one array, which is a constant if all are concrete."""
    if {np.ndarray}.issuperset(map(type, values)) and all(type(n) is int for n in outer):
        out = np.empty((*outer, len(values)), _index_dtype(shape))
        for k, (value, first) in enumerate(zip(values, firsts, strict=True)):
            trailing = len(outer) - first - value.ndim
            out[..., k] = value.reshape(value.shape + (1,) * trailing)
        return as_array(out)
    values = [as_array(v) for v in values]
    dtype = values[0].aval.dtype
    if len(values) > 1:
        dtype = common_index_dtype([v for v in values if isinstance(v, Tracer)], shape)
    parts = [
        broadcast_in_dim_p.bind(
            in_index_dtype(v, dtype),
            shape=(*outer, 1),
            broadcast_dimensions=tuple(range(first, first + v.aval.ndim)),
        )
        for v, first in zip(values, firsts, strict=True)
    ]
    return concatenate(parts, len(outer)) if len(parts) > 1 else parts[0]
