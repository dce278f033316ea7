"""Functions for classification: softmax, log-sum-exp, one-hot vectors, standardisation."""

from __future__ import annotations

import math
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
    operand,
    promote,
    promote_dtypes,
    strong,
)
from corejax_numpy.creation import listed
from corejax_numpy.elementwise import clip
from corejax_numpy.elementwise import where as select
from corejax_numpy.moments import mean as mean_over
from corejax_numpy.named_axes import split_axes
from corejax_numpy.reductions import count_along, mask_argument, spread_back
from corejax_numpy.reductions import max as maximum_over
from corejax_numpy.reductions import sum as sum_over


def _shifted(x: Any, axis: Axis, where: Any) -> Any:
    """Subtract the largest score, so that no exponential overflows; derivatives treat it as a constant."""
    initial = -math.inf if where is not None or x.size == 0 else None
    top = lax.stop_gradient(maximum_over(x, axis, initial=initial, where=where))
    return lax.sub(x, spread_back(top, x.shape, axis))


def _only(where: Any, x: Any, otherwise: float) -> Any:
    return x if where is None else select(where, x, like(x, otherwise))


def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """Compute `exp(x) / sum(exp(x))` over axes, without overflow: scores become probabilities.

    Args:
        x: the scores.
        axis: the axis or axes of the classes, by default the last.
        where: a boolean array; elements where it is False are skipped, and get 0.
    """
    x = promote_dtypes("softmax", x, inexact=True)[0]
    where = mask_argument("softmax", where, x)
    exponentials = _only(where, lax.exp(_shifted(_only(where, x, -math.inf), axis, where)), 0.0)
    return _only(where, lax.div(exponentials, spread_back(sum_over(exponentials, axis), x.shape, axis)), 0.0)


def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """Compute the logarithm of `softmax`, accurately also for small probabilities.

    Args:
        x: the scores.
        axis: the axis or axes of the classes, by default the last.
        where: a boolean array; elements where it is False are skipped, and get minus infinity.
    """
    x = promote_dtypes("log_softmax", x, inexact=True)[0]
    where = mask_argument("log_softmax", where, x)
    shifted = _shifted(_only(where, x, -math.inf), axis, where)
    total = sum_over(lax.exp(shifted), axis, where=where)
    return _only(where, lax.sub(shifted, spread_back(lax.log(total), shifted.shape, axis)), -math.inf)


def logsumexp(
    a: Any,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Compute `log(sum(b * exp(a)))` over axes, without overflow.

    Args:
        a: the exponents.
        axis: the axis or axes to sum over; None, the default, sums over all.
        b: the factors, 1 by default. If the sum is negative, the result is NaN.
        keepdims: whether the reduced axes stay in the result, with size 1.
        return_sign: whether to return the logarithm of the sum's absolute value, and the sign of the sum.
        where: a boolean array; elements where it is False are skipped.
    """
    promoted = promote_dtypes("logsumexp", a, inexact=True) if b is None else promote("logsumexp", a, b, inexact=True)
    x = strong(promoted[0])
    if x.ndim < (promoted[1].ndim if b is not None else 0):
        x = lax.broadcast_in_dim(x, promoted[1].shape, ())
    mask = mask_argument("logsumexp", where, x)
    if b is not None:
        counts = lax.ne(promoted[1], like(promoted[1], 0))
        mask = counts if mask is None else lax.bitwise_and(*promote("logsumexp", mask, counts))
    # The exponential of a masked element is 0; an overflow would make derivatives NaN.
    x = _only(mask, x, -math.inf)
    initial = -math.inf if mask is not None or x.size == 0 else None
    top = maximum_over(_real(x), axis, initial=initial, where=mask)
    top = lax.convert_element_type(lax.stop_gradient(lax.select(lax.is_finite(top), top, like(top, 0))), x.dtype)
    exponentials = lax.exp(lax.sub(x, spread_back(top, x.shape, axis)))
    if b is not None:
        exponentials = lax.mul(*promote("logsumexp", exponentials, promoted[1]))
    total = sum_over(exponentials, axis, where=mask)
    axes = tuple(sorted(canonical_axes(split_axes(axis)[0], x.ndim))) if keepdims else ()
    if return_sign:
        out = lax.add(lax.log(lax.abs(total)), _real(top))
        return tuple(lax.expand_dims(part, axes) if axes else part for part in (out, lax.sign(total)))
    out = lax.add(lax.log(total), top)
    return lax.expand_dims(out, axes) if axes else out


def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Any:
    """Compute `log(mean(exp(x)))` over axes, without overflow.

    Args:
        x: the exponents.
        axis: the axis or axes to average over; None, the default, averages over all.
        where: a boolean array; elements where it is False are skipped.
        keepdims: whether the reduced axes stay in the result, with size 1.
    """
    out = logsumexp(x, axis, keepdims=keepdims, where=where)
    x = array_argument("logmeanexp", x)
    if where is None:
        return lax.sub(out, lax.log(like(out, count_along("logmeanexp", x.shape, axis))))
    ones = lax.broadcast_in_dim(like(out, 1), x.shape, ())
    return lax.sub(out, lax.log(sum_over(ones, axis, keepdims=keepdims, where=where)))


def _real(x: Any) -> Any:
    return lax.real(x) if dtypes.is_complex(x.dtype) else x


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Any:
    """Encode class numbers as one-hot vectors; numbers that are not a class give zeros.

    Args:
        x: integers, an array of shape `s`, or a list or tuple.
        num_classes: the number of classes.
        dtype: dtype of the result; by default the default floating dtype.
        axis: the position of the class axis in the result, by default the last.

    Returns:
        An array of shape `s` with an axis of size `num_classes` inserted.
    """
    x = array_argument("one_hot", listed(x))
    dtype = dtypes.default_float_dtype() if dtype is None else canonical_dtype(dtype)
    place = canonical_axis(axis, x.ndim + 1)
    shape = (*x.shape[:place], num_classes, *x.shape[place:])
    index = x.dtype if dtypes.is_integer(x.dtype) else np.dtype(np.int32) if dtypes.is_bool(x.dtype) else x.dtype
    x = lax.convert_element_type(x, index)
    numbers = lax.broadcasted_iota(index, shape, place)
    spread = lax.broadcast_in_dim(x, shape, tuple(d for d in range(len(shape)) if d != place))
    return lax.convert_element_type(lax.eq(spread, numbers), dtype)


def standardize(
    x: Any,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """Standardise to mean 0 and variance 1 over axes: `(x - mean) / sqrt(variance + epsilon)`.

    Args:
        x: the argument.
        axis: the axis or axes, by default the last.
        mean: a mean to use instead of that over the axes.
        variance: a variance to use instead of that over the axes.
        epsilon: a number added to the variance, 1e-5 by default.
        where: a boolean array; elements where it is False are skipped in mean and variance.
        algorithm: of the variance: `"fast"`, the default, is the mean of squares minus the squared mean; `"stable"` is
            the mean of squared differences.

    Raises:
        ValueError: the algorithm is unknown.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    (x,) = promote_dtypes("standardize", x, inexact=True)
    if mean is None:
        mean = mean_over(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = mean_over(lax.square(x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        variance = mean_over(lax.square(x), axis, keepdims=True, where=where) - lax.square(array_argument("mean", mean))
        variance = clip(variance, 0)  # rounding errors may make the difference negative
    return (x - mean) * lax.rsqrt(
        promote_dtypes("standardize", variance + operand("standardize", epsilon, "epsilon"), inexact=True)[0]
    )
