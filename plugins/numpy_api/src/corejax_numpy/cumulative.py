"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, canonical_dtype, like, refuse_out, strong, to_bool
from corejax_numpy.reductions import sum_dtype

Fold = Callable[..., Any]


def _running(name: str, fold: Fold, doc: str, skip: int | None = None) -> Fold:
    """Fold along an axis; elements that are NaN count as `skip`, unless that is None."""

    def function(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        refuse_out(name, out)
        x = strong(array_argument(name, a))
        if axis is None or not x.ndim:
            x = lax.reshape(x, (x.size,))
        axis = canonical_axis(0 if axis is None else axis, x.ndim, name=name)
        if skip is not None and dtypes.is_inexact(x.dtype):
            x = lax.select(lax.ne(x, x), like(x, skip), x)
        result = canonical_dtype(dtype) or (dtypes.default_int_dtype() if dtypes.is_bool(x.dtype) else x.dtype)
        if dtypes.is_bool(result):  # counted, and then whether there were any, or none that were zero
            counted = fold(lax.convert_element_type(to_bool(x), dtypes.default_int_dtype()), axis)
            return to_bool(counted)
        return fold(x if x.dtype == result else lax.convert_element_type(x, result), axis)

    return lax.named(function, name, doc)


_CUMSUM = """Sums of the elements so far along an axis.

    Args:
        a: the array.
        axis: the axis; None is the flattened array.
        dtype: dtype of the sums; by default the array's, the default integer's for booleans. Integers wrap around.
        out: None; results are new arrays.

    Returns:
        An array of the shape of `a`, or of the flattened array.

    Raises:
        ValueError: there is no such axis.
        NotImplementedError: `out` is given.
    """
cumsum = _running("cumsum", lax.cumsum, _CUMSUM)
cumprod = _running("cumprod", lax.cumprod, "Products of the elements so far along an axis; arguments as of `cumsum`.")
nancumsum = _running("nancumsum", lax.cumsum, "As `cumsum`, a NaN counting as 0.", skip=0)
nancumprod = _running("nancumprod", lax.cumprod, "As `cumprod`, a NaN counting as 1.", skip=1)


def _with_initial(name: str, fold: Fold, neutral: int, doc: str) -> Fold:
    running = _running(name, fold, doc)

    def function(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
        x = array_argument(name, x)
        if x.ndim == 0:
            raise ValueError(f"{name}: the array has to have an axis, got {x.aval.str_short()}")
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"{name}: name the axis of an array that has {x.ndim}")
            axis = 0
        axis = canonical_axis(axis, x.ndim, name=name)
        out = running(x, axis, sum_dtype(x.dtype) if dtype is None else dtype)
        if not include_initial:
            return out
        first = lax.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), neutral, out.dtype)
        return lax.concatenate([first, out], axis)

    return lax.named(function, name, doc)


_CUMULATIVE_SUM = """Sums of the elements so far along an axis, as the Array API standard has it.

    Args:
        x: an array with at least one axis.
        axis: the axis; None if there is one only.
        dtype: dtype of the sums; by default the array's, the default integer's for narrower ones and booleans.
        include_initial: begin with the sum of nothing, which makes the axis longer by one.

    Raises:
        ValueError: there is no such axis, or none is named and there are several.
    """
_CUMULATIVE_PROD = "Products of the elements so far along an axis; arguments as of `cumulative_sum`."
cumulative_sum = _with_initial("cumulative_sum", lax.cumsum, 0, _CUMULATIVE_SUM)
cumulative_prod = _with_initial("cumulative_prod", lax.cumprod, 1, _CUMULATIVE_PROD)
