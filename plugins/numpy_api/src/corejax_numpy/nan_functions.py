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

Fold = Callable[..., Any]


def _counted(name: str, x: Any, where: Any) -> Any:
    """Return which elements count and are not NaN; `where` itself for arrays that cannot hold one."""
    if not dtypes.is_inexact(x.dtype):
        return where
    numbers = lax.eq(x, x)
    return numbers if where is None else lax.bitwise_and(numbers, mask_argument(name, where, x))


def _accumulation(name: str, of_all: Fold, doc: str) -> Fold:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        refuse_out(name, out)
        x = array_argument(name, a)
        return of_all(x, axis, dtype, None, keepdims, initial, _counted(name, x, where))

    return lax.named(function, name, doc)


nansum = _accumulation("nansum", reductions.sum, "Sum of the elements that are not NaN; arguments as of `sum`.")
nanprod = _accumulation("nanprod", reductions.prod, "Product of the elements that are not NaN; arguments as of `sum`.")


# -- extremes ----------------------------------------------------------------------------------------------------


def _without(x: Any, otherwise: Any) -> Any:
    """Replace NaN by a number that makes no difference."""
    return lax.select(lax.ne(x, x), like(x, otherwise), x) if dtypes.is_inexact(x.dtype) else x


def _extreme(name: str, fold: Fold, worst: float, doc: str) -> Fold:
    def function(
        a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        refuse_out(name, out)
        x = array_argument(name, a)
        best = fold(_without(x, worst), axis, None, keepdims, initial, where)
        if initial is not None or not dtypes.is_inexact(x.dtype):
            return best
        none = reductions.all(lax.ne(x, x), axis, keepdims=keepdims)
        return lax.select(none, like(best, math.nan), best)

    return lax.named(function, name, doc)


def _place(name: str, find: Fold, worst: float, doc: str) -> Fold:
    def function(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
        refuse_out(name, out)
        x = array_argument(name, a)
        if axis is not None:
            axis = canonical_axis(axis, x.ndim, name=name)
        index = reductions.index_of(name, find, _without(x, worst), axis, None, keepdims)
        if not dtypes.is_inexact(x.dtype):
            return index
        none = reductions.all(lax.ne(x, x), axis, keepdims=bool(keepdims))
        return lax.select(none, like(index, -1), index)

    return lax.named(function, name, doc)


_EXTREME = "{} element that is not NaN; NaN if all are. Arguments as of `max`."
_PLACE = "Index of the {} element that is not NaN, -1 if all are; arguments as of `argmax`."
nanmax = _extreme("nanmax", reductions.max, -math.inf, _EXTREME.format("Largest"))
nanmin = _extreme("nanmin", reductions.min, math.inf, _EXTREME.format("Smallest"))
nanargmax = _place("nanargmax", lax.argmax, -math.inf, _PLACE.format("largest"))
nanargmin = _place("nanargmin", lax.argmin, math.inf, _PLACE.format("smallest"))


# -- moments -----------------------------------------------------------------------------------------------------


def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """Mean of the elements that are not NaN, NaN where there is none; arguments as of `mean`."""
    refuse_out("nanmean", out)
    x = array_argument("nanmean", a)
    return moments.mean(x, axis, dtype, None, keepdims, where=_counted("nanmean", x, where))


def _spread(name: str, root: bool, doc: str) -> Fold:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        where: Any = None,
        mean: Any = None,
    ) -> Any:
        refuse_out(name, out)
        if root:
            moments.inexact_dtype(name, dtype)
        x = array_argument(name, a)
        found = moments.variance(name, x, axis, dtype, ddof, keepdims, _counted(name, x, where), mean)
        return lax.sqrt(found) if root else found

    return lax.named(function, name, doc)


nanvar = _spread(
    "nanvar", False, "Variance of the elements that are not NaN, NaN where nothing is left; arguments as of `var`."
)
nanstd = _spread(
    "nanstd",
    True,
    "Standard deviation of the elements that are not NaN: the square root of `nanvar`, with its arguments.",
)
