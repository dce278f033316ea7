"""Applications in every dtype, in other sizes and at the limits of each dtype, and a comparison of two evaluations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Example, ShapedArray, dtypes
from corejax_testing.arrays import Array, tolerance
from corejax_testing.calls import Call, host
from corejax_testing.operands import is_constrained
from corejax_testing.variations import in_other_orders, in_other_sizes, main_dtype, takes, with_dtype

# StableHLO lacks the first four. The last holds scales (powers of two), which no arithmetic uses.
_LEFT_OUT = ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn", "float8_e8m0fnu")
DTYPES = tuple(d for name, d in dtypes.LONG_NAMES.items() if name not in _LEFT_OUT)

# Dtypes in which two results may differ and both are right; docs/differences.md explains the differences to users.
FLUSHED = ("bfloat16", "float32", "float64")  # XLA flushes their subnormal numbers to zero on CPUs
UNSIGNED_ZEROS = ("float4_e2m1fn",)  # conversions from it lose the sign of zero
WITHOUT_NAN = ("float4_e2m1fn",)  # a NaN converts to an arbitrary number

_MOST = 1000  # the maximal number of combinations
_PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0)  # parts of complex numbers; infinite ones have many representations
_ORDINARY = (1.0, -1.0, 0.5, 1.0, 0.0, -1.0, 2.0)


def extremes(dtype: Any) -> Array:
    """Return the limits of a real dtype and numbers at which functions often go wrong, or small complex numbers."""
    dtype = np.dtype(dtype)
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtypes.is_complex(dtype):
        return np.array([complex(*pair) for pair in itertools.product(_PARTS, _PARTS)], dtype)
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        low, high, bits = int(info.min), int(info.max), int(info.bits)
        numbers = (low, low + 1, -bits, -3, -2, -1, 0, 1, 2, 3, 5, bits - 1, bits, bits + 1, high // 2, high - 1, high)
        inside = sorted({v for v in numbers if low <= v <= high})
        return np.array(inside, np.int64 if low else np.uint64).astype(dtype)
    info = dtypes.finfo(dtype)
    largest, tiny, eps = float(info.max), float(info.tiny), float(info.eps)
    given = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 0.25, 3.0, 7.0, largest, largest / 2, tiny, eps, 1 - eps, np.inf]
    if dtype.name not in FLUSHED:
        given.append(float(info.smallest_subnormal))
    with np.errstate(all="ignore"):
        values = np.array([np.nan, *given, *(-v for v in given)], np.float64).astype(dtype)
        size = np.abs(values.astype(np.float64))
        return values[~(size < tiny) | (size == 0)] if dtype.name in FLUSHED else values


def limits(dtype: Any) -> Array:
    """Return NaN, infinities, the largest and the smallest numbers of a floating-point dtype."""
    info = dtypes.finfo(dtype)
    given = [np.nan, np.inf, float(info.max), float(info.tiny)]
    given += [] if dtype.name in FLUSHED else [float(info.smallest_subnormal)]
    with np.errstate(all="ignore"):
        return np.array([*given, *(-v for v in given[1:])]).astype(dtype)


def combinations(types: Sequence[Any]) -> list[Array]:
    """Return extreme numbers of each dtype in every combination, thinned out for several operands."""
    step = {1: 1, 2: 3 if dtypes.is_complex(types[-1]) else 1}.get(len(types), 3)
    values = [x[::step] if x.size > 6 else x for x in map(extremes, types)]
    chosen = np.meshgrid(*(np.arange(x.size) for x in values), indexing="ij")
    thin = -(-chosen[0].size // _MOST) if chosen else 1
    return [x[i.reshape(-1)[::thin]] for x, i in zip(values, chosen, strict=True)]


# -- applications ----------------------------------------------------------------------------------------------------


def variants(call: Call, among: Sequence[Any] = DTYPES) -> Iterator[Call]:
    """Yield the application in each dtype that abstract eval accepts, in its own size and empty.

    In the example's own dtype, other sizes follow. Integers of fewer than 8 bits are tried only if abstract eval
    accepts integers at all. The drawn numbers do not matter, since `fills` replaces them.
    """
    main = main_dtype(call.example)
    if main is None:
        return
    integers = takes(call.primitive, in_dtype(call, main, np.dtype(np.int32)))
    for dtype in among:
        other = in_dtype(call, main, dtype)
        if dtype in dtypes.SMALL_INTS and not integers:
            continue
        sizes = list(_sizes(call, other))
        for sized in (other, *(sizes if dtype == main else sizes[:1])):
            if takes(call.primitive, sized):
                yield Call.of(call.primitive, sized, np.random.default_rng(0))


def in_dtype(call: Call, main: Any, dtype: Any) -> Example:
    """Return the example in another dtype, including parameters that name the dtype of results."""
    params = {
        name: dtype if isinstance(v, np.dtype) and v == main and "index" not in name else v
        for name, v in call.params.items()
    }
    return replace(with_dtype(call.example, dtype), params=params, reference=None)


def _sizes(call: Call, example: Example) -> Iterator[Example]:
    """Yield the example without elements, with one element, with other lengths, and with other orders of axes."""
    if not example.operands or not all(isinstance(x, ShapedArray) for x in example.operands):
        return
    if "elementwise" in call.primitive.tags:
        for shape in ((0, 2), (1,), ()):
            yield replace(example, operands=tuple(x.update(shape=shape) for x in example.operands))
        return
    others = list(in_other_sizes(call.primitive, example))
    empty = [e for e in others if any(0 in x.shape for x in e.operands)]
    ones = replace(example, operands=tuple(x.update(shape=(1,) * x.ndim) for x in example.operands))
    yield from (*empty, ones, *(e for e in others if all(e is not other for other in empty)))
    yield from in_other_orders(call.primitive, example)


class Filled(NamedTuple):
    """An application to extreme numbers.

    Attributes:
        call: the application.
        crowded: whether sums and products of its numbers depend on the order of evaluation.
    """

    call: Call
    crowded: bool


def fills(call: Call) -> Iterator[Filled]:
    """Yield the application to extreme numbers of its main dtype, as far as the example admits them.

    An elementwise primitive gets all combinations. Another primitive gets all numbers with positive and then with
    negative zeros. If it has floating-point operands, it also gets ordinary numbers with a single extreme number among
    them, in each operand in turn, since sums of several extreme numbers depend on their order.
    """
    main = main_dtype(call.example)
    free = [i for i, x in enumerate(call.example.operands) if isinstance(x, ShapedArray)]
    moving = [i for i in free if call.values[i].dtype == main]
    grid = _is_grid(call, free)
    for values, crowded in [(combinations([x.dtype for x in call.values]), False)] if grid else _filled(call, moving):
        if call.example.finite:
            values = [np.where(np.isfinite(x), x, np.ones((), x.dtype)) if dtypes.is_inexact(x.dtype) else x
                      for x in values]  # fmt: skip
        there = call.near(values) if is_constrained(call.example) or call.example.prepare else call.at(values)
        if there is not None:
            yield Filled(there, crowded)


def _is_grid(call: Call, free: Sequence[int]) -> bool:
    vectors = all(x.ndim for x in call.values) and any(x.size > 1 for x in call.values)
    return "elementwise" in call.primitive.tags and vectors and len(free) == len(call.values)


def _filled(call: Call, moving: Sequence[int]) -> Iterator[tuple[list[Array], bool]]:
    dtype = call.values[moving[0]].dtype if moving else np.dtype(bool)
    real = dtypes.is_float(dtype)
    crowded = real and "elementwise" not in call.primitive.tags
    if not any(call.values[i].size for i in moving):
        yield list(call.values), False
        return
    numbers = extremes(dtype)
    zeros = np.array([0.0, -0.0]).astype(dtype)
    for whole in [np.where(numbers == 0, zero, numbers) for zero in zeros] if real else [numbers]:
        yield [_cycled(whole, x, i) if i in moving else x for i, x in enumerate(call.values)], crowded
    ordinary = np.array(_ORDINARY).astype(dtype)
    for operand in moving if crowded else ():
        for limit in limits(dtype) if call.values[operand].size else ():
            values = [_cycled(ordinary, x, i) if i in moving else x for i, x in enumerate(call.values)]
            values[operand].flat[values[operand].size // 2] = limit
            yield values, False


def _cycled(numbers: Array, like: Array, start: int) -> Array:
    """Fill an array with the numbers in turn; each operand starts at a different number."""
    return np.resize(np.roll(numbers, -3 * start), like.shape).astype(like.dtype)


# -- results ---------------------------------------------------------------------------------------------------------


def differences(filled: Filled, run: Array, compiled: Array) -> Array:
    """Return a mask of the elements at which two results of an application differ by more than rounding.

    A primitive that only moves numbers must return the same numbers and zeros of the same sign. Elementwise functions
    such as max may return either of two zeros.
    """
    call, dtype = filled.call, run.dtype
    if not dtypes.is_inexact(dtype):
        return np.asarray(run != compiled)
    elementwise = "elementwise" in call.primitive.tags
    moves = _only_moves(call, run)
    zeros = _other_zeros(run, compiled)
    if elementwise and moves:
        zeros &= ~_zeros_of_both_signs(call)
    if moves and filled.crowded:
        return ~_same(run, compiled, 0.0, dtype) | zeros
    if filled.crowded:
        return np.zeros(run.shape, bool)
    a = run.astype(np.complex128 if dtypes.is_complex(dtype) else np.float64)
    info = dtypes.finfo(dtype)
    relative = max(tolerance(dtype), float(info.eps)) * call.example.tolerance
    size = np.where(np.isfinite(a), np.abs(a), 0.0)
    small = 2 * float(info.tiny) if dtype.name in FLUSHED else float(info.smallest_subnormal)
    least = small if elementwise and not dtypes.is_complex(dtype) else relative
    off = ~_same(run, compiled, np.maximum(relative * size, least), dtype)
    if least < relative and off.any() and loses_digits(call):
        off &= ~_same(run, compiled, relative, dtype)
    off |= zeros & (elementwise or moves)
    return off & np.isfinite(run) & np.isfinite(compiled) if call.example.finite else off


def loses_digits(call: Call) -> bool:
    """Return whether an elementwise function loses digits in float32, compared with its rounded float64 results."""
    narrow = np.dtype(np.float32)
    try:
        single = call.at(combinations([narrow if dtypes.is_float(x.dtype) else x.dtype for x in call.values]))
        results, exact = (host(each(*each.values)) for each in (single, single.widened()))
    except Exception:  # the primitive does not accept float32
        return False
    relative = tolerance(narrow) * call.example.tolerance
    least = 2 * float(dtypes.finfo(narrow).tiny)
    for a, b in zip(results, exact, strict=True):
        with np.errstate(all="ignore"):
            rounded, size = b.astype(a.dtype), np.where(np.isfinite(b), np.abs(b), 0.0)
        if dtypes.is_float(a.dtype) and not _same(a, rounded, np.maximum(relative * size, least), narrow).all():
            return True
    return False


def _other_zeros(run: Array, compiled: Array) -> Array:
    if dtypes.is_complex(run.dtype) or run.dtype.name in UNSIGNED_ZEROS:
        return np.zeros(run.shape, bool)
    return np.asarray((run == 0) & (compiled == 0) & (np.signbit(run) != np.signbit(compiled)))


def _zeros_of_both_signs(call: Call) -> Array:
    """Return a mask of the elements at which the operands have zeros of both signs, of which max may return either."""
    given = [x for x in call.values if dtypes.is_float(x.dtype)]
    positive, negative = (
        functools.reduce(np.logical_or, [(x == 0) & (np.signbit(x) == sign) for x in given], np.asarray(False))
        for sign in (False, True)
    )
    return np.asarray(positive & negative)


def _same(run: Array, compiled: Array, slack: Any, dtype: Any) -> Array:
    a, b = (x.astype(np.complex128 if dtypes.is_complex(dtype) else np.float64) for x in (run, compiled))
    parts = [(a.real, b.real), (a.imag, b.imag)] if dtypes.is_complex(dtype) else [(a, b)]
    with np.errstate(all="ignore"):
        same = [(np.isnan(x) & np.isnan(y)) | (x == y) | (np.abs(x - y) <= slack) for x, y in parts]
    return np.asarray(np.logical_and.reduce(same))


def _only_moves(call: Call, run: Array) -> bool:
    """Return whether every number of a result is one of the operands' numbers, bit by bit; any NaN equals any NaN."""
    given = np.concatenate([np.zeros(0, run.dtype), *(x.ravel() for x in call.values if x.dtype == run.dtype)])
    bits = np.dtype((np.void, run.itemsize))
    moved = np.isin(np.ascontiguousarray(run).ravel().view(bits), given.view(bits))
    return bool(np.all(moved | ((run != run).ravel() & np.any(given != given))))
