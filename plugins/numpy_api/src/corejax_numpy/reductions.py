"""Reductions over axes, with NumPy's arguments: `axis` (None, one, several), `keepdims`, `dtype`, `where`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    Axis,
    array_argument,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    like,
    promote,
    strong,
    to_bool,
)
from corejax_numpy.elementwise import isclose

Fold = Callable[[Any, tuple[int, ...]], Any]


def _reduce(fold: Fold, x: Any, axis: Axis, keepdims: bool) -> Any:
    """Apply a reduction of the primitives over axes."""
    axes = tuple(sorted(canonical_axes(axis, x.ndim)))
    out = fold(x, axes) if axes else x
    return lax.expand_dims(out, axes) if keepdims and axes else out


def _masked(x: Any, where: Any, otherwise: Any) -> Any:
    """Elements that do not count replaced by one that makes no difference."""
    if where is None:
        return x
    mask = to_bool(array_argument("where", where))
    if mask.ndim > x.ndim:
        raise ValueError(f"the mask has shape {mask.shape}, which does not broadcast to the array's, {x.shape}")
    if lax.is_python_scalar(otherwise):
        otherwise = like(x, otherwise)
    return lax.select(lax.broadcast_to(mask, x.shape), x, otherwise)


def spread_back(reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """The result of reducing over axes repeated over them; a scalar stays one, since it mixes with any shape."""
    if not reduced.shape:
        return reduced
    gone = canonical_axes(axis, len(shape))
    return lax.broadcast_in_dim(reduced, shape, tuple(d for d in range(len(shape)) if d not in gone))


# -- sums and products -------------------------------------------------------------------------------------------


def _sum_dtype(dtype: Any) -> Any:
    """Dtype of sums: integers narrower than the default ones, and booleans, are summed as default ones."""
    if dtypes.is_bool(dtype):
        return dtypes.default_int_dtype()
    if not dtypes.is_integer(dtype):
        return dtype
    default = dtypes.default_uint_dtype() if dtypes.is_unsigned(dtype) else dtypes.default_int_dtype()
    return default if dtypes.iinfo(dtype).bits < dtypes.iinfo(default).bits else dtype


def _accumulated(
    name: str,
    fold: Fold,
    combine: Any,
    neutral: int,
    a: Any,
    axis: Axis,
    dtype: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    x = array_argument(name, a)
    if dtype is not None and dtypes.is_bool(canonical_dtype(dtype)):
        return _of_truth_values(name, combine, x, axis, keepdims, initial, where)
    if dtype is not None or x.aval.weak_type or not dtypes.is_inexact(x.aval.dtype):
        x = lax.convert_element_type(x, canonical_dtype(dtype) or _sum_dtype(x.dtype))
    out = _reduce(fold, _masked(x, where, neutral), axis, keepdims)
    return out if initial is None else combine(out, lax.convert_element_type(initial, x.dtype))


def _of_truth_values(name: str, combine: Any, x: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Any:
    """A sum of booleans is whether any is true, a product whether all are."""
    if initial is not None:
        initial = to_bool(array_argument("initial", initial))
    if combine is lax.add:
        out = any(x, axis, keepdims, where=where)
        return out if initial is None else lax.bitwise_or(out, initial)
    out = all(x, axis, keepdims, where=where)
    return out if initial is None else lax.bitwise_and(out, initial)


def sum(
    a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Sum of elements over axes.

    Args:
        a: the array.
        axis: the axes; None is all of them.
        dtype: dtype of the sum; by default the array's, but the default integer's for narrower ones and booleans.
        keepdims: keep the axes, with size 1.
        initial: what to add.
        where: which elements count.

    Raises:
        ValueError: an axis does not exist, or is given twice.
    """
    return _accumulated("sum", lax.reduce_sum, lax.add, 0, a, axis, dtype, keepdims, initial, where)


def prod(
    a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Product of elements over axes; arguments as of `sum`."""
    return _accumulated("prod", lax.reduce_prod, lax.mul, 1, a, axis, dtype, keepdims, initial, where)


def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Number of elements that differ from zero, over axes."""
    return sum(to_bool(array_argument("count_nonzero", a)), axis, keepdims=keepdims)


# -- extremes ----------------------------------------------------------------------------------------------------


def _extreme(name: str, fold: Fold, combine: Any, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Any:
    x = strong(array_argument(name, a))
    axes = canonical_axes(axis, x.ndim)
    if initial is None:
        if where is not None:
            raise ValueError(f"{name}: with a mask give `initial`, the result where no element counts")
        if 0 in (x.shape[d] for d in axes):
            raise ValueError(f"{name}: {x.aval.str_short()} has no elements along axes {axes}; give `initial`")
        return _reduce(fold, x, axis, keepdims)
    initial = lax.convert_element_type(initial, x.dtype)
    return combine(_reduce(fold, _masked(x, where, initial), axis, keepdims), initial)


def max(a: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """Largest element over axes; NaN if there is one.

    Args:
        a: the array.
        axis: the axes; None is all of them.
        keepdims: keep the axes, with size 1.
        initial: least value of the result.
        where: which elements count.

    Raises:
        ValueError: there are no elements, or there is a mask, and no `initial`.
    """
    return _extreme("max", lax.reduce_max, lax.max, a, axis, keepdims, initial, where)


def min(a: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """Smallest element over axes; NaN if there is one. Arguments as of `max`."""
    return _extreme("min", lax.reduce_min, lax.min, a, axis, keepdims, initial, where)


def _index_of(name: str, find: Any, a: Any, axis: int | None, keepdims: bool) -> Any:
    x = array_argument(name, a)
    ndim = x.ndim
    if axis is None:
        x, place = lax.reshape(x, (x.size,)), 0
    else:
        place = canonical_axis(axis, ndim)
    if x.shape[place] == 0:
        raise ValueError(f"{name}: {x.aval.str_short()} has no elements along axis {place}")
    out = find(x, place, dtypes.default_int_dtype())
    if not keepdims:
        return out
    return lax.expand_dims(out, tuple(range(ndim)) if axis is None else (place,))


def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Index of the largest element along an axis (in the flattened array for None): the first, of several; of a NaN.

    Raises:
        ValueError: there are no elements, or no such axis.
    """
    return _index_of("argmax", lax.argmax, a, axis, keepdims)


def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Index of the smallest element along an axis; otherwise as `argmax`."""
    return _index_of("argmin", lax.argmin, a, axis, keepdims)


# -- truth -------------------------------------------------------------------------------------------------------


def all(a: Any, axis: Axis = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether all elements over axes differ from zero; true of none."""
    x = to_bool(array_argument("all", a))
    return _reduce(lax.reduce_and, _masked(x, where, True), axis, keepdims)


def any(a: Any, axis: Axis = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether any element over axes differs from zero; false of none."""
    x = to_bool(array_argument("any", a))
    return _reduce(lax.reduce_or, _masked(x, where, False), axis, keepdims)


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close to each other; see `isclose`."""
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> Any:
    """Whether two arrays have one shape and the same elements."""
    a1, a2 = array_argument("array_equal", a1), array_argument("array_equal", a2, 1)
    if a1.shape != a2.shape:
        return lax.make_scalar(False, dtypes.bool_)
    return all(lax.eq(*promote("array_equal", a1, a2)))


# -- moments -----------------------------------------------------------------------------------------------------


def _working_dtype(dtype: Any) -> Any:
    """16-bit floats and narrower ones are averaged in float32 and rounded once."""
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def _count(x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any) -> Any:
    """How many elements count in each sum, as scalar or array of a dtype."""
    if where is None:
        return lax.make_scalar(math.prod(x.shape[d] for d in canonical_axes(axis, x.ndim)), dtype)
    mask = lax.broadcast_to(to_bool(array_argument("where", where)), x.shape)
    return sum(mask, axis, dtype, keepdims)


def mean(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Mean of elements over axes: floating also for integers and booleans; NaN of none.

    Args:
        a: the array.
        axis: the axes; None is all of them.
        dtype: dtype of the mean.
        keepdims: keep the axes, with size 1.
        where: which elements count.
    """
    x = array_argument("mean", a)
    dtype = canonical_dtype(dtype) or dtypes.inexact_dtype_of(x.dtype)
    working = _working_dtype(dtypes.inexact_dtype_of(dtype))
    total = sum(x, axis, working, keepdims, where=where)
    count = _count(x, axis, keepdims, where, dtypes.real_dtype_of(working))
    return lax.convert_element_type(lax.div(total, lax.convert_element_type(count, working)), dtype)


def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Any:
    """Variance over axes: the mean squared distance from the mean.

    Args:
        a: the array.
        axis: the axes; None is all of them.
        dtype: dtype of the variance.
        ddof: what to subtract from the number of elements; NaN where nothing is left.
        keepdims: keep the axes, with size 1.
        where: which elements count.
        correction: another name for `ddof`.
    """
    x = array_argument("var", a)
    dtype = canonical_dtype(dtype)
    out_dtype = dtype or dtypes.real_dtype_of(dtypes.inexact_dtype_of(x.dtype))
    working = _working_dtype(dtypes.inexact_dtype_of(dtypes.result_type(x, out_dtype)))
    x = lax.convert_element_type(x, working)
    squares = _squared_modulus(lax.sub(x, spread_back(mean(x, axis, where=where), x.shape, axis)))
    count = _degrees_of_freedom(x, axis, keepdims, where, squares.dtype, ddof if correction is None else correction)
    return lax.convert_element_type(lax.div(sum(squares, axis, None, keepdims, where=where), count), out_dtype)


def _degrees_of_freedom(x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any, ddof: float) -> Any:
    """Number of elements less `ddof`, NaN where nothing is left."""
    if where is None:
        count = math.prod(x.shape[d] for d in canonical_axes(axis, x.ndim)) - ddof
        return lax.make_scalar(count if count > 0 else math.nan, dtype)
    count = lax.sub(_count(x, axis, keepdims, where, dtype), lax.make_scalar(ddof, dtype))
    return lax.select(lax.gt(count, like(count, 0)), count, like(count, math.nan))


def _squared_modulus(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: float | None = None,
) -> Any:
    """Standard deviation over axes: the square root of `var`, with its arguments."""
    out = var(a, axis, dtype, ddof, keepdims, where=where, correction=correction)
    return lax.convert_element_type(
        lax.sqrt(lax.convert_element_type(out, dtypes.inexact_dtype_of(out.dtype))), out.dtype
    )


def ptp(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Distance between the largest and the smallest element over axes."""
    return lax.sub(max(a, axis, keepdims), min(a, axis, keepdims))


def average(a: Any, axis: Axis = None, weights: Any = None, keepdims: bool = False) -> Any:
    """Mean of elements over axes, each counted as often as its weight, an array of the shape of `a`, says.

    Raises:
        ValueError: the shapes differ.
    """
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    x, w = array_argument("average", a), array_argument("average", weights, 1)
    if x.shape != w.shape:
        raise ValueError(f"average: the array has shape {x.shape}, its weights {w.shape}")
    x, w = promote("average", x, w, inexact=True)
    return lax.div(sum(x * w, axis, keepdims=keepdims), sum(w, axis, keepdims=keepdims))
