"""Reductions that leave NaN out. Arrays that cannot hold one are reduced as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy import reductions
from corejax_numpy.arguments import Axis, array_argument, canonical_axis, canonical_dtype, like, refuse_out
from corejax_numpy.moments import inexact_dtype, mean, squared_distances, var, variance_dtypes
from corejax_numpy.reductions import mask_argument


def _without(x: Any, otherwise: Any) -> Any:
    """NaN replaced by a number that makes no difference."""
    return lax.select(lax.ne(x, x), like(x, otherwise), x)


def _reduced(name: str, fold: Callable[..., Any], neutral: float, a: Any, out: None, **options: Any) -> Any:
    refuse_out(name, out)
    x = array_argument(name, a)
    return fold(_without(x, neutral) if dtypes.is_inexact(x.dtype) else x, **options)


def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Sum of the elements that are not NaN; arguments as of `sum`."""
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "initial": initial, "where": where}
    return _reduced("nansum", reductions.sum, 0, a, out, **options)


def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Product of the elements that are not NaN; arguments as of `sum`."""
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "initial": initial, "where": where}
    return _reduced("nanprod", reductions.prod, 1, a, out, **options)


# -- extremes ----------------------------------------------------------------------------------------------------


def _extreme(
    name: str,
    fold: Callable[..., Any],
    worst: float,
    a: Any,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    x = array_argument(name, a)
    best = _reduced(name, fold, worst, x, out, axis=axis, keepdims=keepdims, initial=initial, where=where)
    if initial is not None or not dtypes.is_inexact(x.dtype):
        return best
    none = reductions.all(lax.ne(x, x), axis, keepdims=keepdims)
    return lax.select(none, like(best, math.nan), best)


def nanmax(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Largest element that is not NaN; NaN where there is none. Arguments as of `max`."""
    return _extreme("nanmax", reductions.max, -math.inf, a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Smallest element that is not NaN; NaN where there is none. Arguments as of `max`."""
    return _extreme("nanmin", reductions.min, math.inf, a, axis, out, keepdims, initial, where)


def _index_of(
    name: str, find: Callable[..., Any], worst: float, a: Any, axis: int | None, out: None, keepdims: bool | None
) -> Any:
    refuse_out(name, out)
    x = array_argument(name, a)
    if axis is not None:
        axis = canonical_axis(axis, x.ndim, name=name)
    if not dtypes.is_inexact(x.dtype):
        return reductions.index_of(name, find, x, axis, None, keepdims)
    index = reductions.index_of(name, find, _without(x, worst), axis, None, keepdims)
    none = reductions.all(lax.ne(x, x), axis, keepdims=bool(keepdims))
    return lax.select(none, like(index, -1), index)


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Index of the largest element that is not NaN, -1 where there is none; arguments as of `argmax`."""
    return _index_of("nanargmax", lax.argmax, -math.inf, a, axis, out, keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Index of the smallest element that is not NaN, -1 where there is none; arguments as of `argmax`."""
    return _index_of("nanargmin", lax.argmin, math.inf, a, axis, out, keepdims)


# -- moments -----------------------------------------------------------------------------------------------------


def _number(name: str, x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any) -> Any:
    """How many elements count and are not NaN."""
    counted = lax.eq(x, x)
    if where is not None:
        counted = lax.bitwise_and(counted, mask_argument(name, where, x))
    return reductions.sum(counted, axis, dtype, keepdims=keepdims)


def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """Mean of the elements that are not NaN, NaN where there is none; arguments as of `mean`."""
    refuse_out("nanmean", out)
    x = array_argument("nanmean", a)
    if not dtypes.is_inexact(x.dtype):
        return mean(x, axis, dtype, keepdims=keepdims, where=where)
    dtype = canonical_dtype(dtype) or x.dtype
    total = nansum(x, axis, dtype, keepdims=keepdims, where=where)
    return lax.div(total, _number("nanmean", x, axis, keepdims, where, dtype))


def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """Variance of the elements that are not NaN, NaN where nothing is left; arguments as of `var`."""
    refuse_out("nanvar", out)
    return _variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean)


def _variance(name: str, a: Any, axis: Axis, dtype: Any, ddof: float, keepdims: bool, where: Any, centre: Any) -> Any:
    x = array_argument(name, a)
    if not dtypes.is_inexact(x.dtype):
        return var(x, axis, dtype, None, ddof, keepdims, where=where, mean=centre)
    working, out_dtype = variance_dtypes(name, x, dtype)
    x = lax.convert_element_type(x, working)
    missing = lax.ne(x, x)
    # Before and after: derivatives pass through neither the NaN nor its distance.
    held = lax.select(missing, like(x, 0), x)
    if centre is None:
        total = reductions.sum(held, axis, where=where)
        found = lax.div(total, _number(name, x, axis, False, where, working))
    squares = squared_distances(name, held, (lambda x: found) if centre is None else centre, axis)
    squares = lax.select(missing, like(squares, 0), squares)
    count = _number(name, x, axis, keepdims, where, squares.dtype)
    count = lax.sub(count, lax.convert_element_type(ddof, squares.dtype))
    count = lax.select(lax.gt(count, like(count, 0)), count, like(count, math.nan))
    total = reductions.sum(squares, axis, keepdims=keepdims, where=where)
    return lax.convert_element_type(lax.div(total, count), out_dtype)


def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """Standard deviation of the elements that are not NaN: the square root of `nanvar`, with its arguments."""
    refuse_out("nanstd", out)
    inexact_dtype("nanstd", dtype)
    return lax.sqrt(_variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean))
