"""Dimension numbers and modes of gathers and scatters, and the checks of both.

They are those of StableHLO's `gather` and `scatter`; the components of an index always lie along the last axis of
`indices`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from corejax.extend import ShapedArray, dtypes
from corejax.extend.messages import called_function
from corejax.extend.programs import register_param_type
from corejax_lax_basic._base.axes import Ints, ints

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers"]


@register_param_type
class GatherDimensionNumbers(NamedTuple):
    """The roles of the axes of a gather's operand, indices and result.

    Attributes:
        offset_dims: axes of the result that run through a window; increasing.
        collapsed_slice_dims: axes of the operand with windows of size 1, which the result lacks; increasing.
        start_index_map: for each component of an index, the operand's axis on which it is a position.
        operand_batching_dims: axes of the operand that are paired with axes of the indices; increasing.
        start_indices_batching_dims: the paired axes of the indices, in the same order.
    """

    offset_dims: Ints
    collapsed_slice_dims: Ints
    start_index_map: Ints
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()


@register_param_type
class ScatterDimensionNumbers(NamedTuple):
    """The roles of the axes of a scatter's operand, indices and updates.

    Attributes:
        update_window_dims: axes of the updates that run through a window; increasing.
        inserted_window_dims: axes of the operand with windows of size 1, which the updates lack; increasing.
        scatter_dims_to_operand_dims: for each component of an index, the operand's axis on which it is a position.
        operand_batching_dims: axes of the operand that are paired with axes of the indices; increasing.
        scatter_indices_batching_dims: the paired axes of the indices, in the same order.
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    operand_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


_Numbers = TypeVar("_Numbers", GatherDimensionNumbers, ScatterDimensionNumbers)


@register_param_type
class GatherScatterMode(enum.Enum):
    """The treatment of windows that do not lie inside the operand.

    Attributes:
        CLIP: they are moved inside.
        FILL_OR_DROP: gathered windows are filled with a value, scattered ones dropped.
        PROMISE_IN_BOUNDS: the caller promises that all windows are inside. If one is not, a gather moves it inside and
            a scatter drops it.
        ONE_HOT: an algorithm of `corejax.numpy.take_along_axis`; gathers and scatters do not accept it.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """Return a mode by its name: `"clip"`, `"fill"`, `"drop"` or None, `"promise_in_bounds"`, `"one_hot"`.

        Raises:
            ValueError: the name is unknown.
        """
        if isinstance(s, GatherScatterMode):
            return s
        if (s is not None and not isinstance(s, str)) or s not in _MODES:
            known = ", ".join(repr(name) for name in _MODES if name)
            name = called_function()
            head = f"{name}: " if name else ""
            raise ValueError(f"{head}unknown mode {s!r} of a gather or scatter; known modes are {known}")
        return _MODES[s]


CLIP, FILL, PROMISE = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS
_MODES: dict[str | None, GatherScatterMode] = {
    None: FILL,
    "clip": CLIP,
    "fill": FILL,
    "drop": FILL,
    "promise_in_bounds": PROMISE,
    "one_hot": GatherScatterMode.ONE_HOT,
}


def canonical_mode(name: str, mode: Any) -> GatherScatterMode:
    """Return the mode of a gather or scatter.

    Raises:
        ValueError: the mode is unknown, or it is `ONE_HOT`.
    """
    canonical = GatherScatterMode.from_any(mode)
    if canonical is GatherScatterMode.ONE_HOT:
        raise ValueError(f"{name}: gathers and scatters do not support the mode 'one_hot'; only take_along_axis does")
    return canonical


def canonical_numbers(name: str, numbers: Any, cls: type[_Numbers]) -> _Numbers:
    """Return dimension numbers with tuples of `int` as fields.

    Raises:
        TypeError: they are of another class.
    """
    if type(numbers) is not cls:
        raise TypeError(f"{name}: dimension_numbers must be a {cls.__name__}, got {numbers!r}")
    canonical: _Numbers = cls(*map(ints, numbers))
    return canonical


def gather_numbers(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """Return the dimension numbers of the gather that reads where a scatter writes: the fields correspond."""
    return GatherDimensionNumbers(*numbers)


def scatter_numbers(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """Return the dimension numbers of the scatter that writes where a gather reads."""
    return ScatterDimensionNumbers(*numbers)


# -- checks ------------------------------------------------------------------------------------------------------


def _check_axes(name: str, field: str, axes: Ints, rank: int, of: str, *, increasing: bool = True) -> None:
    for axis in axes:
        if not 0 <= axis < rank:
            raise TypeError(
                f"Invalid {field} set in {name} op; valid range is [0, {rank}), the axes of {of}, got {axis} in {axes}"
            )
    if len(set(axes)) != len(axes):
        raise TypeError(f"{field} in {name} op must not repeat an axis, got {axes}")
    if increasing and list(axes) != sorted(axes):
        raise TypeError(f"{field} in {name} op must be sorted, got {axes}")


def _check_disjoint(name: str, first: str, second: str, numbers: Any) -> None:
    both = set(getattr(numbers, first)) & set(getattr(numbers, second))
    if both:
        raise TypeError(
            f"{first} and {second} in {name} op must be disjoint: axis {min(both)} of the operand is among both of "
            f"{numbers}"
        )


def _check_common(name: str, x: ShapedArray, indices: ShapedArray, numbers: Any) -> None:
    """Check what gathers and scatters share: the indices, and the dimension numbers except for window sizes."""
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{name}: indices must be integers, got {indices.str_short()}")
    if not indices.ndim:
        raise TypeError(f"{name}: indices must have a last axis with the components of an index, got a scalar")
    windows, collapsed, index_map, batching, indices_batching = numbers
    fields = type(numbers)._fields
    of = "the result" if name == "gather" else "updates"
    _check_axes(name, fields[0], windows, indices.ndim - 1 + len(windows), of)
    _check_axes(name, fields[1], collapsed, x.ndim, "the operand")
    _check_axes(name, fields[2], index_map, x.ndim, "the operand", increasing=False)
    _check_axes(name, fields[3], batching, x.ndim, "the operand")
    _check_axes(name, fields[4], indices_batching, indices.ndim - 1, "indices without the last axis", increasing=False)
    _check_disjoint(name, fields[1], fields[3], numbers)
    _check_disjoint(name, fields[2], fields[3], numbers)
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{name}: an index has a component for each entry of {fields[2]} {index_map}, "
            f"the last axis of indices {indices.str_short()} has size {indices.shape[-1]}"
        )
    if len(batching) != len(indices_batching):
        raise TypeError(f"{name}: {fields[3]} {batching} and {fields[4]} {indices_batching} must have the same length")
    for axis, other in zip(batching, indices_batching, strict=True):
        if x.shape[axis] != indices.shape[other]:
            raise TypeError(
                f"{name}: batching axis {axis} of operand {x.str_short()} and {other} of indices "
                f"{indices.str_short()} must have the same size"
            )


def check_gather(
    x: ShapedArray, indices: ShapedArray, numbers: GatherDimensionNumbers, slice_sizes: Ints
) -> tuple[int, ...]:
    """Return the shape of a gather's result.

    Raises:
        TypeError: the dimension numbers do not fit operand, indices and `slice_sizes`; the message names the field.
    """
    _check_common("gather", x, indices, numbers)
    offsets, collapsed, _, batching, _ = numbers
    if len(slice_sizes) != x.ndim:
        raise TypeError(f"gather: slice_sizes {slice_sizes} must have a size for each axis of operand {x.str_short()}")
    for axis, (size, length) in enumerate(zip(slice_sizes, x.shape, strict=True)):
        if size < 0 or (size > length and 0 not in indices.shape):
            raise TypeError(
                f"Slice size at index {axis} in gather op is out of range: slice_sizes {slice_sizes} do not fit inside "
                f"operand {x.str_short()}"
            )
        if axis in collapsed and size != 1:
            raise TypeError(f"gather: slice_sizes {slice_sizes} must be 1 on collapsed_slice_dims {collapsed}")
        if axis in batching and size > 1:
            raise TypeError(f"gather: slice_sizes {slice_sizes} must be 1 on operand_batching_dims {batching}")
    if len(offsets) + len(collapsed) + len(batching) != x.ndim:
        raise TypeError(
            f"gather: each axis of operand {x.str_short()} must be collapsed, batching, or in offset_dims, "
            f"got {numbers}"
        )
    windows = iter(window_sizes(numbers, slice_sizes))
    places = iter(indices.shape[:-1])
    return tuple(next(windows) if d in offsets else next(places) for d in range(indices.ndim - 1 + len(offsets)))


def window_sizes(numbers: Any, slice_sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of a window without the operand's collapsed and batching axes."""
    left_out = (*numbers[1], *numbers[3])
    return tuple(size for axis, size in enumerate(slice_sizes) if axis not in left_out)


def slice_sizes_of(x: Ints, updates: Ints, numbers: ScatterDimensionNumbers) -> tuple[int, ...]:
    """Return the sizes of the windows that a scatter writes, for each axis of an operand of shape `x`."""
    sizes = iter([updates[d] for d in numbers.update_window_dims])
    left_out = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    return tuple(1 if axis in left_out else next(sizes) for axis in range(len(x)))


def check_scatter(
    name: str, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers
) -> None:
    """Refuse operands that do not fit the dimension numbers of a scatter.

    Raises:
        TypeError: they do not fit, and the message names the field; or dtypes differ.
    """
    if x.dtype != updates.dtype:
        raise TypeError(
            f"{name}: operand {x.str_short()} and updates {updates.str_short()} differ in dtype; convert one"
        )
    _check_common(name, x, indices, numbers)
    windows, inserted, _, batching, _ = numbers
    rank = indices.ndim - 1 + len(windows)
    if updates.ndim != rank:
        raise TypeError(
            f"Updates tensor must be of rank {rank}; got {updates.ndim}: in {name}, updates {updates.str_short()} have "
            f"the axes of indices {indices.str_short()} but the last, and those of update_window_dims {windows}"
        )
    if len(windows) + len(inserted) + len(batching) != x.ndim:
        raise TypeError(
            f"{name}: each axis of operand {x.str_short()} must be inserted, batching, or in "
            f"update_window_dims, got {numbers}"
        )
    places = tuple(n for d, n in enumerate(updates.shape) if d not in windows)
    if places != indices.shape[:-1]:
        raise TypeError(
            f"Bounds of the scatter dimensions of updates and indices differ in {name}: updates {updates.str_short()} "
            f"have sizes {places} outside of update_window_dims {windows}, indices {indices.str_short()} have "
            f"{indices.shape[:-1]}"
        )
    for axis, (size, length) in enumerate(zip(slice_sizes_of(x.shape, updates.shape, numbers), x.shape, strict=True)):
        if size > length and axis not in (*inserted, *batching):
            raise TypeError(
                f"Bounds of the window dimensions of updates exceed the operand in {name}: windows of updates "
                f"{updates.str_short()} do not fit inside operand {x.str_short()} on axis {axis}"
            )
