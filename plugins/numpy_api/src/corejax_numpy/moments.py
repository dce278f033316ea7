"""Means, variances and weighted means over axes."""

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
    canonical_dtype,
    ddof_of,
    like,
    promote_dtypes,
    refuse_out,
)
from corejax_numpy.reductions import count_along, mask_argument, spread_back, sum


def working_dtype(dtype: Any) -> Any:
    """Return the dtype of the computation: floats of 16 bits or fewer are averaged in float32 and rounded once."""
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def _count(name: str, x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any) -> Any:
    """Return the number of elements in each sum, as a scalar or an array of a dtype."""
    if where is None:
        return lax.make_scalar(count_along(name, x.shape, axis), dtype)
    return sum(lax.in_dtype(mask_argument(name, where, x), dtype), axis, keepdims=keepdims)


def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Compute the mean of the elements over axes, in floating point also for integers and booleans.

    The mean of no elements is NaN.

    Args:
        a: the array.
        axis: the axis or axes to average over; None, the default, averages over all.
        dtype: dtype of the mean; by default that of `a`, or the default floating dtype for integers and booleans.
        out: not supported; must be None.
        keepdims: whether the reduced axes stay in the result, with size 1.
        where: a boolean array that broadcasts to the shape of `a`; elements where it is False are skipped.

    Raises:
        ValueError: an axis does not exist, or is given twice; the mask is not boolean or does not broadcast.
        NotImplementedError: `out` is given.
    """
    refuse_out("mean", out)
    x = array_argument("mean", a)
    dtype = canonical_dtype(dtype) or dtypes.inexact_dtype_of(x.dtype)
    # float32 does not have all integers of 32 bits.
    exact = np.dtype(np.float64) if dtypes.is_integer(dtype) and dtype.itemsize > 2 else dtypes.inexact_dtype_of(dtype)
    working = working_dtype(exact)
    count = _count("mean", x, axis, keepdims, where, working if where is None else dtypes.real_dtype_of(working))
    if where is not None:
        count = lax.in_dtype(count, working)
    out = lax.div(sum(lax.in_dtype(x, working), axis, keepdims=keepdims, where=where), count)
    return out if dtype == working else lax.convert_element_type(out, dtype)


def variance_dtypes(name: str, x: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the dtype of the computation, and the dtype of the result."""
    if dtype is None:
        common = dtypes.inexact_dtype_of(x.dtype)
        return working_dtype(common), dtypes.real_dtype_of(common)
    dtype = canonical_dtype(dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        raise ValueError(
            f"{name}: the dtype of the computation on {x.aval.str_short()} must be complex, got {dtype.name}; "
            "convert the result instead"
        )
    common = dtypes.result_type(x, dtype) if dtypes.is_inexact(x.dtype) else dtype
    return working_dtype(dtypes.inexact_dtype_of(common)), dtype


def squared_distances(name: str, x: Any, centre: Any, axis: Axis) -> Any:
    """Compute the squared distances of elements from `centre(x)`, or from an array that broadcasts."""
    around = spread_back(centre(x), x.shape, axis) if callable(centre) else _broadcast_mean(name, centre, x)
    return _squared_modulus(lax.sub(x, around))


def _broadcast_mean(name: str, mean: Any, x: Any) -> Any:
    mean = lax.convert_element_type(array_argument(name, mean), x.dtype)
    try:
        return lax.broadcast_to(mean, x.shape)
    except ValueError:
        raise ValueError(
            f"{name}: `mean` must have the axes of the array, the reduced ones with size 1; "
            f"got {mean.aval.str_short()} for {x.aval.str_short()}"
        ) from None


def variance(name: str, a: Any, axis: Axis, dtype: Any, ddof: float, keepdims: bool, where: Any, centre: Any) -> Any:
    """Compute the variance; `centre` is the mean, or None to compute the mean."""
    x = array_argument(name, a)
    where = mask_argument(name, where, x)
    working, out_dtype = variance_dtypes(name, x, dtype)
    if x.dtype != working or x.aval.weak_type:
        x = lax.convert_element_type(x, working)
    # Zeros replace the masked elements, so that a masked infinity does not make derivatives NaN.
    if where is not None:
        x = lax.select(lax.broadcast_to(where, x.shape), x, lax.full_like(x, 0))
    squares = squared_distances(name, x, (lambda x: mean(x, axis, where=where)) if centre is None else centre, axis)
    count = _degrees_of_freedom(name, x, axis, keepdims, where, squares.dtype, ddof)
    out = lax.div(sum(squares, axis, keepdims=keepdims, where=where), count)
    return out if out.dtype == out_dtype else lax.convert_element_type(out, out_dtype)


def _degrees_of_freedom(name: str, x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any, ddof: Any) -> Any:
    """Return the number of elements minus `ddof`; NaN if it is not positive."""
    if where is None and lax.is_python_scalar(ddof):
        count = count_along(name, x.shape, axis) - ddof
        return lax.make_scalar(count if count > 0 else math.nan, dtype)
    count = _count(name, x, axis, keepdims, where, dtype)
    count = lax.sub(count, lax.convert_element_type(ddof, dtype))
    return lax.select(lax.gt(count, like(count, 0)), count, like(count, math.nan))


def _squared_modulus(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def check_inexact_dtype(name: str, dtype: Any) -> None:
    """Raise ValueError if a dtype is neither floating nor complex."""
    dtype = canonical_dtype(dtype)
    if dtype is not None and not dtypes.is_inexact(dtype):
        raise ValueError(f"{name}: the dtype is floating or complex, got {dtype.name}")


_VAR = """Compute the variance over axes: the mean squared distance from the mean.

    Args:
        a: the array.
        axis: the axis or axes to reduce; None, the default, reduces all.
        dtype: dtype of the variance; by default that of `a`, or the default floating dtype for integers and booleans.
        out: not supported; must be None.
        ddof: delta degrees of freedom, 0 by default: the divisor is the number of elements minus `ddof`; the variance
            is NaN if the divisor is not positive.
        keepdims: whether the reduced axes stay in the result, with size 1.
        where: a boolean array that broadcasts to the shape of `a`; elements where it is False are skipped.
        mean: the mean, if already computed, with `keepdims=True`.
        correction: another name for `ddof`.

    Raises:
        ValueError: an axis does not exist, or is given twice; `ddof` and `correction` are both given.
        NotImplementedError: `out` is given.
    """
_STD = """Compute the standard deviation over axes: the square root of the variance; arguments as for `var`.

    Raises:
        ValueError: as for `var`; or `dtype` is neither floating nor complex.
    """


def _spread(name: str, root: bool, doc: str) -> Callable[..., Any]:
    def function(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: float | None = None,
    ) -> Any:
        refuse_out(name, out)
        if root:
            check_inexact_dtype(name, dtype)
        out = variance(name, a, axis, dtype, ddof_of(name, ddof, correction), keepdims, where, mean)
        return lax.sqrt(out) if root else out

    lax.named(function, name, doc)
    return function


var = _spread("var", False, _VAR)
std = _spread("std", True, _STD)


def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Compute the weighted mean of the elements over axes.

    Args:
        a: the array.
        axis: the axis or axes to average over; None, the default, averages over all.
        weights: an array of the shape of `a`, or of the sizes of `axis`; by default all weights are equal.
        returned: whether to return the sum of the weights (the number of elements by default) as well.
        keepdims: whether the reduced axes stay in the result, with size 1.

    Returns:
        The mean; or the pair of the mean and the sum of the weights, of one shape.

    Raises:
        ValueError: the shape of the weights does not match.
    """
    if weights is None:
        (x,) = promote_dtypes("average", array_argument("average", a), inexact=True)
        out = mean(x, axis, keepdims=keepdims)
        if not returned:
            return out
        return out, lax.broadcast_to(_count("average", x, axis, keepdims, None, out.dtype), out.shape)
    x, w = promote_dtypes("average", a, weights, inexact=True)
    w = _spread_weights(x, w, axis)
    total = sum(w, axis, keepdims=keepdims)
    out = lax.div(sum(lax.mul(x, w), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


def _spread_weights(x: Any, w: Any, axis: Axis) -> Any:
    if x.shape == w.shape:
        return w
    if axis is None:
        raise ValueError(f"average: weights of shape {w.shape} for an array of shape {x.shape} need an axis")
    axes = canonical_axes(axis, x.ndim, name="average")
    if w.shape != tuple(x.shape[d] for d in axes):
        raise ValueError(
            f"average: weights have the shape of the array, {x.shape}, or its sizes along axes {axes}, got {w.shape}"
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(w, tuple(order)), x.shape, tuple(sorted(axes)))
