"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, canonical_dtype, like, refuse_out, strong, to_bool
from corejax_numpy.reductions import sum_dtype

Fold = Callable[..., Any]


def _cumulative(name: str, fold: Fold, doc: str, skip: int | None = None) -> Fold:
    """Return a cumulative function; NaN counts as `skip`, unless `skip` is None."""

    def function(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        refuse_out(name, out)
        x = strong(array_argument(name, a))
        if axis is None or not x.ndim:
            x = lax.reshape(x, (x.size,))
        axis = canonical_axis(0 if axis is None else axis, x.ndim, name=name)
        if skip is not None and dtypes.is_inexact(x.dtype):
            x = lax.select(lax.ne(x, x), like(x, skip), x)
        result = canonical_dtype(dtype) or (dtypes.default_int_dtype() if dtypes.is_bool(x.dtype) else x.dtype)
        if dtypes.is_bool(result):  # the sum of truth values is "any so far", the product "all so far"
            counted = fold(lax.convert_element_type(to_bool(x), dtypes.default_int_dtype()), axis)
            return to_bool(counted)
        return fold(x if x.dtype == result else lax.convert_element_type(x, result), axis)

    lax.named(function, name, doc)
    return function


_CUMSUM = """Compute the cumulative sum along an axis.

    Args:
        a: the array.
        axis: the axis to sum along; None, the default, flattens the array first.
        dtype: dtype of the sums; by default that of `a`, the default integer dtype for booleans. Integers wrap around.
        out: not supported; must be None.

    Returns:
        An array of the shape of `a`, or of the flattened array.

    Raises:
        ValueError: the axis does not exist.
        NotImplementedError: `out` is given.
    """
cumsum = _cumulative("cumsum", lax.cumsum, _CUMSUM)
cumprod = _cumulative(
    "cumprod", lax.cumprod, "Compute the cumulative product along an axis; arguments as for `cumsum`."
)
nancumsum = _cumulative("nancumsum", lax.cumsum, "Compute the cumulative sum as `cumsum` does, NaN as 0.", skip=0)
nancumprod = _cumulative(
    "nancumprod", lax.cumprod, "Compute the cumulative product as `cumprod` does, NaN as 1.", skip=1
)


def _with_initial(name: str, fold: Fold, neutral: int, doc: str) -> Fold:
    cumulative = _cumulative(name, fold, doc)

    def function(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
        x = array_argument(name, x)
        if x.ndim == 0:
            raise ValueError(f"{name}: the array must have at least one axis, got {x.aval.str_short()}")
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"{name}: give the axis of an array that has {x.ndim} axes")
            axis = 0
        axis = canonical_axis(axis, x.ndim, name=name)
        out = cumulative(x, axis, sum_dtype(x.dtype) if dtype is None else dtype)
        if not include_initial:
            return out
        first = lax.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), neutral, out.dtype)
        return lax.concatenate([first, out], axis)

    lax.named(function, name, doc)
    return function


_CUMULATIVE_SUM = """Compute the cumulative sum along an axis, as in the Array API standard.

    Args:
        x: an array with at least one axis.
        axis: the axis to sum along; may be None if there is only one.
        dtype: dtype of the sums; by default that of `x`, or the default integer dtype for booleans and narrower
            integers.
        include_initial: whether the result starts with the initial value (0), which makes the axis longer by one.

    Raises:
        ValueError: the axis does not exist, or is not given for an array of several axes.
    """
_CUMULATIVE_PROD = "Compute the cumulative product along an axis; arguments as for `cumulative_sum`, initial value 1."
cumulative_sum = _with_initial("cumulative_sum", lax.cumsum, 0, _CUMULATIVE_SUM)
cumulative_prod = _with_initial("cumulative_prod", lax.cumprod, 1, _CUMULATIVE_PROD)
