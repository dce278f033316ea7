"""Counting: how often integers occur, and how many numbers are in each of several bins."""

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
    """How often each number from 0 on occurs, or the sum of the weights of its occurrences.

    Args:
        x: a vector of integers or booleans; negative ones count as 0.
        weights: a vector of weights.
        minlength: the result has as many elements at least, where there is no `length`.
        length: the result has as many elements; larger numbers are not counted. Needed where `x` is traced.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: `x` is not of integers.
        ValueError: `x` is no vector, the weights are not as many, or a length is negative.
        ConcretizationTypeError: `x` is traced, and there is no `length`.
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
    return lax.place("bincount", _counted(lax.max(x, like(x, 0)), weights, length), out_sharding)


def _counted(indices: Any, weights: Any, length: int) -> Any:
    """Sums of the weights of each index; those beyond `length` are left out."""
    return lax.full((length,), 0, weights.dtype).at[indices].add(weights, mode="drop")


# -- histograms --------------------------------------------------------------------------------------------------


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Where bins of a histogram begin and end.

    Args:
        a: the numbers.
        bins: how many bins, or a vector of their edges, increasing.
        range: the first and the last edge; by default the least and the largest number, and if these are one, from
            a half below to a half above.
        weights: not looked at.

    Raises:
        NotImplementedError: `bins` is a text, a rule for how many there are: that depends on values.
        ValueError: `bins` or `range` has another form.
    """
    return _edges("histogram_bin_edges", array_argument("histogram_bin_edges", a), bins, range)


def _edges(name: str, a: Any, bins: Any, range: Any) -> Any:
    if isinstance(bins, str):
        raise NotImplementedError(f"{name}: a rule for the number of bins needs their values, got {bins!r}; give it")
    dtype = dtypes.inexact_dtype_of(a.dtype)
    if lax.is_several(bins):
        known = asarray(bins, dtype)
        if known.ndim != 1 or not known.size:
            raise ValueError(f"{name}: bins are a number, or a vector of edges, got shape {known.shape}")
        return known
    number = static_int(name, bins, "bins")
    if number < 1:
        raise ValueError(f"{name}: there is one bin or more, got {number}")
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
    """How many numbers are in each of several bins; the last one includes its upper edge.

    Args:
        a: the numbers.
        bins: how many bins, or a vector of their edges, increasing.
        range: the first and the last edge; by default the least and the largest number.
        weights: how much each number counts, an array of the shape of `a`.
        density: divide by the bins' widths and the number of all, so that the integral is 1.

    Returns:
        The (floating) counts, and the edges.

    Raises:
        NotImplementedError: `bins` is a text.
        ValueError: an argument has another form.
    """
    a, weights = _sample("histogram", a, weights)
    if weights is not None and weights.shape != a.shape:
        raise ValueError(f"histogram: weights of shape {weights.shape} for numbers of shape {a.shape}")
    edges = _edges("histogram", a, bins, range)
    return _weights_of_bins(a, edges, searchsorted(edges, ravel(a), side="right"), weights, bool(density)), edges


@remembered
def _weights_of_bins(a: Any, edges: Any, index: Any, weights: Any, density: bool) -> Any:
    index = _of_bins(ravel(a), edges, index)
    weights = like(a, 1) if weights is None else ravel(weights)
    counts = lax.slice_in_dim(_counted(index, weights, edges.shape[0]), 1, None)
    return counts / diff(edges) / sum(counts) if density else counts


def _of_bins(a: Any, edges: Any, index: Any) -> Any:
    """Number of the bin of each element, given its place behind the edges that are not above it.

    From 1 on; 0 for those below all, and one more than there are bins for those above.
    """
    last = lax.index_in_dim(edges, -1, 0, keepdims=False)
    return where(lax.eq(a, last), like(index, edges.shape[0] - 1), index)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any, Any]:
    """How many points of the plane are in each bin.

    Args:
        x: first coordinates, a vector.
        y: second coordinates.
        bins: how many bins, or a vector of their edges, for both coordinates; or a pair of these.
        range: pairs of the first and the last edge (or None), for each coordinate.
        weights: how much each point counts.
        density: divide by the bins' areas and the number of all.

    Returns:
        The counts, and the edges of both coordinates.

    Raises:
        ValueError: `x` and `y` are not vectors of one size; another argument has another form.
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
    """How many points of a space are in each bin.

    Args:
        sample: a matrix with a point in each row.
        bins: how many bins, for all coordinates; or for each how many, or a vector of their edges.
        range: pairs of the first and the last edge (or None), for each coordinate.
        weights: how much each point counts.
        density: divide by the bins' volumes and the number of all.

    Returns:
        The counts, an axis for each coordinate, and the list of their edges.

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
        here = _of_bins(column, edge, searchsorted(edge, column, side="right"))
        index = here if index is None else lax.add(lax.mul(index, like(index, size)), here)
    weights = lax.make_scalar(1, dtypes.default_int_dtype()) if weights is None else weights
    counts = lax.reshape(_counted(index, weights, math.prod(sizes)), tuple(sizes))
    counts = lax.slice(counts, (1,) * rank, tuple(n - 1 for n in sizes))
    if density:
        counts = lax.convert_element_type(counts, sample.dtype)
        counts = counts / sum(counts)
        for d, edge in enumerate(edges):
            counts = lax.div(counts, lax.broadcast_in_dim(diff(edge), counts.shape, (d,)))
    return counts, edges


def _for_each(name: str, what: str, given: Sequence[Any], rank: int) -> list[Any]:
    given = sequence(name, given, what)
    if len(given) != rank:
        raise ValueError(f"{name}: {what} has one entry for each of the {rank} coordinates, got {len(given)}")
    return given
