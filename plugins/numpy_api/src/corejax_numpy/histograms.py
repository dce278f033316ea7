"""Counts: occurrences of integers (`bincount`), and histograms of numbers and points."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    is_known,
    known_array,
    like,
    promote_dtypes,
    sequence,
    static_int,
)
from corejax_numpy.creation import asarray
from corejax_numpy.differences import diff
from corejax_numpy.elementwise import where
from corejax_numpy.joining import stack
from corejax_numpy.manipulation import ravel
from corejax_numpy.ranges import evenly
from corejax_numpy.reductions import max as maximum_over
from corejax_numpy.reductions import min as minimum_over
from corejax_numpy.reductions import sum
from corejax_numpy.searching import searchsorted


def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Any:
    """Count the occurrences of each integer from 0 on, or sum the weights of the occurrences.

    Args:
        x: a vector of integers or booleans; negative integers count as 0.
        weights: a vector of weights, one for each element of `x`; by default 1.
        minlength: the minimum length of the result, if `length` is not given; 0 by default.
        length: the length of the result; larger integers are not counted. Required if `x` is traced.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the elements of `x` are not integers.
        ValueError: `x` is not a vector, the number of weights differs, or a length is negative.
        ConcretizationTypeError: `x` is traced, and `length` is not given.
    """
    x = array_argument("bincount", x)
    if dtypes.is_bool(x.dtype):
        x = lax.convert_element_type(x, dtypes.default_int_dtype())
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"bincount counts integers, got {x.aval.str_short()}")
    if x.ndim != 1:
        raise ValueError(f"bincount takes a vector, got {x.aval.str_short()}")
    least = static_int("bincount", minlength, "minlength")
    if least < 0:
        raise ValueError(f"bincount: minlength is not negative, got {minlength}")
    if length is None:
        numbers = known_array("bincount", x, "with `length` they may be traced")
        length = max(least, int(numbers.max()) + 1 if numbers.size else 0)
    else:
        length = static_int("bincount", length, "length")
        if length < 0:
            raise ValueError(f"bincount: length is not negative, got {length}")
    if weights is None:
        weights = asarray(1, dtypes.default_int_dtype())
    else:
        weights = array_argument("bincount", weights, 1)
        if weights.shape != x.shape:
            raise ValueError(f"bincount: weights of shape {weights.shape} for numbers of shape {x.shape}")
    return lax.place("bincount", _sum_weights(lax.max(x, like(x, 0)), weights, length), out_sharding)


def _sum_weights(indices: Any, weights: Any, length: int) -> Any:
    """Sum the weights for each index; indices beyond `length` are ignored."""
    return lax.full((length,), 0, weights.dtype).at[indices].add(weights, mode="drop")


# -- histograms --------------------------------------------------------------------------------------------------


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins of a histogram.

    Args:
        a: the numbers.
        bins: the number of bins, 10 by default, or an increasing vector of edges.
        range: the first and the last edge; by default the smallest and the largest number, widened by 1/2 on both
            sides if these are equal.
        weights: accepted for compatibility with NumPy and ignored.

    Raises:
        NotImplementedError: `bins` is the name of a rule: the number of bins would depend on values.
        ValueError: `bins` or `range` has another form.
    """
    return _edges("histogram_bin_edges", array_argument("histogram_bin_edges", a), bins, range)


def _edges(name: str, a: Any, bins: Any, range: Any) -> Any:
    if isinstance(bins, str):
        raise NotImplementedError(
            f"{name}: rules for the number of bins are not supported, as it would depend on values; got {bins!r}"
        )
    dtype = dtypes.inexact_dtype_of(a.dtype)
    if lax.is_several(bins):
        known = asarray(bins, dtype)
        if known.ndim != 1 or not known.size:
            raise ValueError(f"{name}: bins are a number, or a vector of edges, got shape {known.shape}")
        return known
    number = static_int(name, bins, "bins")
    if number < 1:
        raise ValueError(f"{name}: bins must be at least 1, got {number}")
    if range is None:
        if not a.size:
            low, high = like(a, 0), like(a, 1)
        else:
            low, high = minimum_over(a), maximum_over(a)
    else:
        bounds = asarray(range)
        if bounds.shape != (2,):
            raise ValueError(f"{name}: range is a pair of numbers, got {range!r}")
        if is_known(bounds) and not -math.inf < bounds[0] <= bounds[1] < math.inf:
            raise ValueError(f"{name}: range is finite, from the lower to the higher edge, got {range!r}")
        low, high = bounds[0], bounds[1]
    low, high = (lax.convert_element_type(v, dtype) for v in (low, high))
    return _even_edges(low, high, number, dtype)


@remembered
def _even_edges(low: Any, high: Any, number: int, dtype: Any) -> Any:
    half = lax.select(lax.eq(low, high), like(low, 0.5), like(low, 0))
    return evenly(lax.sub(low, half), lax.add(high, half), number + 1, dtype)


def _sample(name: str, a: Any, weights: Any) -> tuple[Any, Any]:
    a = array_argument(name, a)
    if weights is None:
        (a,) = promote_dtypes(name, a, inexact=True)
        return a, None
    a, weights = promote_dtypes(name, a, array_argument(name, weights), inexact=True)
    return a, weights


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """Count the numbers in each bin; the last bin includes its upper edge.

    Args:
        a: the numbers, an array of any shape.
        bins: the number of bins, 10 by default, or an increasing vector of edges.
        range: the first and the last edge; by default the smallest and the largest number.
        weights: the weight of each number, an array of the shape of `a`.
        density: whether to normalise the counts so that the integral is 1.

    Returns:
        The counts, of a floating dtype, and the edges.

    Raises:
        NotImplementedError: `bins` is the name of a rule.
        ValueError: an argument has another form.
    """
    a, weights = _sample("histogram", a, weights)
    if weights is not None and weights.shape != a.shape:
        raise ValueError(f"histogram: weights of shape {weights.shape} for numbers of shape {a.shape}")
    edges = _edges("histogram", a, bins, range)
    return _bin_weights(a, edges, searchsorted(edges, ravel(a), side="right"), weights, bool(density)), edges


@remembered
def _bin_weights(a: Any, edges: Any, index: Any, weights: Any, density: bool) -> Any:
    index = _bin_numbers(ravel(a), edges, index)
    weights = like(a, 1) if weights is None else ravel(weights)
    counts = lax.slice_in_dim(_sum_weights(index, weights, edges.shape[0]), 1, None)
    return counts / diff(edges) / sum(counts) if density else counts


def _bin_numbers(a: Any, edges: Any, index: Any) -> Any:
    """Return the bin number of each element, given its insertion index in the edges.

    Bins count from 1; 0 is below the first edge, and the number of bins plus 1 is above the last.
    """
    last = lax.index_in_dim(edges, -1, 0, keepdims=False)
    return where(lax.eq(a, last), like(index, edges.shape[0] - 1), index)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any, Any]:
    """Count the points of a plane in each bin.

    Args:
        x: the first coordinates, a vector.
        y: the second coordinates, a vector of the same size.
        bins: the number of bins, 10 by default, or a vector of edges, for both coordinates; or a pair of these.
        range: a pair for each coordinate: the first and the last edge, or None.
        weights: the weight of each point, a vector.
        density: whether to normalise the counts so that the integral is 1.

    Returns:
        The counts, and the edges for both coordinates.

    Raises:
        ValueError: `x` and `y` are not vectors of one size, or another argument has another form.
    """
    x, y = promote_dtypes("histogram2d", array_argument("histogram2d", x), array_argument("histogram2d", y, 1))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"histogram2d: coordinates are vectors of one size, got {x.aval.str_short()} and {y.aval.str_short()}"
        )
    if lax.is_several(bins) and len(bins) != 2:
        bins = [bins[0] if len(bins) == 1 else bins] * 2
    counts, edges = _histogramdd("histogram2d", stack([x, y], 1), bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """Count the points of a space in each bin.

    Args:
        sample: a matrix with a point in each row.
        bins: the number of bins for all coordinates, 10 by default; or a number or a vector of edges for each
            coordinate.
        range: a pair for each coordinate: the first and the last edge, or None.
        weights: the weight of each point, a vector.
        density: whether to normalise the counts so that the integral is 1.

    Returns:
        The counts, with an axis for each coordinate, and the list of the coordinates' edges.

    Raises:
        ValueError: an argument has another form.
    """
    return _histogramdd("histogramdd", sample, bins, range, weights, density)


def _histogramdd(
    name: str, sample: Any, bins: Any, range: Any, weights: Any, density: bool | None
) -> tuple[Any, list[Any]]:
    sample, weights = _sample(name, sample, weights)
    if sample.ndim != 2:
        raise ValueError(f"{name}: a sample is a matrix with a point in each row, got {sample.aval.str_short()}")
    number, rank = sample.shape
    if weights is not None and weights.shape != (number,):
        raise ValueError(f"{name}: weights of shape {weights.shape} for {number} points")
    bins = _for_each(name, "bins", bins if lax.is_several(bins) else [bins] * rank, rank)
    ranges = _for_each(name, "range", [None] * rank if range is None else range, rank)
    columns = [lax.index_in_dim(sample, d, 1, keepdims=False) for d in builtins.range(rank)]
    edges = [_edges(name, c, b, r) for c, b, r in zip(columns, bins, ranges, strict=True)]
    sizes = [e.shape[0] + 1 for e in edges]
    index = None
    for column, edge, size in zip(columns, edges, sizes, strict=True):
        here = _bin_numbers(column, edge, searchsorted(edge, column, side="right"))
        index = here if index is None else lax.add(lax.mul(index, like(index, size)), here)
    weights = lax.make_scalar(1, dtypes.default_int_dtype()) if weights is None else weights
    counts = lax.reshape(_sum_weights(index, weights, math.prod(sizes)), tuple(sizes))
    counts = lax.slice(counts, (1,) * rank, tuple(n - 1 for n in sizes))
    if density:
        counts = lax.convert_element_type(counts, sample.dtype)
        counts = counts / sum(counts)
        for d, edge in enumerate(edges):
            counts = lax.div(counts, lax.broadcast_in_dim(diff(edge), counts.shape, (d,)))
    return counts, edges


def _for_each(name: str, what: str, values: Sequence[Any], rank: int) -> list[Any]:
    values = sequence(name, values, what)
    if len(values) != rank:
        raise ValueError(f"{name}: {what} has one entry for each of the {rank} coordinates, got {len(values)}")
    return values
