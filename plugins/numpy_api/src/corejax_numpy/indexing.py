"""Take and replace elements by indices: `take`, `take_along_axis`, `put`, `put_along_axis`, `place`, `choose`, ..."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, dtypes, host_value
from corejax.extend.devices import is_spread
from corejax.extend.messages import observe
from corejax.extend.transforms import recording_trace
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    array_arguments,
    canonical_axis,
    concrete,
    is_known,
    like,
    promote_dtypes,
    refuse_out,
    strong,
    to_bool,
)
from corejax_numpy.elementwise import remainder

_IMMUTABLE = "arrays are immutable: pass inplace=False, and take the result"


def _indices_argument(name: str, indices: Any, position: int = 1, booleans: bool = False) -> Any:
    indices = array_argument(name, indices, position)
    if booleans and dtypes.is_bool(indices.dtype):  # as in NumPy, 0 and 1 and not a mask
        return lax.convert_element_type(indices, np.int32)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{name}: {name} indices must be of integer type, got {indices.aval.dtype.name}")
    return indices


def _count_from_front(indices: Any, size: int) -> Any:
    """Add the size to negative indices; integers narrower than 32 bits become int32, as the size may not fit."""
    if dtypes.is_unsigned(indices.dtype):
        return indices
    if indices.dtype.itemsize < 4:
        indices = lax.convert_element_type(indices, np.int32)
    return lax.select(lax.lt(indices, like(indices, 0)), lax.add(indices, like(indices, size)), indices)


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Take elements along an axis, or from the flattened array.

    Args:
        a: the array.
        indices: integers of any shape; booleans are the indices 0 and 1.
        axis: the axis to take along; None, the default, flattens the array first.
        out: not supported; must be None.
        mode: how indices out of bounds are handled. `"fill"` (also None, the default) returns `fill_value`; `"clip"`
            takes the nearest element and does not support negative indices; `"wrap"` takes indices modulo the size;
            `"raise"` raises IndexError and requires concrete indices (`numpy.take` of an array passes it).
        unique_indices: a promise that no index occurs twice, which may speed up the derivative; False by default.
        indices_are_sorted: a promise that the indices are in ascending order; False by default.
        fill_value: a scalar; by default NaN, the smallest signed or largest unsigned integer, or True.

    Returns:
        An array with the axes of `indices` in place of `axis`.

    Raises:
        TypeError: the indices are not integers, or are traced in mode `"raise"`.
        IndexError: the axis has no elements, or an index is out of bounds in mode `"raise"`.
        ValueError: the axis does not exist, or the mode is unknown.
        NotImplementedError: `out` is given.
    """
    refuse_out("take", out)
    if mode not in (None, "fill", "clip", "wrap", "raise"):
        raise ValueError(f"take: mode is 'fill', 'clip', 'wrap' or 'raise', got {mode!r}")
    x, indices = array_argument("take", a), _indices_argument("take", indices, booleans=True)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    if not size and indices.size:
        raise IndexError(f"take: axis {axis} of {x.aval.str_short()} has no elements to take")
    if mode == "raise":
        _check_bounds(indices, size)
        mode = None
    if _can_use_numpy(x, indices):
        taken = _take_with_numpy(x, indices, axis, "raise" if mode in (None, "fill") else mode)
        if taken is not None:
            return taken
    if mode == "wrap":
        indices = remainder(indices, like(indices, size)) if size else indices
    elif mode != "clip":
        indices = _count_from_front(indices, size)
    return _gather(
        x,
        indices,
        axis,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode={None: "fill", "wrap": "promise_in_bounds"}.get(mode, mode),
        fill_value=fill_value,
    )


def _gather(x: Any, indices: Any, axis: int, **options: Any) -> Any:
    """Gather slices at indices along an axis, counted from the front; the options are those of `lax.gather`."""
    count = indices.ndim
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(*range(axis), *range(axis + count, x.ndim + count - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return lax.gather(x, lax.expand_dims(indices, (count,)), numbers, sizes, **options)


def _check_bounds(indices: Any, size: int) -> None:
    if not is_known(indices):
        raise TypeError(
            "take: mode 'raise' needs concrete indices, and these are traced; use mode 'fill', 'clip' or 'wrap'"
        )
    if not indices.size:
        return
    outside = _outside(_count_from_front(indices, size), size)
    if concrete("take", lax.reduce_or(outside, tuple(range(outside.ndim)))):
        raise IndexError(f"take: an index is out of bounds for size {size}; use mode 'fill', 'clip' or 'wrap'")


def _can_use_numpy(x: Any, indices: Any) -> bool:
    """Return whether NumPy may take the elements.

    All operands must be concrete and on one device, no program is being traced, and no observer checks the operations.
    """
    known = type(x) is Array and type(indices) is Array and not is_spread(x)
    return known and recording_trace() is None and not observe.checking


def _take_with_numpy(x: Array, indices: Array, axis: int, mode: Any) -> Array | None:
    """Return what NumPy takes; None if NumPy does not support the indices' dtype, or an index is out of bounds."""
    value, i = host_value(x), host_value(indices)
    if i.dtype not in _NUMPY_INDICES or not value.flags.c_contiguous:
        return None
    try:
        out = value.take(i, axis=axis, mode=mode)
    except IndexError:
        return None
    return Array(np.asarray(out), x.aval.update(shape=out.shape))


# uint64 is missing: NumPy casts indices to int64.
_NUMPY_INDICES = frozenset(np.dtype(t) for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"))


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """Take elements along an axis, with different indices at each position of the other axes.

    Args:
        arr: the array.
        indices: integers, an array of as many axes as `arr`; axes other than `axis` broadcast against those of `arr`.
        axis: the axis to take along, by default the last; None flattens the array, and `indices` must then be a
            vector.
        mode: how indices out of bounds are handled. `"fill"` (also None, the default) returns `fill_value`; `"clip"`
            takes the nearest element; `"promise_in_bounds"` promises that all indices are in bounds; `"one_hot"`
            computes the result as a product with a one-hot matrix.
        fill_value: a scalar; by default NaN, the smallest signed or largest unsigned integer, or True.
        wrap_negative_indices: whether negative indices count from the end; by default True, unless the mode is
            `"promise_in_bounds"`.

    Raises:
        TypeError: the indices are not integers.
        ValueError: the numbers of axes differ, the other axes do not broadcast, the axis does not exist, or the mode
            is unknown.
    """
    name = "take_along_axis"
    x, indices = array_argument(name, arr), _indices_argument(name, indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"{name}: with axis None the indices are a vector, got {indices.aval.str_short()}")
        x, axis = lax.reshape(x, (x.size,)), 0
    if x.ndim != indices.ndim:
        raise ValueError(
            f"{name}: array and indices have as many axes, got {x.aval.str_short()} and {indices.aval.str_short()}"
        )
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    try:
        shape = lax.broadcast_shapes(indices.shape, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    except ValueError:
        raise ValueError(
            f"{name}: axes other than {axis} of indices {indices.aval.str_short()} do not broadcast against those "
            f"of {x.aval.str_short()}"
        ) from None
    if not size:
        return lax.full(shape, 0, x.dtype)
    mode = lax.GatherScatterMode.from_any(mode)
    if wrap_negative_indices is None and _can_use_numpy(x, indices):
        taken = _take_along_axis_with_numpy(x, indices, axis)
        if taken is not None:
            return taken
    promised = mode is lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if not promised if wrap_negative_indices is None else wrap_negative_indices:
        indices = _count_from_front(indices, size)
    if mode is lax.GatherScatterMode.ONE_HOT:
        return _sum_with_one_hot(x, indices, axis, shape)
    return _gather_along_axis(x, indices, axis, shape, mode, fill_value)


def _take_along_axis_with_numpy(x: Array, indices: Array, axis: int) -> Array | None:
    """Return what NumPy takes; None if it does not support the dtype, or an index is negative or out of bounds."""
    i = host_value(indices)
    if i.dtype not in _NUMPY_INDICES or (i.size and i.min() < 0):
        return None
    index = list(_other_axes(x.aval.shape, axis))
    index[axis] = i
    try:
        out = host_value(x)[tuple(index)]
    except IndexError:
        return None
    return Array(out, x.aval.update(shape=out.shape))


@functools.lru_cache(maxsize=256)
def _other_axes(shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Return the positions along each axis, shaped to broadcast against indices along the others."""
    rank = len(shape)
    return tuple(np.arange(n).reshape([n if e == d else 1 for e in range(rank)]) for d, n in enumerate(shape))


def _gather_along_axis(x: Any, indices: Any, axis: int, shape: tuple[int, ...], mode: Any, fill_value: Any) -> Any:
    """Take elements along an axis by one gather.

    Axes that the array and the indices share are batching axes. Axes of the array alone are windows (offsets), and
    axes of the indices alone are axes of the gather's positions.
    """
    offsets, batching, places, sizes, dropped = [], [], [], [], []
    for d, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if d == axis:
            places.append(d)
            sizes.append(1)
        elif m == 1:
            offsets.append(d)
            sizes.append(n)
        else:
            places.append(d)
            if n == 1:
                dropped.append(d)
            else:
                batching.append(d)
                sizes.append(0 if n == 0 else 1)
    new = {d: k for k, d in enumerate(d for d in range(x.ndim) if d not in dropped)}
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(offsets),
        collapsed_slice_dims=(new[axis],),
        start_index_map=(new[axis],),
        operand_batching_dims=tuple(new[d] for d in batching),
        start_indices_batching_dims=tuple(places.index(d) for d in batching),
    )
    indices = lax.reshape(indices, (*(indices.shape[d] for d in places), 1))
    x = lax.squeeze(x, tuple(dropped)) if dropped else x
    return lax.gather(x, indices, numbers, tuple(sizes), mode=mode, fill_value=fill_value)


def _sum_with_one_hot(x: Any, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Sum the elements that match each index: each position compares its index with the whole axis."""
    hot_shape = (*shape, x.shape[axis])
    hot = lax.eq(
        lax.broadcast_in_dim(indices, hot_shape, tuple(range(x.ndim))),
        lax.broadcasted_iota(indices.dtype, hot_shape, x.ndim),
    )
    moved = lax.expand_dims(lax.transpose(x, (*(d for d in range(x.ndim) if d != axis), axis)), (axis,))
    spread = lax.broadcast_in_dim(moved, hot_shape, tuple(range(x.ndim + 1)))
    if dtypes.is_bool(x.dtype):
        return lax.reduce_or(lax.bitwise_and(hot, spread), (x.ndim,))
    return lax.reduce_sum(lax.select(hot, spread, lax.full_like(spread, 0)), (x.ndim,))


# -- putting -----------------------------------------------------------------------------------------------------


def tiled_to(values: Any, size: int) -> Any:
    """Repeat or cut a vector to a length."""
    count = values.shape[0]
    if count < size:
        times = -(-size // count)
        values = lax.reshape(lax.broadcast_in_dim(values, (times, count), (1,)), (times * count,))
    return values[:size] if values.shape[0] != size else values


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """Return a copy of an array with elements of the flattened array replaced.

    Args:
        a: the array.
        ind: the indices into the flattened array, integers.
        v: the new values, repeated as often as needed.
        mode: how indices out of bounds are handled. None, the default, ignores them; `"clip"` replaces the nearest
            element and does not support negative indices; `"wrap"` takes indices modulo the size.
        inplace: must be False, because arrays are immutable.

    Raises:
        ValueError: `inplace` is True, or the mode is unknown.
        NotImplementedError: `mode` is `"raise"`.
    """
    if inplace:
        raise ValueError(f"put: {_IMMUTABLE}")
    if mode == "raise":
        raise NotImplementedError(
            "put: mode 'raise' is not supported, as it needs concrete indices; use None, 'clip' or 'wrap'"
        )
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode is None, 'clip' or 'wrap', got {mode!r}")
    x, indices = array_argument("put", a), _indices_argument("put", ind, booleans=True)
    values = array_argument("put", v, 2)
    lax.check_dtype_promotion("put", (x, values))
    if not (x.size and indices.size and values.size):
        return x
    indices = lax.reshape(indices, (indices.size,))
    if mode == "wrap":
        indices = remainder(indices, like(indices, x.size))
    values = tiled_to(lax.reshape(values, (values.size,)), indices.size)
    at = lax.reshape(x, (x.size,)).at[indices]
    out = at.set(values, mode="clip" if mode == "clip" else "drop", wrap_negative_indices=mode is None)
    return lax.reshape(out, x.shape)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: str | None = None
) -> Any:
    """Return a copy of an array with elements along an axis replaced, by different indices at each position.

    Args:
        arr: the array.
        indices: integers, an array of as many axes as `arr`.
        values: the new values, broadcast to the shape of `indices`.
        axis: the axis to replace along; None flattens the array first.
        inplace: must be False, because arrays are immutable.
        mode: how indices out of bounds are handled, as for `x.at[...].set`.

    Raises:
        ValueError: `inplace` is True, the numbers of axes differ, or the values do not broadcast.
    """
    name = "put_along_axis"
    if inplace:
        raise ValueError(f"{name}: {_IMMUTABLE}")
    x, indices = array_argument(name, arr), _indices_argument(name, indices)
    values = array_argument(name, values, 2)
    shape = x.shape
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    if x.ndim != indices.ndim:
        raise ValueError(
            f"{name}: array and indices have as many axes, got {x.aval.str_short()} and {indices.aval.str_short()}"
        )
    axis = canonical_axis(axis, x.ndim)
    try:
        values = lax.broadcast_to(values, indices.shape)
    except ValueError:
        raise ValueError(
            f"{name}: values {values.aval.str_short()} do not broadcast to indices {indices.aval.str_short()}"
        ) from None
    index = [
        indices if d == axis else np.arange(n).reshape([-1 if e == d else 1 for e in range(x.ndim)])
        for d, n in enumerate(x.shape)
    ]
    return lax.reshape(x.at[tuple(index)].set(values, mode=mode), shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """Return a copy of an array with the elements that a mask selects replaced by values in turn.

    Args:
        arr: the array.
        mask: a boolean array of the size of `arr`.
        vals: the new values, repeated as often as needed.
        inplace: must be False, because arrays are immutable.

    Raises:
        ValueError: `inplace` is True, the mask has another size, or there are no values.
    """
    if inplace:
        raise ValueError(f"place: {_IMMUTABLE}")
    x, mask, values = array_arguments("place", arr, mask, vals)
    if x.size != mask.size:
        raise ValueError(f"place: the mask {mask.aval.str_short()} does not have the size of {x.aval.str_short()}")
    if not values.size:
        raise ValueError(f"place: there are no values, got {values.aval.str_short()}")
    if not x.size:
        return x
    flat = lax.reshape(to_bool(mask), (x.size,))
    values = lax.convert_element_type(lax.reshape(values, (values.size,)), x.dtype)
    numbers = lax.cumsum(lax.convert_element_type(flat, dtypes.default_int_dtype()))
    turn = lax.rem(lax.max(lax.sub(numbers, like(numbers, 1)), like(numbers, 0)), like(numbers, values.size))
    chosen = take(values, turn, mode="clip")
    return lax.reshape(lax.select(flat, chosen, lax.reshape(x, (x.size,))), x.shape)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """Return a copy of an array with its diagonal (the elements with equal indices) replaced.

    Args:
        a: an array of at least two axes; if it has more, their sizes must be equal.
        val: a scalar, or values that are repeated as often as needed.
        wrap: not supported; must be False.
        inplace: must be False, because arrays are immutable.

    Raises:
        ValueError: the array has fewer than two axes, or more than two of different sizes.
        NotImplementedError: `inplace` or `wrap` is True.
    """
    if inplace:
        raise NotImplementedError(f"fill_diagonal: {_IMMUTABLE}")
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported")
    x, values = array_arguments("fill_diagonal", a, val)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(
            "fill_diagonal takes arrays of at least two axes, of one length if there are more, "
            f"got {x.aval.str_short()}"
        )
    n = min(x.shape)
    if n and not values.size:
        raise ValueError(f"fill_diagonal: there are no values for the {n} elements of the diagonal")
    if values.ndim:
        values = tiled_to(lax.reshape(values, (values.size,)), n)
    return x.at[(np.arange(n),) * x.ndim].set(values, unique_indices=True)


# -- choosing ----------------------------------------------------------------------------------------------------


def choose(a: Any, choices: Sequence[Any], out: None = None, mode: str = "raise") -> Any:
    """Build an array by choosing each element from one of several arrays.

    Args:
        a: integers, the index of the choice for each element; they broadcast against the choices.
        choices: a sequence of arrays, or one array with the choices as rows.
        out: not supported; must be None.
        mode: how indices out of bounds are handled. `"raise"`, the default, raises ValueError and requires concrete
            indices; `"clip"` takes the nearest choice; `"wrap"` takes indices modulo the number of choices.

    Raises:
        TypeError: the indices are not integers.
        ValueError: an index is out of bounds in mode `"raise"`, there are no choices, or the mode is unknown.
        ConcretizationTypeError: the indices are traced, in mode `"raise"`.
        NotImplementedError: `out` is given.
    """
    refuse_out("choose", out)
    indices = _indices_argument("choose", a, 0)
    parts = list(choices) if isinstance(choices, tuple | list) else list(array_argument("choose", choices, 1))
    if not parts:
        raise ValueError("choose: there are no choices")
    count = len(parts)
    if mode == "raise":
        outside = lax.reduce_max(_outside(indices, count), tuple(range(indices.ndim)))
        if concrete(
            "choose", outside, "mode 'raise' needs concrete indices; use mode 'clip' or 'wrap' for traced ones"
        ):
            raise ValueError(f"choose: an index is out of bounds for {count} choices; use mode 'clip' or 'wrap'")
    elif mode == "wrap":
        indices = remainder(indices, like(indices, count))
    elif mode != "clip":
        raise ValueError(f"choose: mode is 'raise', 'clip' or 'wrap', got {mode!r}")
    parts = promote_dtypes("choose", *parts)
    shape = lax.broadcast_shapes(indices.shape, *(p.shape for p in parts))
    parts = [lax.broadcast_to(strong(p), shape) for p in parts]
    if mode == "clip" and indices.dtype.itemsize > 4:
        indices = lax.clamp(like(indices, 0), indices, like(indices, count - 1))
    return lax.select_n(lax.broadcast_to(lax.convert_element_type(indices, np.int32), shape), *parts)


def _outside(indices: Any, count: int) -> Any:
    low = lax.lt(indices, like(indices, 0))
    return lax.bitwise_or(low, lax.ge(indices, like(indices, count)))
