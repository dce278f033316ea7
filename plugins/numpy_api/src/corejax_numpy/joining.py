"""Join arrays along an existing or a new axis, and split an array along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Tracer
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    array_arguments,
    canonical_axis,
    promote_dtypes,
    refuse_out,
    static_int,
)
from corejax_numpy.manipulation import moveaxis, ravel, reshape

_Shape = tuple[int, ...]
_Shaped = Callable[[_Shape], _Shape]
Sections = int | Sequence[int]


def _parts(name: str, arrays: Sequence[Any]) -> list[Any]:
    if not arrays:
        raise ValueError(f"{name} needs at least one array, got none")
    return array_arguments(name, *arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Join arrays along an existing axis.

    Args:
        arrays: a sequence of arrays with shapes that agree except in that axis; or one array, to join its rows.
        axis: the axis to join along, 0 by default; None flattens the arrays first.
        dtype: dtype of the result; by default the arrays' promoted dtype.

    Raises:
        ValueError: there are no arrays, they are scalars, or the axis does not exist.
        TypeError: the sizes of the other axes differ.
    """
    return _join("concatenate", arrays, axis, dtype)


def _check_one_sequence(name: str, second: Any) -> None:
    """Raise TypeError if an array is passed as the axis or the dtype: the user forgot the parentheses."""
    if not isinstance(second, str) and lax.is_several(second):
        raise TypeError(f"{name} takes its arrays as one sequence: write {name}((x, y)), not {name}(x, y)")


def _join(name: str, arrays: Any, axis: int | None, dtype: Any = None, shaped: _Shaped = tuple) -> Any:
    """Join the arrays of a sequence, or the rows of one array; `shaped` maps each shape to one of full rank first."""
    for second in (axis, dtype):
        _check_one_sequence(name, second)
    rows = not isinstance(arrays, tuple | list)
    xs = [_stack_of_rows(name, arrays)] if rows else promote_dtypes(name, *_parts(name, arrays))
    shapes = [(*x.shape[:rows], *shaped(x.shape[rows:])) for x in xs]
    xs = [x if x.shape == shape else reshape(x, shape) for x, shape in zip(xs, shapes, strict=True)]
    if dtype is not None:
        xs = [lax.convert_element_type(x, dtype) for x in xs]
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
        if rows:
            return xs[0]
    if any(x.ndim == rows for x in xs):
        raise ValueError(f"{name}: scalars have no axis to join along; use stack")
    along = canonical_axis(axis, xs[0].ndim - rows, name=name)
    if not rows:
        return lax.concatenate(xs, along)
    x = moveaxis(xs[0], 0, along)
    return reshape(x, (*x.shape[:along], x.shape[along] * x.shape[along + 1], *x.shape[along + 2 :]))


def _stack_of_rows(name: str, array: Any) -> Any:
    x = array_argument(name, array, "arrays")
    if not x.ndim:
        raise TypeError(f"{name} takes a sequence of arrays, got {array!r} of type {type(array).__name__}")
    if not x.shape[0]:
        raise ValueError(f"{name} needs at least one array, got none")
    return x


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """Join arrays along an existing axis; see `concatenate`."""
    return _join("concat", arrays, axis)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Append an array to another along an axis.

    Args:
        arr: the array.
        values: the array to append.
        axis: the axis to join along; None, the default, flattens both arrays first.

    Raises:
        ValueError: an array is a scalar, or the axis does not exist.
        TypeError: the sizes of the other axes differ.
    """
    return _join("append", array_arguments("append", arr, values), axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Join arrays of one shape along a new axis.

    Args:
        arrays: a sequence of arrays; or one array, to stack its rows.
        axis: the position of the new axis in the result, 0 by default.
        out: not supported; must be None.
        dtype: dtype of the result; by default the arrays' promoted dtype.

    Raises:
        ValueError: there are no arrays, their shapes differ, or the position is out of bounds.
        NotImplementedError: `out` is given.
    """
    _check_one_sequence("stack", axis)
    refuse_out("stack", out)
    if not isinstance(arrays, (tuple, list)):
        x = _stack_of_rows("stack", arrays)
        x = moveaxis(x, 0, canonical_axis(axis, x.ndim, name="stack"))
        return x if dtype is None else lax.convert_element_type(x, dtype)
    xs = promote_dtypes("stack", *_parts("stack", arrays))
    if len({x.shape for x in xs}) > 1:
        raise ValueError(f"stack: arrays have one shape, got {', '.join(str(x.shape) for x in xs)}")
    if dtype is not None:
        xs = [lax.convert_element_type(x, dtype) for x in xs]
    return lax.stack(xs, canonical_axis(axis, xs[0].ndim + 1, name="stack"))


def _as_matrix(shape: _Shape) -> _Shape:
    return shape if len(shape) > 1 else (1, *(shape or (1,)))


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Stack arrays vertically: join them along the first axis, with vectors as rows."""
    return _join("vstack", tup, 0, dtype, _as_matrix)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Stack arrays horizontally: join them along the second axis, vectors along their only axis."""
    if isinstance(tup, tuple | list):
        tup = _parts("hstack", tup)
        rank = tup[0].ndim
    else:
        rank = _stack_of_rows("hstack", tup).ndim - 1
    return _join("hstack", tup, 0 if rank < 2 else 1, dtype, lambda shape: shape or (1,))


def dstack(tup: Any, dtype: Any = None) -> Any:
    """Stack arrays in depth: join them along the third axis, which matrices get as a new last axis."""
    return _join("dstack", tup, 2, dtype, lambda s: (*_as_matrix(s), 1) if len(s) < 3 else s)


def column_stack(tup: Any) -> Any:
    """Stack vectors as columns, and matrices side by side, into a matrix."""
    return _join("column_stack", tup, 1, None, lambda s: s if len(s) > 1 else (*(s or (1,)), 1))


def block(arrays: Any) -> Any:
    """Assemble an array from nested lists of blocks.

    Blocks in the innermost lists are joined along the last axis, the results along the axis before, and so on
    outwards.

    Args:
        arrays: an array, or lists of arrays, nested to one depth.

    Raises:
        ValueError: the lists are nested to different depths, or a list is empty.
        TypeError: the sizes of adjacent blocks do not match, or there is a tuple among the lists.
    """
    depth = _block_depth(arrays)
    leaves = _leaves(arrays)
    rank = max(depth, *(x.ndim for x in leaves), 0)
    blocks = iter([lax.expand_dims(x, tuple(range(rank - x.ndim))) if x.ndim < rank else x for x in leaves])

    def joined(node: Any, level: int) -> Any:
        if not isinstance(node, list):
            return next(blocks)
        return _join("block", [joined(child, level + 1) for child in node], rank - (depth - level))

    return joined(arrays, 0)


def _leaves(node: Any) -> list[Any]:
    if isinstance(node, list):
        return [leaf for child in node for leaf in _leaves(child)]
    return [array_argument("block", node)]


def _block_depth(node: Any) -> int:
    if isinstance(node, tuple):
        raise TypeError(f"block: blocks are in lists, got a tuple of {len(node)}")
    if not isinstance(node, list):
        return 0
    if not node:
        raise ValueError("block: a list of blocks is empty")
    depths = {_block_depth(child) for child in node}
    if len(depths) > 1:
        raise ValueError(f"block: lists beside each other have one depth, got {sorted(depths)}")
    return 1 + depths.pop()


def split(ary: Any, indices_or_sections: Sections, axis: int = 0) -> list[Any]:
    """Split an array into parts along an axis.

    Args:
        ary: the array.
        indices_or_sections: the number of equal parts, or the indices at which the array is split.
        axis: the axis to split along, 0 by default.

    Returns:
        A list of arrays.

    Raises:
        ValueError: the axis does not divide into that many equal parts.
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Sections, axis: int = 0) -> list[Any]:
    """Split an array as `split` does; if the axis does not divide evenly, the first parts are longer by one."""
    return _split("array_split", ary, indices_or_sections, axis, evenly=False)


def hsplit(ary: Any, indices_or_sections: Sections) -> list[Any]:
    """Split an array along the second axis (the only axis of a vector); see `split`."""
    x = array_argument("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Sections) -> list[Any]:
    """Split an array along the first axis; see `split`."""
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Sections) -> list[Any]:
    """Split an array along the third axis; see `split`."""
    return _split("dsplit", ary, indices_or_sections, 2)


def _split(name: str, ary: Any, indices_or_sections: Any, axis: int, evenly: bool = True) -> list[Any]:
    x = array_argument(name, ary)
    axis = canonical_axis(axis, x.ndim, name=name)
    size = x.shape[axis]
    if lax.is_several(indices_or_sections) and not isinstance(indices_or_sections, set | frozenset | dict):
        cuts = [static_int(name, i, "indices_or_sections") for i in indices_or_sections]
        cuts = [max(0, min(size, i + size if i < 0 else i)) for i in cuts]
    else:
        cuts = _cuts(name, size, indices_or_sections, axis, evenly)
    bounds = list(zip([0, *cuts], [*cuts, size], strict=True))
    if all(start <= stop for start, stop in bounds):
        return list(lax.split(x, [stop - start for start, stop in bounds], axis))
    return [lax.slice_in_dim(x, start, max(start, stop), axis=axis) for start, stop in bounds]


def _cuts(name: str, size: int, number: Any, axis: int, evenly: bool) -> list[int]:
    try:
        sections = static_int(name, number, "indices_or_sections")
    except TypeError:
        if isinstance(number, Tracer):
            raise
        raise TypeError(
            f"{name}: indices_or_sections is an integer or a sequence of integers, got {number!r}"
        ) from None
    if sections <= 0:
        raise ValueError(f"{name}: the number of parts is positive, got {sections}")
    part, longer = divmod(size, sections)
    if evenly and longer:
        raise ValueError(
            f"{name}: axis {axis} of size {size} does not divide into {sections} equal parts; see array_split"
        )
    return [i * part + min(i, longer) for i in range(1, sections)]


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Split an array into its elements along an axis; return a tuple.

    Args:
        x: an array of at least one axis.
        axis: the axis to remove, 0 by default.

    Raises:
        ValueError: the axis does not exist.
    """
    x = array_argument("unstack", x)
    axis = canonical_axis(axis, x.ndim, name="unstack")
    elements: tuple[Any, ...] = lax.unstack(x, axis)
    return elements
