"""Reductions that ignore NaN. Arrays of dtypes without NaN are reduced as by the plain functions."""

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


def _mask(name: str, x: Any, where: Any) -> Any:
    """Return the mask of elements that are not NaN, combined with `where`; `where` alone for dtypes without NaN."""
    if not dtypes.is_inexact(x.dtype):
        return where
    numbers = lax.eq(x, x)
    return numbers if where is None else lax.bitwise_and(numbers, mask_argument(name, where, x))


def _accumulation(name: str, reduce_all: Fold, doc: str) -> Fold:
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
        return reduce_all(x, axis, dtype, None, keepdims, initial, _mask(name, x, where))

    lax.named(function, name, doc)
    return function


nansum = _accumulation("nansum", reductions.sum, "Sum the elements over axes, ignoring NaN; arguments as for `sum`.")
nanprod = _accumulation(
    "nanprod", reductions.prod, "Multiply the elements over axes, ignoring NaN; arguments as for `sum`."
)


# -- extremes ----------------------------------------------------------------------------------------------------


def _replace_nan(x: Any, otherwise: Any) -> Any:
    """Replace NaN by a number that does not change the result."""
    return lax.select(lax.ne(x, x), like(x, otherwise), x) if dtypes.is_inexact(x.dtype) else x


def _extreme(name: str, fold: Fold, worst: float, doc: str) -> Fold:
    def function(
        a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        refuse_out(name, out)
        x = array_argument(name, a)
        best = fold(_replace_nan(x, worst), axis, None, keepdims, initial, where)
        if initial is not None or not dtypes.is_inexact(x.dtype):
            return best
        all_nan = reductions.all(lax.ne(x, x), axis, keepdims=keepdims)
        return lax.select(all_nan, like(best, math.nan), best)

    lax.named(function, name, doc)
    return function


def _index_function(name: str, find: Fold, worst: float, doc: str) -> Fold:
    def function(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
        refuse_out(name, out)
        x = array_argument(name, a)
        if axis is not None:
            axis = canonical_axis(axis, x.ndim, name=name)
        index = reductions.index_of(name, find, _replace_nan(x, worst), axis, None, keepdims)
        if not dtypes.is_inexact(x.dtype):
            return index
        all_nan = reductions.all(lax.ne(x, x), axis, keepdims=bool(keepdims))
        return lax.select(all_nan, like(index, -1), index)

    lax.named(function, name, doc)
    return function


_EXTREME = "Return the {} element over axes, ignoring NaN; NaN if all are NaN. Arguments as for `max`."
_INDEX = "Return the index of the {} element, ignoring NaN; -1 if all are NaN. Arguments as for `argmax`."
nanmax = _extreme("nanmax", reductions.max, -math.inf, _EXTREME.format("largest"))
nanmin = _extreme("nanmin", reductions.min, math.inf, _EXTREME.format("smallest"))
nanargmax = _index_function("nanargmax", lax.argmax, -math.inf, _INDEX.format("largest"))
nanargmin = _index_function("nanargmin", lax.argmin, math.inf, _INDEX.format("smallest"))


# -- moments -----------------------------------------------------------------------------------------------------


def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """Compute the mean over axes, ignoring NaN; NaN if all elements are NaN. Arguments as for `mean`."""
    refuse_out("nanmean", out)
    x = array_argument("nanmean", a)
    return moments.mean(x, axis, dtype, None, keepdims, where=_mask("nanmean", x, where))


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
            moments.check_inexact_dtype(name, dtype)
        x = array_argument(name, a)
        out = moments.variance(name, x, axis, dtype, ddof, keepdims, _mask(name, x, where), mean)
        return lax.sqrt(out) if root else out

    lax.named(function, name, doc)
    return function


nanvar = _spread("nanvar", False, "Compute the variance over axes, ignoring NaN; arguments as for `var`.")
nanstd = _spread(
    "nanstd",
    True,
    "Compute the standard deviation over axes, ignoring NaN; arguments as for `std`.",
)
