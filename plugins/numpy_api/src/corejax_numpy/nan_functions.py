"""Reductions that leave NaN out. Arrays that cannot hold one are reduced as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy import moments, reductions
from corejax_numpy.arguments import Axis, array_argument, canonical_axis, like, refuse_out
from corejax_numpy.reductions import mask_argument


def _counted(name: str, x: Any, where: Any) -> Any:
    """Return which elements count and are not NaN; `where` itself for arrays that cannot hold one."""
    if not dtypes.is_inexact(x.dtype):
        return where
    numbers = lax.eq(x, x)
    return numbers if where is None else lax.bitwise_and(numbers, mask_argument(name, where, x))


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
    refuse_out("nansum", out)
    x = array_argument("nansum", a)
    return reductions.sum(x, axis, dtype, None, keepdims, initial, _counted("nansum", x, where))


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
    refuse_out("nanprod", out)
    x = array_argument("nanprod", a)
    return reductions.prod(x, axis, dtype, None, keepdims, initial, _counted("nanprod", x, where))


# -- extremes ----------------------------------------------------------------------------------------------------


def _without(x: Any, otherwise: Any) -> Any:
    """Replace NaN by a number that makes no difference."""
    return lax.select(lax.ne(x, x), like(x, otherwise), x) if dtypes.is_inexact(x.dtype) else x


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
    refuse_out(name, out)
    x = array_argument(name, a)
    best = fold(_without(x, worst), axis, None, keepdims, initial, where)
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
    index = reductions.index_of(name, find, _without(x, worst), axis, None, keepdims)
    if not dtypes.is_inexact(x.dtype):
        return index
    none = reductions.all(lax.ne(x, x), axis, keepdims=bool(keepdims))
    return lax.select(none, like(index, -1), index)


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Index of the largest element that is not NaN, -1 where there is none; arguments as of `argmax`."""
    return _index_of("nanargmax", lax.argmax, -math.inf, a, axis, out, keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Index of the smallest element that is not NaN, -1 where there is none; arguments as of `argmax`."""
    return _index_of("nanargmin", lax.argmin, math.inf, a, axis, out, keepdims)


# -- moments -----------------------------------------------------------------------------------------------------


def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """Mean of the elements that are not NaN, NaN where there is none; arguments as of `mean`."""
    refuse_out("nanmean", out)
    x = array_argument("nanmean", a)
    return moments.mean(x, axis, dtype, None, keepdims, where=_counted("nanmean", x, where))


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
    return moments.variance(name, x, axis, dtype, ddof, keepdims, _counted(name, x, where), centre)


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
    moments.inexact_dtype("nanstd", dtype)
    return lax.sqrt(_variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean))
