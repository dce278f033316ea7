"""Several arrays made one, one made several, and elements repeated or moved along an axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Tracer
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, array_arguments, canonical_axis, concrete, promote_dtypes
from corejax_numpy.manipulation import atleast_1d, atleast_2d, broadcast_to, expand_dims, ravel

# -- joining -----------------------------------------------------------------------------------------------------


def _parts(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the rows of one array."""
    if not isinstance(arrays, tuple | list):
        arrays = list(array_argument(name, arrays))
    if not arrays:
        raise ValueError(f"{name} needs at least one array, got none")
    return list(arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an axis that they have (flattened first, for None).

    Args:
        arrays: a sequence of arrays whose shapes differ at most in that axis, or one array, whose rows are meant.
        axis: the axis.
        dtype: dtype of the result; by default what those of the arrays promote to.

    Raises:
        ValueError: there are no arrays, they are scalars, or the axis does not exist.
        TypeError: the other axes' sizes differ.
    """
    xs = promote_dtypes("concatenate", *_parts("concatenate", arrays))
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    if any(x.ndim == 0 for x in xs):
        raise ValueError("concatenate: scalars have no axis to join along; use stack")
    if dtype is not None:
        xs = [lax.convert_element_type(x, dtype) for x in xs]
    return lax.concatenate(xs, canonical_axis(axis, xs[0].ndim))


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """Arrays joined along an axis that they have; see `concatenate`."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new axis.

    Raises:
        ValueError: there are no arrays, or their shapes differ.
    """
    xs = array_arguments("stack", *_parts("stack", arrays))
    if len({x.shape for x in xs}) > 1:
        raise ValueError(f"stack: arrays have one shape, got {', '.join(str(x.shape) for x in xs)}")
    place = canonical_axis(axis, xs[0].ndim + 1)
    return concatenate([expand_dims(x, place) for x in promote_dtypes("stack", *_parts("stack", arrays))], place, dtype)


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays below each other: joined along the first axis, vectors as rows."""
    return concatenate([atleast_2d(x) for x in _parts("vstack", tup)], 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays beside each other: joined along the second axis, vectors along their only one."""
    parts = [atleast_1d(x) for x in _parts("hstack", tup)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def column_stack(tup: Any) -> Any:
    """Vectors as columns, and matrices, beside each other."""
    parts = [atleast_1d(x) for x in _parts("column_stack", tup)]
    return concatenate([x if x.ndim > 1 else expand_dims(x, 1) for x in parts], 1)


# -- splitting ---------------------------------------------------------------------------------------------------


def split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """An array cut into parts along an axis.

    Args:
        ary: the array.
        indices_or_sections: a number of equal parts, or the indices at which parts begin.
        axis: the axis.

    Raises:
        ValueError: the axis does not divide into that many equal parts.
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """As `split`; where the axis does not divide evenly the first parts are longer by one."""
    return _split("array_split", ary, indices_or_sections, axis)


def _split(name: str, ary: Any, indices_or_sections: Any, axis: int) -> list[Any]:
    x = array_argument(name, ary)
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    if isinstance(indices_or_sections, tuple | list | range) or np.ndim(indices_or_sections):
        cuts = [operator.index(concrete(name, i)) for i in indices_or_sections]
        cuts = [max(0, min(size, i + size if i < 0 else i)) for i in cuts]
    else:
        sections = int(concrete(name, indices_or_sections))
        if sections <= 0:
            raise ValueError(f"{name}: the number of parts is positive, got {sections}")
        part, longer = divmod(size, sections)
        if name == "split" and longer:
            raise ValueError(
                f"split: axis {axis} of size {size} does not divide into {sections} equal parts; see array_split"
            )
        cuts = [i * part + min(i, longer) for i in range(1, sections)]
    bounds = list(zip([0, *cuts], [*cuts, size], strict=True))
    return [lax.slice_in_dim(x, start, max(start, stop), axis=axis) for start, stop in bounds]


# -- repeating and moving ----------------------------------------------------------------------------------------


def tile(A: Any, reps: int | Sequence[int]) -> Any:
    """An array repeated as a whole along its axes, and new leading ones.

    Args:
        A: the array.
        reps: how often along each axis, matched from the last one.
    """
    x = array_argument("tile", A)
    counts = tuple(int(concrete("tile", n)) for n in (reps if isinstance(reps, tuple | list) else (reps,)))
    rank = max(x.ndim, len(counts))
    sizes = (1,) * (rank - x.ndim) + x.shape
    counts = (1,) * (rank - len(counts)) + counts
    spread = [n for pair in zip((1,) * rank, sizes, strict=True) for n in pair]
    repeated = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    out = broadcast_to(lax.reshape(x, tuple(spread)), repeated)
    return lax.reshape(out, tuple(c * n for c, n in zip(counts, sizes, strict=True)))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element repeated along an axis (of the flattened array, for None).

    Args:
        a: the array.
        repeats: how often: one number, or one for each index along the axis; known while tracing.
        axis: the axis.

    Raises:
        ValueError: there are not as many numbers as indices, or one is negative.
    """
    x = array_argument("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.ndim)
    counts = np.asarray(repeats)  # a traced one is refused here, with its origin
    if counts.dtype.kind not in "iu" or counts.min(initial=0) < 0 or counts.shape not in ((), (1,), (x.shape[axis],)):
        raise ValueError(
            f"repeat: one number, or {x.shape[axis]} numbers, that are not negative integers; got {repeats!r}"
        )
    if counts.size == 1:
        count = int(counts.reshape(()))
        spread = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
        out = lax.broadcast_in_dim(x, spread, tuple(d for d in range(x.ndim + 1) if d != axis + 1))
        return lax.reshape(out, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))
    parts = [tile_along(lax.slice_in_dim(x, i, i + 1, axis=axis), int(n), axis) for i, n in enumerate(counts)]
    return lax.concatenate(parts, axis) if parts else x


def tile_along(x: Any, count: int, axis: int) -> Any:
    """An array of size 1 along an axis, repeated along it."""
    return lax.broadcast_in_dim(x, (*x.shape[:axis], count, *x.shape[axis + 1 :]), tuple(range(x.ndim)))


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Elements moved along axes; those that leave at the end come back at the beginning.

    Args:
        a: the array.
        shift: by how much: one number or one for each axis; may be traced.
        axis: the axis or axes, the flattened array for None.

    Raises:
        ValueError: as many shifts as axes are needed.
    """
    x = array_argument("roll", a)
    if axis is None:
        return lax.reshape(_rolled(ravel(x), shift, 0), x.shape)
    axes = list(axis) if isinstance(axis, tuple | list) else [axis]
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: as many shifts as axes, got {shift!r} and {axis!r}")
    for d, by in zip(axes, shifts, strict=True):
        x = _rolled(x, by, canonical_axis(d, x.ndim))
    return x


def _rolled(x: Any, shift: Any, axis: int) -> Any:
    size = x.shape[axis]
    if size == 0:
        return x
    if isinstance(shift, Tracer):
        return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), (-shift) % size, size, axis)
    start = -operator.index(concrete("roll", shift)) % size
    if start == 0:
        return x
    front = lax.slice_in_dim(x, 0, start, axis=axis)
    return lax.concatenate([lax.slice_in_dim(x, start, size, axis=axis), front], axis)


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    """An array with a border of one value.

    Args:
        array: the array.
        pad_width: widths before and after, for each axis; one pair or one number for all.
        mode: only "constant" yet.
        constant_values: the value; or values before and after, for each axis or for all.

    Raises:
        NotImplementedError: another mode.
        ValueError: the widths do not fit the array's axes, or are negative.
    """
    if mode != "constant":
        raise NotImplementedError(f"pad: mode {mode!r} is not implemented, only 'constant'")
    x = array_argument("pad", array)
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "iu" or widths.min(initial=0) < 0:
        raise ValueError(f"pad: widths are integers that are not negative, got {pad_width!r}")
    try:
        pairs = [tuple(map(int, pair)) for pair in np.broadcast_to(widths, (x.ndim, 2))]
    except ValueError:
        raise ValueError(
            f"pad: widths {pad_width!r} are not pairs for the {x.ndim} axes of {x.aval.str_short()}"
        ) from None
    if not isinstance(constant_values, tuple | list):
        value = lax.convert_element_type(array_argument("pad", constant_values), x.dtype)
        return lax.pad(x, value, [(*pair, 0) for pair in pairs]) if any(map(sum, pairs)) else x
    values = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2))
    for axis, (pair, sides) in enumerate(zip(pairs, values, strict=True)):
        for side, (width, value) in enumerate(zip(pair, sides, strict=True)):
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (0, width, 0) if side else (width, 0, 0)
            x = lax.pad(x, lax.convert_element_type(value, x.dtype), config) if width else x
    return x
