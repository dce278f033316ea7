"""Where an array is nonzero, as indices: `nonzero` and kin, `where`; and what is said in terms of them.

How many there are is part of the result's shape. So values have to be known, or the number is given as `size`.
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
    """Indices of the nonzero elements, a vector for each axis, in row-major order.

    Args:
        a: array of at least one axis.
        size: how many, where values are traced: the first so many, filled up where there are fewer.
        fill_value: what they are filled up with, one scalar or one for each axis; 0 by default.

    Raises:
        ValueError: the array is a scalar, `size` is negative, or `fill_value` fits neither form.
        ConcretizationTypeError: the array is traced and `size` is not given.
    """
    return _nonzero("nonzero", a, size, fill_value)


def _nonzero(name: str, a: Any, size: Any, fill_value: Any) -> tuple[Any, ...]:
    x = number_argument(name, a)
    if not x.ndim:
        raise ValueError(f"{name}: a scalar has no axes to count along; use atleast_1d first")
    if isinstance(x, Tracer):
        x = to_bool(x)  # which has no tangent that would be lost
    known = _known(x)
    if size is None:
        if known is None:
            raise _needs_size(name, x)
        return tuple(_as_indices(i) for i in np.nonzero(known))
    count = static_int(name, size, "size", least=0)
    there: Any
    if not (count and x.size):
        indices, there = [lax.full((count,), 0, dtypes.default_int_dtype())] * x.ndim, 0
    elif known is not None:
        found = [i[:count] for i in np.nonzero(known)]
        there = len(found[0])
        filled = [np.concatenate([i, np.zeros(count - there, i.dtype)]) for i in found]
        indices = [_as_indices(i) for i in filled]
    else:
        indices, there = _first(x, count)
    if fill_value is None:
        return tuple(indices)
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(values) != x.ndim or any(lax.is_several(v) for v in values):
        raise ValueError(f"{name}: fill_value is a scalar or a tuple of {x.ndim} scalars, got {fill_value!r}")
    rest = elementwise.greater_equal(lax.iota(dtypes.default_int_dtype(), count), there)
    return tuple(elementwise.where(rest, v, i) for v, i in zip(values, indices, strict=True))


def _known(x: Any) -> Any:
    """The NumPy array of a value that is known, a traced one's too."""
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
        f"{name}: how many elements are nonzero is part of the result's shape, so the array has to be known, "
        f"or the number given: {name}(..., size=n). Got {x!r}.\n{x.origin()}"
    )


def first_true(mask: Any, count: int, otherwise: int = 0) -> tuple[Any, Any]:
    """The first `count` places where a vector is true, `otherwise` where there are fewer; and how many are true."""
    dtype = dtypes.default_int_dtype()
    numbers = lax.cumsum(lax.convert_element_type(mask, dtype))
    place = lax.select(mask, lax.sub(numbers, 1), lax.full_like(numbers, count))
    places = lax.full((count,), otherwise, dtype).at[place]
    found = places.set(lax.iota(dtype, mask.size), mode="drop", wrap_negative_indices=False)
    return found, numbers[-1]


def _first(mask: Any, count: int) -> tuple[list[Any], Any]:
    """Indices of the first `count` true elements, zeros where there are fewer; and how many are true."""
    positions, there = first_true(lax.reshape(mask, (mask.size,)), count)
    out, stride = [], math.prod(mask.shape)
    for size in mask.shape:
        stride //= size
        i = lax.div(positions, stride) if stride > 1 else positions
        out.append(i if len(out) == 0 else lax.rem(i, size))
    return out, there


def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """Indices of the nonzero elements of the flattened array; see `nonzero`."""
    x = array_argument("flatnonzero", a)
    return _nonzero("flatnonzero", lax.reshape(x, (x.size,)), size, fill_value)[0]


def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """Indices of the nonzero elements, a row for each; see `nonzero`."""
    x = array_argument("argwhere", a)
    if not x.ndim:
        (found,) = _nonzero("argwhere", lax.reshape(x, (1,)), size, fill_value)
        return lax.full((found.shape[0], 0), 0, found.dtype)
    columns = _nonzero("argwhere", x, size, fill_value)
    return lax.concatenate([lax.expand_dims(c, 1) for c in columns], 1)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None) -> Any:
    """`x` where `condition` is nonzero, else `y`; with the condition alone, `nonzero(condition)`.

    Args:
        condition: a boolean array; elements of another dtype count as true where they differ from zero.
        x: values where it is true.
        y: values elsewhere; all three broadcast together.
        size: of `nonzero`, with the condition alone.
        fill_value: of `nonzero`, with the condition alone.

    Returns:
        An array of the dtype that `x` and `y` promote to; or a tuple of indices.

    Raises:
        ValueError: only one of `x` and `y` is given, they come with `size` or `fill_value`, or the shapes do not
            broadcast together.
    """
    if x is None and y is None:
        return _nonzero("where", condition, size, fill_value)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value go with the condition alone, not with x and y")
    return elementwise.where(condition, x, y)


# -- elements by condition ---------------------------------------------------------------------------------------


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: Any = None, fill_value: Any = 0, out: None = None
) -> Any:
    """The parts along an axis (of the flattened array, for None) for which a condition holds.

    Args:
        condition: a vector, no longer than the axis.
        a: the array.
        axis: the axis.
        size: how many, where the condition is traced.
        fill_value: what is put where there are fewer.
        out: not supported.

    Raises:
        ValueError: the condition is not a vector, or holds beyond the end of the axis; `size` does not fit.
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
        raise ValueError(f"compress: the condition holds beyond the end of axis {axis} of {x.aval.str_short()}")
    mask = mask[:length]
    if size is not None and not 0 <= (size := static_int("compress", size, "size")) <= length:
        raise ValueError(f"compress: size {size} does not fit axis {axis} of {x.aval.str_short()}")
    chosen = _nonzero("compress", mask, size, length if size is not None else None)[0]
    if not length or size is None:
        return take(x, chosen, axis, mode="clip")
    taken = take(x, chosen, axis, mode="clip")
    there = lax.expand_dims(lax.lt(chosen, length), tuple(range(1, x.ndim - axis)))
    there = lax.broadcast_in_dim(there, taken.shape, tuple(range(axis, x.ndim)))
    value = lax.convert_element_type(array_argument("compress", fill_value), x.dtype)
    return lax.select(there, taken, lax.broadcast_to(value, taken.shape))


def extract(condition: Any, arr: Any, *, size: Any = None, fill_value: Any = 0) -> Any:
    """The elements for which a condition holds, as a vector; see `compress`."""
    mask, x = array_argument("extract", condition), array_argument("extract", arr, 1)
    return compress(lax.reshape(mask, (mask.size,)), x, size=size, fill_value=fill_value)


def mask_indices(n: int, mask_func: Callable[[Any, Any], Any], k: Any = 0, *, size: Any = None) -> tuple[Any, Any]:
    """Indices of an n by n matrix that `mask_func(ones, k)` leaves nonzero: `triu` for the upper triangle."""
    n = static_int("mask_indices", n, "n", least=0)
    function_argument("mask_indices", mask_func, "mask_func")
    i, j = _nonzero("mask_indices", mask_func(lax.full((n, n), 1.0), k), size, None)
    return i, j
