"""Quantiles and medians, selected from a sorted axis: interpolation between neighbours, NaN handling, weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Tracer, dtypes, host_value, remembered
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    Axis,
    array_argument,
    canonical_axes,
    like,
    promote_dtypes,
)

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


_QUANTILE = """Compute quantiles over axes: the values below which given fractions of the elements lie.

    A quantile is NaN if any element is NaN.

    Args:
        a: the array, of real numbers.
        q: the fractions in [0, 1], a scalar or a vector; the axis of a vector is the first of the result.
        axis: the axis or axes to reduce; None, the default, reduces all.
        out, overwrite_input: not supported; must be None and False.
        method: the interpolation between two neighbours: `"linear"` (the default), `"lower"`, `"higher"`,
            `"midpoint"`, `"nearest"`; or `"inverted_cdf"`, the first element whose cumulative weight reaches `q`.
        keepdims: whether the reduced axes stay in the result, with size 1.
        weights: the weight of each element, an array of the shape of `a` or of the sizes of `axis`; for
            `"inverted_cdf"` only.

    Raises:
        ValueError: the method is unknown, the axis does not exist, `q` has more than one axis, `a` is complex, or the
            shape of the weights does not match.
        NotImplementedError: weights are given with another method.
    """
_NAN = "Compute quantiles as `{}` does, ignoring NaN."


def _quantile_function(name: str, doc: str, *, per_cent: bool, skips_nan: bool) -> Callable[..., Any]:
    def compute(
        a: Any, q: Any, axis: Axis, out: Any, overwrite_input: bool, method: str, keepdims: bool, weights: Any
    ) -> Any:
        q = _from_percent(name, q) if per_cent else q
        return _quantile(name, a, q, axis, out, overwrite_input, method, keepdims, weights, skips_nan)

    compute_compiled = remembered(compute)

    def function(
        a: Any,
        q: Any,
        axis: Axis = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
    ) -> Any:
        # Fractions that are arrays would be traced in a cached program, which would round differently.
        run = compute_compiled if type(q) in (int, float) else compute
        return run(a, q, axis, out, overwrite_input, method, keepdims, weights)

    lax.named(function, name, doc)
    return function


def _fractions(name: str, q: Any) -> Any:
    """Return `q` as a floating-point array, as a NumPy array if it is concrete."""
    if type(q) in (bool, int, float):
        return np.asarray(q, dtypes.default_float_dtype())
    (q,) = promote_dtypes(name, q, inexact=True)
    if dtypes.is_complex(q.dtype):
        raise ValueError(f"{name}: q must be real, got {q.aval.str_short()}")
    return q if isinstance(q, Tracer) else host_value(q)


def _from_percent(name: str, q: Any) -> Any:
    q = _fractions(name, q)
    return lax.div(q, like(q, 100)) if isinstance(q, Tracer) else q / q.dtype.type(100)


# fmt: off
quantile      = _quantile_function("quantile",      _QUANTILE, per_cent=False, skips_nan=False)
nanquantile   = _quantile_function("nanquantile",   _NAN.format("quantile"),   per_cent=False, skips_nan=True)
nanpercentile = _quantile_function("nanpercentile", _NAN.format("percentile"), per_cent=True, skips_nan=True)
_percentile   = _quantile_function("percentile",    "", per_cent=True, skips_nan=False)
# fmt: on


def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Compute percentiles over axes: `quantile` with `q` in percent, in [0, 100]."""
    out = _percentile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
    return lax.place("percentile", out, out_sharding)


def median(a: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """Compute the median over axes: the middle element, or the mean of the two; NaN if any element is NaN."""
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, False)


def nanmedian(
    a: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """Compute the median over axes as `median` does, ignoring NaN."""
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, True)


# -- implementation -----------------------------------------------------------------------------------------------


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Axis,
    out: Any,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    skips_nan: bool,
) -> Any:
    if out is not None or overwrite_input:
        raise ValueError(f"{name}: out and overwrite_input are not supported: arrays are immutable")
    if method not in METHODS:
        raise ValueError(f"{name}: method is one of {', '.join(map(repr, METHODS))}; got {method!r}")
    x, w = _operands(name, a, weights, axis, method)
    q = _fractions(name, q)
    if q.ndim > 1:
        raise ValueError(f"{name}: q is a scalar or a vector, got an array of shape {q.shape}")
    axes = canonical_axes(axis, x.ndim, f"{name}: axis")
    shape = x.shape
    x, w, count = _sort_axes(x, w, axes, skips_nan)
    if method == "inverted_cdf":
        result = _inverted_cdf(x, w, q, count)
    else:
        result = _interpolate(x, q, count, method)
    result = lax.convert_element_type(result, x.dtype)
    if not keepdims:
        return result
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return lax.reshape(result, (*q.shape, *kept))


@remembered
def _sort_axes(x: Any, w: Any, axes: tuple[int, ...], skips_nan: bool) -> tuple[Any, Any, Any]:
    """Return the reduced axes as a sorted last axis, the weights in this order, and the counts if NaNs are skipped."""
    x, w = _merge_axes(x, axes), None if w is None else _merge_axes(w, axes)
    if not skips_nan:
        x = _spread_nan(x)
    x, w = (lax.sort(x), None) if w is None else lax.sort_key_val(x, w)
    return x, w, _count_numbers(x) if skips_nan else None


def _operands(name: str, a: Any, weights: Any, axis: Axis, method: str) -> tuple[Any, Any]:
    """Return the array and its weights as floating-point arrays of one shape."""
    if weights is None:
        (x,) = promote_dtypes(name, array_argument(name, a), inexact=True)
        w = None
    else:
        if method != "inverted_cdf":
            raise NotImplementedError(f"{name}: weights are supported by method 'inverted_cdf' only, not by {method!r}")
        a, weights = array_argument(name, a), array_argument(name, weights, 2)
        if dtypes.is_complex(weights.dtype):
            raise ValueError(f"{name}: weights are real, got {weights.aval.str_short()}")
        x, w = promote_dtypes(name, a, weights, inexact=True)
        axes = canonical_axes(axis, x.ndim, f"{name}: axis")
        sizes = tuple(x.shape[d] for d in axes)
        if w.shape != x.shape:
            if axis is None or w.shape != sizes:
                wanted = x.shape if axis is None else f"{x.shape} or {sizes}"
                raise ValueError(f"{name}: weights have shape {wanted}, got {w.shape}")
            w = lax.broadcast_in_dim(w, x.shape, axes)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"{name}: complex numbers have no order, got {x.aval.str_short()}")
    return x, w


def _merge_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """Merge `axes` into one last axis."""
    if axes == (x.ndim - 1,):
        return x
    kept = tuple(d for d in range(x.ndim) if d not in axes)
    x = lax.transpose(x, (*kept, *sorted(axes)))
    return lax.reshape(x, (*x.shape[: len(kept)], math.prod(x.shape[len(kept) :])))


def _is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - 1)))


def _spread_nan(x: Any) -> Any:
    has_nan = lax.reduce_or(_is_nan(x), (x.ndim - 1,))
    return lax.select(_repeated(has_nan, x.shape), lax.full_like(x, math.nan), x)


def _count_numbers(x: Any) -> Any:
    """Count the elements of the last axis that are not NaN."""
    numbers = lax.convert_element_type(lax.bitwise_not(_is_nan(x)), np.int32)
    return lax.reduce_sum(numbers, (x.ndim - 1,))


# -- between neighbours -------------------------------------------------------------------------------------------


def _interpolate(x: Any, q: Any, count: Any, method: str) -> Any:
    """Interpolate quantiles of a sorted last axis, of which the first `count` elements (None: all) are used."""
    known = not isinstance(q, Tracer)
    wide = x.dtype if x.dtype.itemsize >= 4 else np.dtype(np.float32)
    dtype = wide if known else dtypes.promote_types(q.dtype, wide)
    if known and count is None and not isinstance(x.shape[-1], SymbolicDim) and x.shape[-1]:
        low, high, share = _static_place(q.astype(dtype), x.shape[-1])
        lower, upper = (_at_known(x, places) for places in (low, high))
        share = lax.broadcast_in_dim(share, lower.shape, tuple(range(q.ndim)))
    else:
        low, high, share = _place(lax.convert_element_type(q, dtype), count, x)
        lower, upper = (_at(x, places) for places in (low, high))
    if method == "lower":
        return lower
    if method == "higher":
        return upper
    if method == "nearest":
        return lax.select(lax.le(share, lax.full_like(share, 0.5)), lower, upper)
    lower, upper = (lax.convert_element_type(v, dtype) for v in (lower, upper))
    if method == "midpoint":
        return lax.mul(lax.add(lower, upper), lax.full_like(lower, 0.5))
    return lax.add(lax.mul(lower, lax.sub(lax.full_like(share, 1), share)), lax.mul(upper, share))


@np.errstate(all="ignore")  # compiled programs do not warn either
def _static_place(q: Any, size: int) -> tuple[Any, Any, Any]:
    """Return the positions of both neighbours, and the fraction that the upper one contributes."""
    place = q * q.dtype.type(size - 1)
    low, high = (np.clip(np.nan_to_num(f(place)), 0, size - 1) for f in (np.floor, np.ceil))
    return low.astype(np.int32), high.astype(np.int32), np.asarray(place - np.floor(place), q.dtype)


def _at_known(x: Any, places: Any) -> Any:
    """Take elements of the last axis at static positions, which become the first axis of the result."""
    if not places.ndim:
        return lax.index_in_dim(x, int(places), x.ndim - 1, keepdims=False)
    return _at(x, lax.broadcast_in_dim(places, (*places.shape, *x.shape[:-1]), (0,)))


def _place(q: Any, count: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return positions and fractions as `_static_place` does, for each row: the shape of `q`, then the rows."""
    shape = (*q.shape, *x.shape[:-1])
    q = lax.broadcast_in_dim(q, shape, tuple(range(q.ndim)))
    if count is None:
        last = lax.full_like(q, x.shape[-1] - 1)
    else:
        one = lax.full_like(count, 1)
        row_axes = tuple(range(len(shape) - count.ndim, len(shape)))
        last = lax.convert_element_type(lax.broadcast_in_dim(lax.sub(count, one), shape, row_axes), q.dtype)
    place = lax.mul(q, last)
    share = lax.sub(place, lax.floor(place))
    zero = lax.full_like(q, 0)
    low, high = (lax.max(lax.min(f(place), last), zero) for f in (lax.floor, lax.ceil))
    return lax.convert_element_type(low, np.int32), lax.convert_element_type(high, np.int32), share


def _at(x: Any, places: Any) -> Any:
    """Take elements of the last axis at positions that differ by row: `(*q, *rows)` from `(*rows, n)`."""
    rows = x.ndim - 1
    leading = places.ndim - rows
    row_axes = tuple(range(leading, places.ndim))
    numbers = lax.GatherDimensionNumbers((), (rows,), (rows,), tuple(range(rows)), row_axes)
    if not x.shape[-1]:
        return lax.full(places.shape, math.nan, x.dtype)
    return lax.gather(x, lax.expand_dims(places, (places.ndim,)), numbers, (1,) * x.ndim)


# -- the inverse of the distribution ------------------------------------------------------------------------------


def _inverted_cdf(x: Any, w: Any, q: Any, count: Any) -> Any:
    """Return the first element at which the cumulative weight reaches the fraction `q` of the total."""
    last = x.ndim - 1
    if not x.shape[last]:
        return lax.full((*q.shape, *x.shape[:-1]), math.nan, x.dtype)
    wide = dtypes.promote_types(x.dtype, np.dtype(np.float32))  # 16 bits lose counts above 2048
    w = lax.full(x.shape, 1, wide) if w is None else lax.convert_element_type(w, wide)
    zero = lax.full_like(w, 0)
    is_invalid = lax.bitwise_or(lax.lt(w, zero), _is_nan(w))
    sums = lax.cumsum(lax.select(lax.bitwise_or(is_invalid, _is_nan(x)), zero, w), last)
    total = lax.index_in_dim(sums, -1, last, keepdims=False)
    shape = (*q.shape, *x.shape[:-1])
    row_axes = tuple(range(q.ndim, len(shape)))
    wanted = lax.mul(
        lax.convert_element_type(lax.broadcast_in_dim(q, shape, tuple(range(q.ndim))), wide),
        lax.broadcast_in_dim(total, shape, row_axes),
    )
    full = (*shape, x.shape[-1])
    sums = lax.broadcast_in_dim(sums, full, (*row_axes, len(shape)))
    before = lax.lt(sums, lax.broadcast_in_dim(wanted, full, tuple(range(len(shape)))))
    before = lax.bitwise_or(before, lax.eq(sums, lax.full_like(sums, 0)))  # skip leading elements without weight
    places = lax.reduce_sum(lax.convert_element_type(before, np.int32), (len(shape),))
    size = lax.full(x.shape[:-1], x.shape[-1], np.int32) if count is None else count
    end = lax.max(lax.sub(size, lax.full_like(size, 1)), lax.full_like(size, 0))
    out = _at(x, lax.min(places, lax.broadcast_in_dim(end, shape, row_axes)))
    is_nan = lax.bitwise_or(lax.reduce_or(is_invalid, (last,)), lax.eq(total, lax.full_like(total, 0)))
    return lax.select(lax.broadcast_in_dim(is_nan, shape, row_axes), lax.full_like(out, math.nan), out)
