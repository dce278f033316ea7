"""Quantiles: of a sorted axis, between neighbours; ignoring NaNs; with weights."""

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


_QUANTILE = """The values below which given shares of the elements lie; NaN where an element is.

    Args:
        a: the array, real.
        q: the shares in [0, 1], a scalar or a vector, whose axis is the first of the result.
        axis: the axes; None is all of them.
        out, overwrite_input: NumPy's, which have no meaning here.
        method: of what lies between two elements: `"linear"`, `"lower"`, `"higher"`, `"midpoint"`, `"nearest"`; or
            `"inverted_cdf"`, the first element that at least the share is not above.
        keepdims: keep the axes, with size 1.
        weights: how much each element counts, of the shape of `a` or of its axes; for `"inverted_cdf"`.

    Raises:
        ValueError: there is no such method or axis, `q` has two axes, `a` is complex, or weights do not fit.
        NotImplementedError: weights with another method.
    """
_NAN = "As `{}`, of the elements that are not NaN."


def _of_shares(name: str, doc: str, *, per_cent: bool, skips_nan: bool) -> Callable[..., Any]:
    def of_arrays(a: Any, q: Any, *options: Any) -> Any:
        return _quantile(name, a, _hundredths(name, q) if per_cent else q, *options, skips_nan)

    of_numbers = remembered(of_arrays)

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
        # Shares that are arrays are known while a call runs, and unknown in a program, which would round otherwise.
        run = of_numbers if type(q) in (int, float) else of_arrays
        return run(a, q, axis, out, overwrite_input, method, keepdims, weights)

    return lax.named(function, name, doc)


def _shares(name: str, q: Any) -> Any:
    """`q` as a floating-point array, of NumPy where it is known."""
    if type(q) in (bool, int, float):
        return np.asarray(q, dtypes.default_float_dtype())
    (q,) = promote_dtypes(name, q, inexact=True)
    if dtypes.is_complex(q.dtype):
        raise ValueError(f"{name}: q are real numbers, got {q.aval.str_short()}")
    return q if isinstance(q, Tracer) else host_value(q)


def _hundredths(name: str, q: Any) -> Any:
    q = _shares(name, q)
    return lax.div(q, like(q, 100)) if isinstance(q, Tracer) else q / q.dtype.type(100)


# fmt: off
quantile      = _of_shares("quantile",      _QUANTILE, per_cent=False, skips_nan=False)
nanquantile   = _of_shares("nanquantile",   _NAN.format("quantile"),   per_cent=False, skips_nan=True)
nanpercentile = _of_shares("nanpercentile", _NAN.format("percentile"), per_cent=True, skips_nan=True)
_percentile   = _of_shares("percentile",    "", per_cent=True, skips_nan=False)
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
    """As `quantile`, of shares in per cent."""
    found = _percentile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
    return lax.place("percentile", found, out_sharding)


def median(a: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle element over axes, or the mean of the two; NaN where an element is."""
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, False)


def nanmedian(
    a: Any, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """As `median`, of the elements that are not NaN."""
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, True)


# -- how ---------------------------------------------------------------------------------------------------------


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
        raise ValueError(f"{name}: there is no out and no overwrite_input: arrays do not change")
    if method not in METHODS:
        raise ValueError(f"{name}: method is one of {', '.join(map(repr, METHODS))}; got {method!r}")
    x, w = _operands(name, a, weights, axis, method)
    q = _shares(name, q)
    if q.ndim > 1:
        raise ValueError(f"{name}: q is a scalar or a vector, got an array of shape {q.shape}")
    axes = canonical_axes(axis, x.ndim, f"{name}: axis")
    shape = x.shape
    x, w, count = _in_order(x, w, axes, skips_nan)
    if method == "inverted_cdf":
        result = _inverted_cdf(x, w, q, count)
    else:
        result = _between(x, q, count, method)
    result = lax.convert_element_type(result, x.dtype)
    if not keepdims:
        return result
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return lax.reshape(result, (*q.shape, *kept))


@remembered
def _in_order(x: Any, w: Any, axes: tuple[int, ...], skips_nan: bool) -> tuple[Any, Any, Any]:
    """The sorted elements of the axes as the last one, their weights, and how many are numbers if NaNs are skipped."""
    x, w = _last(x, axes), None if w is None else _last(w, axes)
    if not skips_nan:
        x = _all_nan_where_one_is(x)
    x, w = (lax.sort(x), None) if w is None else lax.sort_key_val(x, w)
    return x, w, _counted(x) if skips_nan else None


def _operands(name: str, a: Any, weights: Any, axis: Axis, method: str) -> tuple[Any, Any]:
    """The array and its weights, floating-point and of one shape."""
    if weights is None:
        (x,) = promote_dtypes(name, array_argument(name, a), inexact=True)
        w = None
    else:
        if method != "inverted_cdf":
            raise NotImplementedError(f"{name}: weights go with method 'inverted_cdf', not with {method!r}")
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


def _last(x: Any, axes: tuple[int, ...]) -> Any:
    """An array whose last axis is all of `axes`."""
    if axes == (x.ndim - 1,):
        return x
    kept = tuple(d for d in range(x.ndim) if d not in axes)
    x = lax.transpose(x, (*kept, *sorted(axes)))
    return lax.reshape(x, (*x.shape[: len(kept)], math.prod(x.shape[len(kept) :])))


def _is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - 1)))


def _all_nan_where_one_is(x: Any) -> Any:
    spoilt = lax.reduce_or(_is_nan(x), (x.ndim - 1,))
    return lax.select(_repeated(spoilt, x.shape), lax.full_like(x, math.nan), x)


def _counted(x: Any) -> Any:
    """How many elements of the last axis are numbers."""
    numbers = lax.convert_element_type(lax.bitwise_not(_is_nan(x)), np.int32)
    return lax.reduce_sum(numbers, (x.ndim - 1,))


# -- between neighbours ------------------------------------------------------------------------------------------


def _between(x: Any, q: Any, count: Any, method: str) -> Any:
    """Quantiles of a sorted last axis; `count` of its elements, in front, are meant (None: all)."""
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


@np.errstate(all="ignore")  # as in compiled programs
def _static_place(q: Any, size: int) -> tuple[Any, Any, Any]:
    """Places of the neighbours, and the share of the upper one."""
    place = q * q.dtype.type(size - 1)
    low, high = (np.clip(np.nan_to_num(f(place)), 0, size - 1) for f in (np.floor, np.ceil))
    return low.astype(np.int32), high.astype(np.int32), np.asarray(place - np.floor(place), q.dtype)


def _at_known(x: Any, places: Any) -> Any:
    """Elements of the last axis at known places; these are the first axis of the result."""
    if not places.ndim:
        return lax.index_in_dim(x, int(places), x.ndim - 1, keepdims=False)
    return _at(x, lax.broadcast_in_dim(places, (*places.shape, *x.shape[:-1]), (0,)))


def _place(q: Any, count: Any, x: Any) -> tuple[Any, Any, Any]:
    """As `_static_place`, by row: shape of `q`, then rows."""
    shape = (*q.shape, *x.shape[:-1])
    q = lax.broadcast_in_dim(q, shape, tuple(range(q.ndim)))
    if count is None:
        last = lax.full_like(q, x.shape[-1] - 1)
    else:
        one = lax.full_like(count, 1)
        behind = tuple(range(len(shape) - count.ndim, len(shape)))
        last = lax.convert_element_type(lax.broadcast_in_dim(lax.sub(count, one), shape, behind), q.dtype)
    place = lax.mul(q, last)
    share = lax.sub(place, lax.floor(place))
    zero = lax.full_like(q, 0)
    low, high = (lax.max(lax.min(f(place), last), zero) for f in (lax.floor, lax.ceil))
    return lax.convert_element_type(low, np.int32), lax.convert_element_type(high, np.int32), share


def _at(x: Any, places: Any) -> Any:
    """Elements of the last axis at places that differ by row: `(*q, *rows)` of `(*rows, n)`."""
    rows = x.ndim - 1
    leading = places.ndim - rows
    behind = tuple(range(leading, places.ndim))
    numbers = lax.GatherDimensionNumbers((), (rows,), (rows,), tuple(range(rows)), behind)
    if not x.shape[-1]:  # of no elements nothing is known
        return lax.full(places.shape, math.nan, x.dtype)
    return lax.gather(x, lax.expand_dims(places, (places.ndim,)), numbers, (1,) * x.ndim)


# -- the inverse of the distribution -----------------------------------------------------------------------------


def _inverted_cdf(x: Any, w: Any, q: Any, count: Any) -> Any:
    """The first element up to which at least the share `q` of the weights lies."""
    last = x.ndim - 1
    if not x.shape[last]:
        return lax.full((*q.shape, *x.shape[:-1]), math.nan, x.dtype)
    wide = dtypes.promote_types(x.dtype, np.dtype(np.float32))  # 16 bits do not count far
    w = lax.full(x.shape, 1, wide) if w is None else lax.convert_element_type(w, wide)
    zero = lax.full_like(w, 0)
    wrong = lax.bitwise_or(lax.lt(w, zero), _is_nan(w))
    sums = lax.cumsum(lax.select(lax.bitwise_or(wrong, _is_nan(x)), zero, w), last)
    total = lax.index_in_dim(sums, -1, last, keepdims=False)
    shape = (*q.shape, *x.shape[:-1])
    behind = tuple(range(q.ndim, len(shape)))
    wanted = lax.mul(
        lax.convert_element_type(lax.broadcast_in_dim(q, shape, tuple(range(q.ndim))), wide),
        lax.broadcast_in_dim(total, shape, behind),
    )
    full = (*shape, x.shape[-1])
    sums = lax.broadcast_in_dim(sums, full, (*behind, len(shape)))
    before = lax.lt(sums, lax.broadcast_in_dim(wanted, full, tuple(range(len(shape)))))
    before = lax.bitwise_or(before, lax.eq(sums, lax.full_like(sums, 0)))  # what has no weight is never found
    places = lax.reduce_sum(lax.convert_element_type(before, np.int32), (len(shape),))
    size = lax.full(x.shape[:-1], x.shape[-1], np.int32) if count is None else count
    end = lax.max(lax.sub(size, lax.full_like(size, 1)), lax.full_like(size, 0))
    found = _at(x, lax.min(places, lax.broadcast_in_dim(end, shape, behind)))
    spoilt = lax.bitwise_or(lax.reduce_or(wrong, (last,)), lax.eq(total, lax.full_like(total, 0)))
    return lax.select(lax.broadcast_in_dim(spoilt, shape, behind), lax.full_like(found, math.nan), found)
