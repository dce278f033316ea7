"""Distributions drawn directly from the generator's bits: bits uniform randint bernoulli rademacher."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import as_array, dtypes
from corejax.extend.messages import clears_cache
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_random.distributions import on_host
from corejax_random.distributions.arguments import (
    broadcast_to,
    common_shape,
    converted,
    float_dtype,
    integer_dtype,
    number,
    of_32_bits,
    one_of,
)
from corejax_random.distributions.drawing import bits as draw_bits
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.random_between import random_between_p
from corejax_random.distributions.repeating import record_draw
from corejax_random.distributions.rows import ANY, UNSIGNED, distribution, draws
from corejax_random.generators.table import UINTS
from corejax_random.keys.functions import shape_argument
from corejax_random.keys.primitives import random_clone_p


def _bits(key: Any, *, shape: Any, dtype: Any) -> Any:
    return draw_bits(key, 8 * dtype.itemsize, shape)


bits = distribution("bits", _bits, "Draw uniform bits, as unsigned integers.", UNSIGNED)


@draws
def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Draw uniform numbers in [minval, maxval).

    Args:
        key: a key.
        shape: shape of the result, to which the bounds broadcast.
        dtype: a floating-point dtype.
        minval: the lower bound, inclusive.
        maxval: the upper bound, exclusive.

    Raises:
        TypeError: if `key` is not a key, or a bound is not a number.
        ValueError: if the dtype is not floating-point, or the shape is invalid.
    """
    dtype = float_dtype("uniform", dtype)
    if type(minval) is float and type(maxval) is float and minval == 0.0 and maxval == 1.0:
        shape = shape_argument("uniform", shape)
        return draw(between_0_and_1, size_of(shape), key, shape=shape, dtype=dtype)
    minval, maxval = number("uniform", "minval", minval), number("uniform", "maxval", maxval)
    shape = common_shape("uniform", shape_argument("uniform", shape), minval=minval, maxval=maxval)
    bounds = converted(minval, dtype), converted(maxval, dtype)
    return draw(_uniform, size_of(shape), key, *bounds, shape=shape, dtype=dtype)


def _uniform(key: Any, minval: Any, maxval: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw between the bounds; if their difference overflows, between their halves."""
    scale = jnp.where(jnp.isinf(maxval - minval), dtype.type(0.5), dtype.type(1))
    return between(key, minval * scale, maxval * scale, shape=shape, dtype=dtype) / scale


def between_0_and_1(key: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw numbers in [0, 1): random bits as the mantissa of a number in [1, 2), minus 1."""
    if on_host.on_host(key, shape):
        return on_host.unit(key, shape, dtype)
    info = dtypes.finfo(dtype)
    wide = UINTS[info.bits]
    width = 8 if info.nmant < 8 else info.bits
    mantissa = draw_bits(key, width, shape)
    one = np.ones((), dtype)
    mantissa = lax.convert_element_type(mantissa, wide)
    mantissa = lax.shift_right_logical(mantissa, wide.type(width - info.nmant))
    mantissa = lax.bitwise_or(mantissa, one.view(wide)[()])
    return lax.sub(lax.bitcast_convert_type(mantissa, dtype), as_array(one))


def between(key: Any, minval: Any, maxval: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw numbers in [minval, maxval); the bounds broadcast to the shape."""
    if isinstance(minval, _NUMBERS) and isinstance(maxval, _NUMBERS) and on_host.on_host(key, shape):
        return on_host.between(key, minval, maxval, shape, dtype)
    low, high = converted(minval, dtype), converted(maxval, dtype)
    return random_between_p.bind(between_0_and_1(key, shape=shape, dtype=dtype), low, high)


_NUMBERS = (int, float, np.generic)


@draws
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Draw uniform integers in [minval, maxval), or minval if the interval is empty.

    Twice as many bits are drawn as the dtype has (64 for 8 and 16 bits), so that the remainder hardly favours any
    number.

    Args:
        key: a key.
        shape: shape of the result, to which the bounds broadcast.
        minval: the lower bound, inclusive; bounds are clamped to the range of the dtype.
        maxval: the upper bound, exclusive.
        dtype: an integer dtype.

    Raises:
        TypeError: if `key` is not a key, a bound is not a number, or the dtype is not an integer dtype.
        ValueError: if the bounds do not broadcast to the shape.
    """
    dtype = integer_dtype("randint", dtype, TypeError)
    if type(minval) is int and type(maxval) is int:
        return integers_between(key, minval, maxval, shape_argument("randint", shape), dtype)
    low, high = _bound("minval", minval), _bound("maxval", maxval)
    shape = common_shape("randint", shape_argument("randint", shape), minval=low, maxval=high)
    return draw(integers, size_of(shape), key, low, high, shape=shape, dtype=dtype, redraw=True)


def integers_between(key: Any, minval: int, maxval: int, shape: Any, dtype: Any) -> Any:
    """Draw integers in [minval, maxval), with bounds that are Python integers or symbolic sizes."""
    if isinstance(maxval, SymbolicDim):
        return randint(key, shape, minval, as_array(maxval), dtype)
    if on_host.on_host(key, shape):
        out = on_host.integers(key, int(_of_64_bits(minval)), int(_of_64_bits(maxval)), shape, dtype)
        run = lambda key: integers_between(key, minval, maxval, shape, dtype)  # noqa: E731
        return record_draw(out, run, (), run_directly=True)
    low, high = _known_bound(minval), _known_bound(maxval)
    nbits, span = dtypes.iinfo(dtype).bits, max(maxval - minval, 1)
    redraw = span > 1 << nbits // 2 and bool((1 << nbits) % span)
    return draw(integers, size_of(shape), key, low, high, shape=shape, dtype=dtype, redraw=redraw)


@functools.lru_cache(maxsize=64)
def _known_bound(value: int) -> Any:
    """Return a scalar array, cached together with its device buffer."""
    return as_array(_of_64_bits(value))


clears_cache(_known_bound.cache_clear)


def _bound(argument: str, value: Any) -> Any:
    if type(value) is int:
        return as_array(_of_64_bits(value))
    bound = as_array(number("randint", argument, value))
    if not dtypes.is_integer(bound.dtype):
        bound = lax.convert_element_type(bound, dtypes.default_int_dtype())
    return bound


def _of_64_bits(value: int) -> Any:
    """Convert a Python integer to the narrowest of int32, int64 and uint64 that holds it, clamped to 64 bits."""
    if -(2**31) <= value < 2**31:
        return np.int32(value)
    return np.int64(max(value, -(2**63))) if value < 2**63 else np.uint64(min(value, 2**64 - 1))


def _clipped(x: Any, dtype: Any) -> Any:
    """Convert integers to another dtype, clamped to its range."""
    new, old = dtypes.iinfo(dtype), dtypes.iinfo(x.dtype)
    least, most = max(int(new.min), int(old.min)), min(int(new.max), int(old.max))
    return lax.convert_element_type(jnp.clip(x, x.dtype.type(least), x.dtype.type(most)), dtype)


def integers(key: Any, minval: Any, maxval: Any, *, shape: Any, dtype: Any, redraw: bool) -> Any:
    """Draw integers in [minval, maxval); narrow dtypes are drawn as int32.

    `redraw` is True if the span may have more than half the bits of the dtype and not divide `2**nbits`.
    """
    info = dtypes.iinfo(dtype)
    if info.bits < 32:
        int32 = np.dtype(np.int32)
        low = jnp.clip(_clipped(minval, int32), int(info.min), int(info.max))
        high = jnp.clip(_clipped(maxval, int32), int(info.min), int(info.max) + 1)
        return lax.convert_element_type(_randint_of(key, low, high, shape, int32, redraw=False), dtype)
    return _randint_of(key, minval, maxval, shape, dtype, redraw=redraw)


def _randint_of(key: Any, minval: Any, maxval: Any, shape: Any, dtype: Any, *, redraw: bool) -> Any:
    """Draw two words for each number and return `(high * 2**nbits + low) % span`, in arithmetic of `nbits` bits.

    If the span has more than half as many bits, `2**nbits` overflows to 0 and only the low word counts. It is then
    redrawn while it is beyond the last multiple of the span.
    """
    most = _clipped(jnp.asarray(dtypes.iinfo(dtype).max, dtype), maxval.dtype)
    beyond = maxval > most  # the span then has one more number, the greatest of the dtype
    low, high = _clipped(minval, dtype), _clipped(maxval, dtype)
    nbits = dtypes.iinfo(dtype).bits
    unsigned = UINTS[nbits]
    first, second = two_keys(key)
    upper, lower = draw_bits(first, nbits, shape), draw_bits(second, nbits, shape)
    one = unsigned.type(1)
    span = lax.convert_element_type(high - low, unsigned)
    span = jnp.where(high <= low, one, span)
    span = jnp.where(beyond & (high > low), span + one, span)  # 0 if it has all numbers, as x % 0 is x
    factor = _rem(jnp.asarray(2 ** (nbits // 2), unsigned), span)
    factor = _rem(factor * factor, span)
    if redraw:
        last = lax.bitwise_not(_rem(lax.neg(span), span))
        last = jnp.where(span > unsigned.type(1 << nbits // 2), last, unsigned.type((1 << nbits) - 1))
        lower = _redrawn(random_clone_p.bind(first), lower, broadcast_to(last, shape))
    offset = _rem(_rem(upper, span) * factor + _rem(lower, span), span)
    return lax.convert_element_type(broadcast_to(low, shape), dtype) + lax.convert_element_type(offset, dtype)


def _redrawn(key: Any, words: Any, last: Any) -> Any:
    """Redraw words that are greater than `last`, until none is."""

    def step(state: Any) -> Any:
        key, subkey = two_keys(state[0])
        return key, jnp.where(state[1] > last, draw_bits(subkey, 8 * words.dtype.itemsize, words.shape), state[1])

    return lax.while_loop(lambda state: jnp.any(state[1] > last), step, (key, words))[1]


def _rem(x: Any, y: Any) -> Any:
    shape = lax.broadcast_shapes(x.shape, y.shape)
    return lax.rem(broadcast_to(x, shape), broadcast_to(y, shape))


@draws
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Any:
    """Draw booleans that are true with probability `p`.

    Args:
        key: a key.
        p: the probability, floating-point. 1 or more is always True; 0 or less, or NaN, is always False.
        shape: shape of the result, to which `p` broadcasts; by default the shape of `p`.
        mode: "low", or "high" for twice as many bits, so that probabilities below 1e-7 are accurate in float32.

    Raises:
        TypeError: if `key` is not a key, or `p` is not floating-point.
        ValueError: if `mode` is unknown, or `p` does not broadcast to the shape.
    """
    one_of("bernoulli", "mode", mode, ("high", "low"))
    p = as_array(number("bernoulli", "p", p))
    if not dtypes.is_float(p.dtype):
        raise TypeError(f"bernoulli: p must be floating-point, got {p.aval.str_short()}")
    p = of_32_bits(p)
    shape = common_shape("bernoulli", shape, p=p)
    return draw(_bernoulli, size_of(shape), key, p, shape=shape, mode=mode)


def _bernoulli(key: Any, p: Any, *, shape: Any, mode: str) -> Any:
    dtype = p.dtype
    if mode == "low":
        return between_0_and_1(key, shape=shape, dtype=dtype) < p
    coarse, fine = between_0_and_1(key, shape=(2, *shape), dtype=dtype)
    return fine * 2.0 ** -dtypes.finfo(dtype).nmant < p - coarse


def signs(key: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw -1 or 1, each with probability one half."""
    up = between_0_and_1(key, shape=shape, dtype=dtypes.default_float_dtype()) < 0.5
    return lax.convert_element_type(2 * lax.convert_element_type(up, dtype) - 1, dtype)


rademacher = distribution("rademacher", signs, "Draw -1 or 1, each with probability one half.", ANY)
