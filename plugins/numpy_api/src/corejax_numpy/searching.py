"""Find positions in sorted arrays: `searchsorted` and `digitize`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes, host_value, stage_closed
from corejax.extend.devices import is_spread
from corejax.extend.messages import clears_cache
from corejax.extend.speed import engine
from corejax.extend.transforms import recording_trace
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_numpy._speed import LOOKED_UP
from corejax_numpy.arguments import array_argument, like, number_argument, promote_dtypes

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Any:
    """Return the indices at which elements would be inserted into a sorted vector to keep it sorted.

    Args:
        a: a vector in ascending order; NaN comes after all numbers.
        v: the elements to insert, an array of any shape.
        side: `"left"`, the default, for the position before equal elements, or `"right"`, for the position after them.
        sorter: indices that sort `a`, if `a` is not sorted.
        method: the algorithm of compiled programs: `"scan"`, the default, is a bisection in a loop; `"scan_unrolled"`
            unrolls this loop; `"sort"` sorts `a` and `v` together; `"compare_all"` compares all pairs.

    Returns:
        Indices of the shape of `v`, of the default integer dtype, or int64 if the vector is too long for 32 bits.

    Raises:
        ValueError: `side` or `method` is unknown, or `a` is not a vector.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', got {side!r}")
    if method not in _METHODS:
        raise ValueError(f"searchsorted: method is one of {', '.join(map(repr, _METHODS))}; got {method!r}")
    a, v = promote_dtypes("searchsorted", a, v)
    number_argument("searchsorted", a)
    if a.ndim != 1:
        raise ValueError(f"searchsorted: a is a vector, got {a.aval.str_short()}")
    if sorter is not None:
        a = a[array_argument("searchsorted", sorter, 3)]
    dtype = dtypes.default_int_dtype() if a.size < 1 << 31 else np.dtype(np.int64)
    if not a.size:
        return lax.full(v.shape, 0, dtype)
    if _are_concrete(a, v):
        return _on_host(a, v, side, dtype)
    if method == "sort":
        return _by_sorting(a, v, side, dtype)
    if method == "compare_all":
        return _by_comparing(a, v, side, dtype)
    return _by_bisection(a, v, side, dtype, method == "scan_unrolled")


def _are_concrete(*arrays: Any) -> bool:
    """Return whether all arrays are concrete and on one device, and no program is being traced."""
    return recording_trace() is None and not any(isinstance(x, Tracer) or is_spread(x) for x in arrays)


# Compiled programs by types: None after the first call, which does not compile, and False if the type has no program.
_programs: dict[Any, Any] = {}
clears_cache(_programs.clear)


def _on_host(a: Any, v: Any, side: str, dtype: Any) -> Any:
    if v.size >= LOOKED_UP and (indices := _run_compiled(a, v, side, dtype)) is not None:
        return indices
    table, values = host_value(a), host_value(v)
    if table.dtype.kind == "V":  # the narrow floats and integers of ml_dtypes
        table, values = table.astype(np.float32), values.astype(np.float32)
    places = np.searchsorted(table, values, "left" if side == "left" else "right")
    return as_array(np.asarray(places).astype(dtype))


def _run_compiled(a: Any, v: Any, side: str, dtype: Any) -> Any:
    """Search many elements with a compiled program; return None if there is no program for these types.

    The program compares integers of the same order as the elements, so that no two different floats compare as equal.
    """
    key = (a.aval, v.aval, side, dtype)
    if key not in _programs:
        _programs[key] = None
        return None
    if _programs[key] is None:
        as_integers = _as_integers(a.dtype)
        _programs[key] = as_integers is not None and stage_closed(
            lambda a, v: [_by_bisection(as_integers(a), as_integers(v), side, dtype, False)], (a.aval, v.aval)
        )
    outs = _programs[key] and engine().run_program(_programs[key], [a, v], "searchsorted")
    return outs[0] if outs else None


def _as_integers(dtype: Any) -> Callable[[Any], Any] | None:
    """Return a function from numbers to integers of the same order (zeros equal, NaN last), or None."""
    if dtypes.is_integer(dtype) or dtype == np.bool_:
        return lambda x: x
    if not dtypes.is_float(dtype) or dtype.itemsize == 1:
        return None
    bits = np.dtype(f"i{dtype.itemsize}")
    most = np.iinfo(bits).max

    def as_integers(x: Any) -> Any:
        n = lax.bitcast_convert_type(x, bits)
        magnitude = lax.bitwise_and(n, like(n, most))
        ordered = lax.select(lax.lt(n, like(n, 0)), lax.neg(magnitude), magnitude)
        infinity = int(np.array(np.inf, dtype).view(bits))
        return lax.select(lax.gt(magnitude, like(n, infinity)), like(n, most), ordered)

    return as_integers


# -- comparisons in the order of `sort` --------------------------------------------------------------------------


def _at_most(x: Any, y: Any) -> Any:
    """Compute `x <= y`: NaN is equal to itself and above all numbers; complex numbers compare by real parts first."""
    if dtypes.is_complex(x.dtype):
        greater = lax.bitwise_not(_at_most(lax.real(x), lax.real(y)))
        ties = _at_most(lax.real(y), lax.real(x))
        second = _at_most(lax.imag(x), lax.imag(y))
        return lax.bitwise_and(lax.bitwise_not(greater), lax.bitwise_or(lax.bitwise_not(ties), second))
    below = lax.le(x, y)
    return lax.bitwise_or(below, lax.ne(y, y)) if dtypes.is_float(x.dtype) else below


def _less(x: Any, y: Any) -> Any:
    return lax.bitwise_not(_at_most(y, x))


# -- methods -----------------------------------------------------------------------------------------------------


def _by_bisection(a: Any, v: Any, side: str, dtype: Any, unrolled: bool) -> Any:
    goes_left: Callable[[Any, Any], Any] = _at_most if side == "left" else _less
    two = lax.make_scalar(2, dtype)

    def step(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = lax.add(low, lax.div(lax.sub(high, low), two))
        left = goes_left(v, a[middle])
        return lax.select(left, low, middle), lax.select(left, middle, high)

    bounds = lax.full(v.shape, 0, dtype), lax.full(v.shape, a.size, dtype)
    levels = 31 if isinstance(a.size, SymbolicDim) else math.ceil(math.log2(a.size + 1))
    if not unrolled and hasattr(lax, "fori_loop"):
        return lax.fori_loop(0, levels, step, bounds)[1]
    for level in range(levels):
        bounds = step(level, bounds)
    return bounds[1]


def _by_comparing(a: Any, v: Any, side: str, dtype: Any) -> Any:
    shape = (*v.shape, a.size)
    table = lax.broadcast_in_dim(a, shape, (v.ndim,))
    values = lax.broadcast_in_dim(v, shape, tuple(range(v.ndim)))
    before = _less(table, values) if side == "left" else _at_most(table, values)
    return lax.reduce_sum(lax.convert_element_type(before, dtype), (v.ndim,))


def _ranks(x: Any, dtype: Any) -> Any:
    """Return the position that each element of a vector has in the sorted vector."""
    places = lax.iota(dtype, x.size)
    order = lax.sort_key_val(x, places)[1]
    return (
        lax.full_like(places, 0)
        .at[order]
        .set(places, unique_indices=True, mode="promise_in_bounds", wrap_negative_indices=False)
    )


def _by_sorting(a: Any, v: Any, side: str, dtype: Any) -> Any:
    """Subtract ranks among the values from ranks among both arrays; the order of the arrays breaks ties."""
    values = lax.reshape(v, (v.size,))
    both = lax.concatenate([values, a] if side == "left" else [a, values], 0)
    start = 0 if side == "left" else a.size
    ranks = lax.slice_in_dim(_ranks(both, dtype), start, start + v.size)
    return lax.reshape(lax.sub(ranks, _ranks(values, dtype)), v.shape)


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """Return the number of the bin to which each element belongs.

    Args:
        x: the elements, an array of any shape.
        bins: the vector of bin edges, in ascending or descending order.
        right: whether a bin includes its right edge instead of its left one; False by default.
        method: the algorithm, as for `searchsorted`.

    Returns:
        Indices of the shape of `x`: 0 is before the first edge, `len(bins)` after the last.

    Raises:
        ValueError: `bins` is not a vector.
    """
    x, edges = array_argument("digitize", x), array_argument("digitize", bins, 1)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins is a vector of edges, got {edges.aval.str_short()}")
    if not edges.size:
        return lax.full(x.shape, 0, dtypes.default_int_dtype())
    side = "left" if right else "right"
    method = "scan" if method is None else method
    if _are_concrete(x, edges):
        values = host_value(edges)
        if values[-1] >= values[0]:
            return searchsorted(edges, x, side, method=method)
        number = host_value(searchsorted(as_array(values[::-1]), x, side, method=method))
        return as_array(number.dtype.type(edges.size) - number)
    first, last = lax.index_in_dim(edges, 0, keepdims=False), lax.index_in_dim(edges, -1, keepdims=False)
    rising = lax.ge(last, first)
    edges = lax.select(lax.broadcast(rising, edges.shape), edges, lax.rev(edges, (0,)))
    number = searchsorted(edges, x, side, method=method)
    return lax.select(rising, number, lax.sub(lax.full(x.shape, edges.size, number.dtype), number))
