"""Elements taken and put by indices: `take`, `take_along_axis`, `put`, `put_along_axis`, `choose`, `place`, ..."""

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


def _indices_argument(name: str, indices: Any, position: int = 1) -> Any:
    indices = array_argument(name, indices, position)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{name}: {name} indices must be of integer type, got {indices.aval.dtype.name}")
    return indices


def _counted_from_front(indices: Any, size: int) -> Any:
    """Indices with the negative ones counted from the end; narrow integers become int32, which count far enough."""
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
    """Elements along an axis, or of the flattened array.

    Args:
        a: the array.
        indices: integers of any shape.
        axis: the axis; None flattens first.
        out: not supported.
        mode: what becomes of indices out of bounds: `"fill"` (None too) gives `fill_value`, `"clip"` takes the nearest
            and has no negative indices, `"wrap"` counts round and round; `"raise"` refuses them, which needs known
            values (`numpy.take` of an array asks for it).
        unique_indices: promises that no index is there twice.
        indices_are_sorted: promises that indices increase.
        fill_value: a scalar; by default NaN, the least signed or greatest unsigned integer, or True.

    Returns:
        An array with the indices' axes in place of `axis`.

    Raises:
        TypeError: the indices are not integers, or traced in mode `"raise"`.
        IndexError: the axis has no elements, or an index is out of bounds in mode `"raise"`.
        ValueError: there is no such axis or mode.
        NotImplementedError: `out` is given.
    """
    refuse_out("take", out)
    if mode not in (None, "fill", "clip", "wrap", "raise"):
        raise ValueError(f"take: mode is 'fill', 'clip', 'wrap' or 'raise', got {mode!r}")
    x, indices = array_argument("take", a), _indices_argument("take", indices)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    if not size and indices.size:
        raise IndexError(f"take: axis {axis} of {x.aval.str_short()} has no elements to take")
    if mode == "raise":
        _refuse_outside(indices, size)
        mode = None
    if _at_once(x, indices):
        found = _taken_by_numpy(x, indices, axis, "raise" if mode in (None, "fill") else mode)
        if found is not None:
            return found
    if mode == "wrap":
        indices = remainder(indices, like(indices, size)) if size else indices
    elif mode != "clip":
        indices = _counted_from_front(indices, size)
    count = indices.ndim
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(*range(axis), *range(axis + count, x.ndim + count - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    return lax.gather(
        x,
        lax.expand_dims(indices, (count,)),
        numbers,
        (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode={None: "fill", "wrap": "promise_in_bounds"}.get(mode, mode),
        fill_value=fill_value,
    )


def _refuse_outside(indices: Any, size: int) -> None:
    if not is_known(indices):
        raise TypeError("take: mode 'raise' looks at values, and these are traced; use mode 'fill', 'clip' or 'wrap'")
    if not indices.size:
        return
    outside = _outside(_counted_from_front(indices, size), size)
    if concrete("take", lax.reduce_or(outside, tuple(range(outside.ndim)))):
        raise IndexError(f"take: an index is out of bounds for size {size}; use mode 'fill', 'clip' or 'wrap'")


def _at_once(x: Any, indices: Any) -> bool:
    """Whether NumPy may take the elements: nothing is traced or split, and nobody has to see what is done with them."""
    known = type(x) is Array and type(indices) is Array and not is_spread(x)
    return known and recording_trace() is None and not observe.checking


def _taken_by_numpy(x: Array, indices: Array, axis: int, mode: Any) -> Array | None:
    """What NumPy takes; None where it does not know the indices' dtype, or one is to be filled."""
    value, i = host_value(x), host_value(indices)
    if i.dtype not in _NUMPY_INDICES or not value.flags.c_contiguous:
        return None
    try:
        out = value.take(i, axis=axis, mode=mode)
    except IndexError:
        return None
    return Array(np.asarray(out), x.aval.update(shape=out.shape))


# uint64 is not: NumPy casts indices to int64.
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
    """Elements along an axis, by other indices at each place of the other axes.

    Args:
        arr: the array.
        indices: integers, with as many axes; the others than `axis` broadcast against the array's.
        axis: the axis; None flattens the array, for a vector of indices.
        mode: `"fill"` (None too) gives `fill_value` for indices out of bounds, `"clip"` takes the nearest,
            `"promise_in_bounds"` says that there are none, `"one_hot"` computes by a product.
        fill_value: a scalar; by default NaN, the least signed or greatest unsigned integer, or True.
        wrap_negative_indices: whether negative indices count from the end; by default unless promised in bounds.

    Raises:
        TypeError: the indices are not integers.
        ValueError: the numbers of axes differ, the others do not broadcast, or there is no such axis or mode.
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
    if wrap_negative_indices is None and _at_once(x, indices):
        found = _along_axis_by_numpy(x, indices, axis)
        if found is not None:
            return found
    promised = mode is lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if not promised if wrap_negative_indices is None else wrap_negative_indices:
        indices = _counted_from_front(indices, size)
    if mode is lax.GatherScatterMode.ONE_HOT:
        return _along_axis_by_product(x, indices, axis, shape)
    return _gathered_along_axis(x, indices, axis, shape, mode, fill_value)


def _along_axis_by_numpy(x: Array, indices: Array, axis: int) -> Array | None:
    """What NumPy takes; None where it does not know the indices' dtype, or one is not in bounds."""
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
    """Positions on each axis, shaped to broadcast against indices of another one."""
    rank = len(shape)
    return tuple(np.arange(n).reshape([n if e == d else 1 for e in range(rank)]) for d, n in enumerate(shape))


def _gathered_along_axis(x: Any, indices: Any, axis: int, shape: tuple[int, ...], mode: Any, fill_value: Any) -> Any:
    """Axes that both have go along with each other; others of the array are windows, others of the indices places."""
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


def _along_axis_by_product(x: Any, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """The sum over the axis of what an index matches: each place compares the whole axis."""
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
    """A vector repeated, or cut, to a length."""
    count = values.shape[0]
    if count < size:
        times = -(-size // count)
        values = lax.reshape(lax.broadcast_in_dim(values, (times, count), (1,)), (times * count,))
    return values[:size] if values.shape[0] != size else values


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """An array with elements of the flattened array replaced.

    Args:
        a: the array.
        ind: integers.
        v: values, repeated as often as needed.
        mode: what becomes of indices out of bounds: None leaves them out, `"clip"` takes the nearest and has no
            negative indices, `"wrap"` counts round and round.
        inplace: has to be False: arrays are immutable.

    Raises:
        ValueError: `inplace` is True, or there is no such mode.
        NotImplementedError: `mode` is `"raise"`.
    """
    if inplace:
        raise ValueError(f"put: {_IMMUTABLE}")
    if mode == "raise":
        raise NotImplementedError("put: mode 'raise' would look at values; use None, 'clip' or 'wrap'")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode is None, 'clip' or 'wrap', got {mode!r}")
    x, indices = array_argument("put", a), _indices_argument("put", ind)
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
    """An array with elements along an axis replaced, by other indices at each place of the other axes.

    Args:
        arr: the array.
        indices: integers, with as many axes as the array.
        values: broadcast to the indices' shape.
        axis: the axis; None flattens the array.
        inplace: has to be False: arrays are immutable.
        mode: what becomes of indices out of bounds, as of `x.at[...].set`.

    Raises:
        ValueError: `inplace` is True, the numbers of axes differ, or values do not broadcast.
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
    """An array with the elements for which a mask holds replaced by values in turn, repeated as often as needed.

    Args:
        arr: the array.
        mask: a condition for each element.
        vals: the values.
        inplace: has to be False: arrays are immutable.

    Raises:
        ValueError: `inplace` is True, the mask has another size, or there are no values.
    """
    if inplace:
        raise ValueError(f"place: {_IMMUTABLE}")
    x, mask, values = array_arguments("place", arr, mask, vals)
    if x.size != mask.size:
        raise ValueError(f"place: the mask {mask.aval.str_short()} has not the size of {x.aval.str_short()}")
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
    """An array with the elements of its diagonal, all indices equal, replaced.

    Args:
        a: array of at least two axes, of one length if there are more.
        val: a scalar, or values repeated as often as needed.
        wrap: not supported.
        inplace: has to be False: arrays are immutable.

    Raises:
        ValueError: the array has fewer than two axes, or more of different lengths.
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
    """For each element, the one of `choices` that an index names.

    Args:
        a: integers, which broadcast against the choices.
        choices: arrays, or the rows of one.
        out: not supported.
        mode: what becomes of indices out of bounds: `"raise"` refuses them, which needs known values; `"clip"` takes
            the nearest, `"wrap"` counts round and round.

    Raises:
        TypeError: the indices are not integers.
        ValueError: an index is out of bounds in mode `"raise"`, there are no choices, or no such mode.
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
        if concrete("choose", outside, "mode 'raise' looks at the indices; traced ones take mode 'clip' or 'wrap'"):
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
