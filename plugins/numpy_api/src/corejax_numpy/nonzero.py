"""Indices of nonzero elements: `nonzero` and its variants, `where`, and selection of elements by conditions.

The number of nonzero elements is part of the result's shape. So the values must be concrete, or `size` gives the
number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes, host_value
from corejax_lax_basic import lax
from corejax_numpy import elementwise
from corejax_numpy.arguments import (
    array_argument,
    canonical_axis,
    concrete,
    function_argument,
    number_argument,
    refuse_out,
    static_int,
    to_bool,
)
from corejax_numpy.indexing import take


def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> tuple[Any, ...]:
    """Return the indices of the nonzero elements, a vector for each axis, in row-major order.

    Args:
        a: an array of at least one axis.
        size: the number of indices in the result; required if the array is traced. Longer results are cut, and shorter
            ones padded.
        fill_value: the padding, a scalar or a tuple with a scalar for each axis; 0 by default.

    Raises:
        ValueError: the array is a scalar, `size` is negative, or `fill_value` has another form.
        ConcretizationTypeError: the array is traced, and `size` is not given.
    """
    return _nonzero("nonzero", a, size, fill_value)


def _nonzero(name: str, a: Any, size: Any, fill_value: Any) -> tuple[Any, ...]:
    x = number_argument(name, a)
    if not x.ndim:
        raise ValueError(f"{name}: a scalar has no axes to index; use atleast_1d first")
    if isinstance(x, Tracer):
        x = to_bool(x)  # booleans have no tangents, so the value may be known
    known = _known(x)
    if size is None:
        if known is None:
            raise _needs_size(name, x)
        return tuple(_as_indices(i) for i in np.nonzero(known))
    count = static_int(name, size, "size", least=0)
    total: Any
    if not (count and x.size):
        indices, total = [lax.full((count,), 0, dtypes.default_int_dtype())] * x.ndim, 0
    elif known is not None:
        first = [i[:count] for i in np.nonzero(known)]
        total = len(first[0])
        indices = [_as_indices(np.concatenate([i, np.zeros(count - total, i.dtype)])) for i in first]
    else:
        indices, total = _first(x, count)
    if fill_value is None:
        return tuple(indices)
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(values) != x.ndim or any(lax.is_several(v) for v in values):
        raise ValueError(f"{name}: fill_value is a scalar or a tuple of {x.ndim} scalars, got {fill_value!r}")
    is_padding = elementwise.greater_equal(lax.iota(dtypes.default_int_dtype(), count), total)
    return tuple(elementwise.where(is_padding, v, i) for v, i in zip(values, indices, strict=True))


def _known(x: Any) -> Any:
    """Return the value of an array as a NumPy array, also of a tracer with a concrete value; else None."""
    if isinstance(x, Tracer):
        x = x.concrete()
    return None if x is None else host_value(x)


def _as_indices(i: Any) -> Any:
    return as_array(i.astype(dtypes.default_int_dtype()))


def _needs_size(name: str, x: Any) -> Exception:
    try:
        concrete(name, x.any())
    except TypeError as error:
        kind = type(error)
    return kind(
        f"{name}: the shape of the result depends on the number of nonzero elements, so the array must be concrete, "
        f"or the number given: {name}(..., size=n). Got {x!r}.\n{x.origin()}"
    )


def first_true(mask: Any, count: int, otherwise: int = 0) -> tuple[Any, Any]:
    """Return the first `count` true positions of a vector, padded with `otherwise`, and the number of true elements."""
    dtype = dtypes.default_int_dtype()
    numbers = lax.cumsum(lax.convert_element_type(mask, dtype))
    place = lax.select(mask, lax.sub(numbers, 1), lax.full_like(numbers, count))
    places = lax.full((count,), otherwise, dtype).at[place]
    positions = places.set(lax.iota(dtype, mask.size), mode="drop", wrap_negative_indices=False)
    return positions, numbers[-1]


def _first(mask: Any, count: int) -> tuple[list[Any], Any]:
    """Return the indices of the first `count` true elements, padded with zeros, and the number of true elements."""
    positions, total = first_true(lax.reshape(mask, (mask.size,)), count)
    out: list[Any] = []
    stride = math.prod(mask.shape)
    for size in mask.shape:
        stride //= size
        i = lax.div(positions, stride) if stride > 1 else positions
        out.append(i if len(out) == 0 else lax.rem(i, size))
    return out, total


def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """Return the indices of the nonzero elements of the flattened array; arguments as for `nonzero`."""
    x = array_argument("flatnonzero", a)
    return _nonzero("flatnonzero", lax.reshape(x, (x.size,)), size, fill_value)[0]


def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """Return the indices of the nonzero elements, one row for each element; arguments as for `nonzero`."""
    x = array_argument("argwhere", a)
    if not x.ndim:
        (rows,) = _nonzero("argwhere", lax.reshape(x, (1,)), size, fill_value)
        return lax.full((rows.shape[0], 0), 0, rows.dtype)
    columns = _nonzero("argwhere", x, size, fill_value)
    return lax.concatenate([lax.expand_dims(c, 1) for c in columns], 1)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """Return `x` where `condition` is nonzero, else `y`; with the condition alone, `nonzero(condition)`.

    Args:
        condition: a boolean array; elements of another dtype count as true if they differ from zero.
        x: values to take where the condition is true.
        y: values to take elsewhere; all three broadcast together.
        size: an argument of `nonzero`, with the condition alone.
        fill_value: an argument of `nonzero`, with the condition alone.

    Returns:
        An array of the dtype that `x` and `y` promote to; or a tuple of index vectors.

    Raises:
        ValueError: only one of `x` and `y` is given, they are given together with `size` or `fill_value`, or the
            shapes do not broadcast together.
    """
    if x is None and y is None:
        return _nonzero("where", condition, size, fill_value)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value go with the condition alone, not with x and y")
    return elementwise.where(condition, x, y)


# -- selection by a condition ----------------------------------------------------------------------------------------


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: Any = None, fill_value: Any = 0, out: None = None
) -> Any:
    """Return the slices along an axis for which a condition is true.

    Args:
        condition: a vector, no longer than the axis.
        a: the array.
        axis: the axis; None, the default, flattens the array first.
        size: the number of slices in the result; required if the condition is traced.
        fill_value: the padding if fewer than `size` elements are true; 0 by default.
        out: not supported; must be None.

    Raises:
        ValueError: the condition is not a vector, or is true beyond the end of the axis; or `size` is larger than the
            axis.
        NotImplementedError: `out` is given.
    """
    refuse_out("compress", out)
    mask = to_bool(array_argument("compress", condition))
    x = array_argument("compress", a, 1)
    if mask.ndim != 1:
        raise ValueError(f"compress: the condition is a vector, got {mask.aval.str_short()}")
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    length = x.shape[axis]
    known = _known(mask)
    if known is not None and known[length:].any() and size is None:
        raise ValueError(f"compress: the condition is true beyond the end of axis {axis} of {x.aval.str_short()}")
    mask = mask[:length]
    if size is not None and not 0 <= (size := static_int("compress", size, "size")) <= length:
        raise ValueError(f"compress: size {size} is out of bounds for axis {axis} of {x.aval.str_short()}")
    chosen = _nonzero("compress", mask, size, length if size is not None else None)[0]
    if not length or size is None:
        return take(x, chosen, axis, mode="clip")
    taken = take(x, chosen, axis, mode="clip")
    is_valid = lax.expand_dims(lax.lt(chosen, length), tuple(range(1, x.ndim - axis)))
    is_valid = lax.broadcast_in_dim(is_valid, taken.shape, tuple(range(axis, x.ndim)))
    value = lax.convert_element_type(array_argument("compress", fill_value), x.dtype)
    return lax.select(is_valid, taken, lax.broadcast_to(value, taken.shape))


def extract(condition: Any, arr: Any, *, size: Any = None, fill_value: Any = 0) -> Any:
    """Return the elements for which a condition is true, as a vector; `size` and `fill_value` as for `compress`."""
    mask, x = array_argument("extract", condition), array_argument("extract", arr, 1)
    return compress(lax.reshape(mask, (mask.size,)), x, size=size, fill_value=fill_value)


def mask_indices(n: int, mask_func: Callable[[Any, Any], Any], k: Any = 0, *, size: Any = None) -> tuple[Any, Any]:
    """Return the indices of an n by n matrix at which `mask_func(ones, k)` is nonzero; `triu`, for example."""
    n = static_int("mask_indices", n, "n", least=0)
    function_argument("mask_indices", mask_func, "mask_func")
    i, j = _nonzero("mask_indices", mask_func(lax.full((n, n), 1.0), k), size, None)
    return i, j
