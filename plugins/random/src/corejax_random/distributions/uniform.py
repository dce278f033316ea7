"""Numbers whose bits are those of the generator: bits uniform randint bernoulli rademacher."""

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
    common_shape,
    converted,
    float_dtype,
    integer_dtype,
    number,
    of_32_bits,
    one_of,
    spread,
)
from corejax_random.distributions.drawing import bits as draw_bits
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.random_between import random_between_p
from corejax_random.distributions.repeating import note
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
        shape: of the result, to which the bounds broadcast.
        dtype: a floating-point dtype.
        minval, maxval: the bounds.

    Raises:
        TypeError: it is no key, or a bound is no number.
        ValueError: the dtype is not floating-point, or the shape is none.
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
    """Draw between the halves of bounds whose difference overflows."""
    scale = jnp.where(jnp.isinf(maxval - minval), dtype.type(0.5), dtype.type(1))
    return between(key, minval * scale, maxval * scale, shape=shape, dtype=dtype) / scale


def between_0_and_1(key: Any, *, shape: Any, dtype: Any) -> Any:
    """Random bits as the mantissa of a number in [1, 2), less 1."""
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
    """Numbers in [minval, maxval), which broadcast to the shape."""
    if isinstance(minval, _NUMBERS) and isinstance(maxval, _NUMBERS) and on_host.on_host(key, shape):
        return on_host.between(key, minval, maxval, shape, dtype)
    low, high = converted(minval, dtype), converted(maxval, dtype)
    return random_between_p.bind(between_0_and_1(key, shape=shape, dtype=dtype), low, high)


_NUMBERS = (int, float, np.generic)


@draws
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Draw uniform integers in [minval, maxval); minval if there are none between.

    Twice as many bits are drawn as the dtype has (of 8 and 16 bits, 64), so that the remainder hardly favours any
    number.

    Args:
        shape: of the result, to which the bounds broadcast.
        minval, maxval: the bounds, integers; what is beyond the dtype counts as its end.
        dtype: a dtype of integers.

    Raises:
        TypeError: it is no key, a bound no number, or the dtype none of integers.
        ValueError: the bounds do not broadcast to the shape.
    """
    dtype = integer_dtype("randint", dtype, TypeError)
    if type(minval) is int and type(maxval) is int:
        return integers_between(key, minval, maxval, shape_argument("randint", shape), dtype)
    low, high = _bound("minval", minval), _bound("maxval", maxval)
    shape = common_shape("randint", shape_argument("randint", shape), minval=low, maxval=high)
    return draw(integers, size_of(shape), key, low, high, shape=shape, dtype=dtype, redraw=True)


def integers_between(key: Any, minval: int, maxval: int, shape: Any, dtype: Any) -> Any:
    """Integers in [minval, maxval), of bounds that are known, or sizes that are symbols."""
    if isinstance(maxval, SymbolicDim):
        return randint(key, shape, minval, as_array(maxval), dtype)
    if on_host.on_host(key, shape):
        out = on_host.integers(key, int(_of_64_bits(minval)), int(_of_64_bits(maxval)), shape, dtype)
        return note(out, lambda key: integers_between(key, minval, maxval, shape, dtype), (), as_it_is=True)
    low, high = _known_bound(minval), _known_bound(maxval)
    nbits, span = dtypes.iinfo(dtype).bits, max(maxval - minval, 1)
    redraw = span > 1 << nbits // 2 and bool((1 << nbits) % span)
    return draw(integers, size_of(shape), key, low, high, shape=shape, dtype=dtype, redraw=redraw)


@functools.lru_cache(maxsize=64)
def _known_bound(value: int) -> Any:
    """A scalar, which is kept with the buffer that programs make of it."""
    return as_array(_of_64_bits(value))


clears_cache(_known_bound.cache_clear)


def _bound(argument: str, value: Any) -> Any:
    if type(value) is int:
        return as_array(_of_64_bits(value))
    found = as_array(number("randint", argument, value))
    if not dtypes.is_integer(found.dtype):
        found = lax.convert_element_type(found, dtypes.default_int_dtype())
    return found


def _of_64_bits(value: int) -> Any:
    """A Python integer in the narrowest of int32, int64 and uint64 that holds it, or the nearest one that does."""
    if -(2**31) <= value < 2**31:
        return np.int32(value)
    return np.int64(max(value, -(2**63))) if value < 2**63 else np.uint64(min(value, 2**64 - 1))


def _clipped(x: Any, dtype: Any) -> Any:
    """Integers in another dtype, those beyond it as its ends."""
    wanted, given = dtypes.iinfo(dtype), dtypes.iinfo(x.dtype)
    least, most = max(int(wanted.min), int(given.min)), min(int(wanted.max), int(given.max))
    return lax.convert_element_type(jnp.clip(x, x.dtype.type(least), x.dtype.type(most)), dtype)


def integers(key: Any, minval: Any, maxval: Any, *, shape: Any, dtype: Any, redraw: bool) -> Any:
    """Integers in [minval, maxval); of narrow dtypes by way of int32.

    `redraw` says whether the span may be more than half the bits of the dtype and no divisor of their number.
    """
    info = dtypes.iinfo(dtype)
    if info.bits < 32:
        int32 = np.dtype(np.int32)
        low = jnp.clip(_clipped(minval, int32), int(info.min), int(info.max))
        high = jnp.clip(_clipped(maxval, int32), int(info.min), int(info.max) + 1)
        return lax.convert_element_type(_randint_of(key, low, high, shape, int32, redraw=False), dtype)
    return _randint_of(key, minval, maxval, shape, dtype, redraw=redraw)


def _randint_of(key: Any, minval: Any, maxval: Any, shape: Any, dtype: Any, *, redraw: bool) -> Any:
    """Two words for each number: `(high * 2**nbits + low) % span`, in arithmetic of the width of the dtype.

    If the span has more than half as many bits, `2**nbits` overflows to 0 and the low word alone counts. It is then
    redrawn as long as it lies behind the last multiple of the span.
    """
    most = _clipped(jnp.asarray(dtypes.iinfo(dtype).max, dtype), maxval.dtype)
    beyond = maxval > most  # then the span has one number more
    low, high = _clipped(minval, dtype), _clipped(maxval, dtype)
    nbits = dtypes.iinfo(dtype).bits
    unsigned = UINTS[nbits]
    first, second = two_keys(key)
    upper, lower = draw_bits(first, nbits, shape), draw_bits(second, nbits, shape)
    one = unsigned.type(1)
    span = lax.convert_element_type(high - low, unsigned)
    span = jnp.where(high <= low, one, span)
    span = jnp.where(beyond & (high > low), span + one, span)  # 0 where it is all numbers: x % 0 is x
    factor = _rem(jnp.asarray(2 ** (nbits // 2), unsigned), span)
    factor = _rem(factor * factor, span)
    if redraw:
        last = lax.bitwise_not(_rem(lax.neg(span), span))
        last = jnp.where(span > unsigned.type(1 << nbits // 2), last, unsigned.type((1 << nbits) - 1))
        lower = _redrawn(random_clone_p.bind(first), lower, spread(last, shape))
    offset = _rem(_rem(upper, span) * factor + _rem(lower, span), span)
    return lax.convert_element_type(spread(low, shape), dtype) + lax.convert_element_type(offset, dtype)


def _redrawn(key: Any, words: Any, last: Any) -> Any:
    """Draw words anew until none is greater than the last one."""

    def step(state: Any) -> Any:
        key, subkey = two_keys(state[0])
        return key, jnp.where(state[1] > last, draw_bits(subkey, 8 * words.dtype.itemsize, words.shape), state[1])

    return lax.while_loop(lambda state: jnp.any(state[1] > last), step, (key, words))[1]


def _rem(x: Any, y: Any) -> Any:
    shape = lax.broadcast_shapes(x.shape, y.shape)
    return lax.rem(spread(x, shape), spread(y, shape))


@draws
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low") -> Any:
    """Draw booleans that are true with probability `p`.

    Args:
        p: the probability, floating-point; 1 or more is always true, 0 or less, and NaN, always false.
        shape: of the result, to which `p` broadcasts; by default its own.
        mode: "high" for twice as many bits: in float32, probabilities below 1e-7 are right too.

    Raises:
        TypeError: it is no key, or `p` not floating-point.
        ValueError: `mode` is another word, or `p` does not broadcast to the shape.
    """
    one_of("bernoulli", "mode", mode, ("high", "low"))
    p = as_array(number("bernoulli", "p", p))
    if not dtypes.is_float(p.dtype):
        raise TypeError(f"bernoulli: p is floating-point, got {p.aval.str_short()}")
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
    """-1 or 1."""
    up = between_0_and_1(key, shape=shape, dtype=dtypes.default_float_dtype()) < 0.5
    return lax.convert_element_type(2 * lax.convert_element_type(up, dtype) - 1, dtype)


rademacher = distribution("rademacher", signs, "Draw -1 or 1, each with probability one half.", ANY)
