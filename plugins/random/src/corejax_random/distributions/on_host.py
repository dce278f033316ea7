"""Draws of few numbers with one key, by NumPy on the host.

The results equal those of the primitives one by one, without the cost of dispatching them. The primitives run instead
while they are observed (`corejax.explain`).
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, config, dtypes, host_value, impl_rules
from corejax.extend.messages import observe
from corejax_lax_basic import lax
from corejax_random.distributions.drawing import COMPILED, bits, two_keys
from corejax_random.distributions.random_between import scaled
from corejax_random.generators.lanes import FEW, Lanes
from corejax_random.generators.table import UINTS, generator_of
from corejax_random.generators.threefry import THREEFRY, random_bits_on_host, split_on_host
from corejax_random.keys.arguments import evaluating
from corejax_random.keys.primitives import words_of


def on_host(key: Any, shape: Any) -> bool:
    """Return whether numbers of this shape are drawn on the host."""
    size = math.prod(shape)
    return type(size) is int and size < COMPILED and evaluating(key) and not observe.watched


def _as_array(values: Any, shape: Any, dtype: Any) -> Any:
    """Wrap a result as an array."""
    return Array(np.asarray(values).reshape(shape), ShapedArray(shape, dtype))


def _source(key: Any) -> Any:
    """Return the words of a Threefry key, for its host functions, and other keys unchanged."""
    return words_of(host_value(key)) if generator_of(key.dtype) is THREEFRY else key


def _bits(source: Any, width: int, size: int) -> Any:
    """Generate bits, uint[size]."""
    if type(source) is np.ndarray:
        return random_bits_on_host(source, width, (size,))
    return host_value(bits(source, width, (size,)))


def _halves(source: Any) -> Any:
    """Split a source into two sources."""
    return split_on_host(source, (2,)) if type(source) is np.ndarray else two_keys(source)


_FLOAT32 = np.dtype(np.float32)
_9, _2_TO_MINUS_23, _SQRT_2 = np.uint32(9), np.float32(2.0**-23), np.float32(math.sqrt(2))


@functools.cache
def scipy_erfinv() -> Any:
    """Return the ufunc; SciPy is imported when it is first needed, which takes 0.1 s."""
    return importlib.import_module("scipy.special").erfinv


def _two_bits(key: Any, width: int, size: int) -> Any:
    """Split a key into two keys and generate bits uint[size] with each."""
    source = _source(key)
    if type(source) is not np.ndarray:
        return [_bits(half, width, size) for half in two_keys(source)]
    halves = split_on_host(source, (2,))
    if 0 < size <= FEW and config.threefry_partitionable:
        return Lanes(size).bits_of_counters(width, *halves.tolist())
    return random_bits_on_host(halves, width, (size,))


# -- uniform numbers ----------------------------------------------------------------------------------------------


@functools.cache
def _mantissa_of(dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Return the dtype of the bits, the amount to shift them by, and 1 as bits and as a number."""
    info = dtypes.finfo(dtype)
    wide, one = UINTS[info.bits], np.ones((), dtype)
    return wide, wide.type(width_of(dtype) - info.nmant), one.view(wide), one


def width_of(dtype: Any) -> int:
    """Return the number of bits that are generated for each number."""
    info = dtypes.finfo(dtype)
    return 8 if info.nmant < 8 else int(info.bits)


def unit_of(words: Any, dtype: Any) -> Any:
    """Convert bits, `uint[n]`, to numbers in [0, 1)."""
    if dtype is _FLOAT32:
        return (words >> _9).astype(dtype) * _2_TO_MINUS_23
    wide, shift, one_bits, one = _mantissa_of(dtype)
    return ((words.astype(wide, copy=False) >> shift) | one_bits).view(dtype) - one


def _unit(key: Any, size: int, dtype: Any) -> Any:
    return unit_of(_bits(_source(key), width_of(dtype), size), dtype)


def unit(key: Any, shape: Any, dtype: Any) -> Any:
    """Draw numbers in [0, 1)."""
    return _as_array(_unit(key, math.prod(shape), dtype), shape, dtype)


def between(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    """Draw numbers in [low, high); the bounds are Python or NumPy numbers."""
    with np.errstate(all="ignore"):
        u = _unit(key, math.prod(shape), dtype)
        return _as_array(scaled(u, np.asarray(low, dtype), np.asarray(high, dtype)), shape, dtype)


# -- normal numbers -----------------------------------------------------------------------------------------------


@functools.cache
def _normal_constants(dtype: Any) -> tuple[Any, Any, Any]:
    """Return the bounds of the uniform numbers, the greatest number above -1 and 1, and the square root of 2."""
    low = np.nextafter(dtype.type(-1), dtype.type(0), dtype=dtype)
    return np.asarray(low, dtype), np.ones((), dtype), np.array(math.sqrt(2), dtype)


def normal_of(words: Any, dtype: Any) -> Any:
    """Convert bits, `uint[n]`, to standard normal numbers: quantiles of uniform numbers."""
    if dtype is _FLOAT32:  # a shortcut for `scaled`: the width is 2, rounding happens once, and no number is 0
        moved = (words >> _9) * 2.0**-22 + (2.0**-24 - 1)
        return scipy_erfinv()(moved.astype(dtype)) * _SQRT_2
    low, high, sqrt2 = _normal_constants(dtype)
    return sqrt2 * impl_rules.lookup(lax.erf_inv_p)(scaled(unit_of(words, dtype), low, high))


def standard_normal(key: Any, shape: Any, dtype: Any) -> Any:
    """Draw real standard normal numbers."""
    words = _bits(_source(key), width_of(dtype), math.prod(shape))
    with np.errstate(all="ignore"):
        return _as_array(normal_of(words, dtype), shape, dtype)


# -- orders -------------------------------------------------------------------------------------------------------


def shuffled(key: Any, x: Any, axis: int, rounds: int) -> Any:
    """Sort an array by random words, `rounds` times."""
    result, source = host_value(x), _source(key)
    for _ in range(rounds):
        source, second = _halves(source)
        order = np.argsort(_bits(second, 32, x.size).reshape(x.shape), axis=axis, kind="stable")
        result = np.take_along_axis(result, order, axis)
    return Array(result, x.aval) if rounds else x


# -- integers -----------------------------------------------------------------------------------------------------


def integers(key: Any, minval: int, maxval: int, shape: Any, dtype: Any) -> Any:
    """Draw integers in [minval, maxval), as `uniform.integers`; narrow dtypes are drawn as int32."""
    info, size = dtypes.iinfo(dtype), math.prod(shape)
    wide, least, beyond = dtype, int(info.min), maxval > info.max
    if info.bits < 32:
        wide, beyond = np.dtype(np.int32), False
    low, high = _clip(minval, least, int(info.max)), _clip(maxval, least, int(info.max) + (info.bits < 32))
    nbits = 8 * wide.itemsize
    span = high - low + beyond if high > low else 1
    upper, lower = _two_bits(key, nbits, size)
    if span == 1 << nbits:
        offset = lower
    else:
        unsigned = UINTS[nbits].type
        factor = pow(2, nbits // 2, span) ** 2 % (1 << nbits) % span
        if span > 1 << nbits // 2:
            lower = _redrawn(key, lower, (1 << nbits) - 1 - (1 << nbits) % span)
        offset = (upper % unsigned(span) * unsigned(factor) + lower % unsigned(span)) % unsigned(span)
    moved = offset + UINTS[nbits].type(low % (1 << nbits))
    return _as_array(moved.view(wide).astype(dtype, copy=False), shape, dtype)


def _redrawn(key: Any, words: Any, last: int) -> Any:
    """Redraw words greater than `last`, as `uniform._redrawn`."""
    source, _ = _halves(_source(key))
    while np.count_nonzero(refused := words > words.dtype.type(last)):
        source, second = _halves(source)
        words = np.where(refused, _bits(second, 8 * words.dtype.itemsize, words.size), words)
    return words


def _clip(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)
