"""Distributions drawn by applying quantile functions to uniform numbers.

cauchy exponential gumbel laplace logistic pareto rayleigh triangular wald weibull_min
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import as_array, config, dtypes
from corejax_lax_basic import lax
from corejax_random.distributions.arguments import (
    broadcast_to,
    float_dtype,
    joint_shape,
    one_of,
    parameter,
    single_key,
)
from corejax_random.distributions.drawing import bits, draw, size_of, two_keys
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.repeating import as_draw
from corejax_random.distributions.rows import distribution, draws, in_dtype
from corejax_random.distributions.uniform import between, between_0_and_1
from corejax_random.keys.functions import shape_argument


def _cauchy(key: Any, *, shape: Any, dtype: Any) -> Any:
    u = between(key, dtypes.finfo(dtype).eps, 1.0, shape=shape, dtype=dtype)
    return lax.tan(u.dtype.type(math.pi) * (u - u.dtype.type(0.5)))


cauchy = distribution("cauchy", _cauchy, "Draw Cauchy numbers, with density `1 / (pi (1 + x**2))`.")


def standard_exponential(key: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw `-log(1 - u)`, which is finite for each u in [0, 1)."""
    return lax.neg(lax.log1p(lax.neg(between_0_and_1(key, shape=shape, dtype=dtype))))


exponential = distribution(
    "exponential", standard_exponential,
    "Draw exponential numbers, with density `exp(-x)` for positive x.",
)  # fmt: skip


def _laplace(key: Any, *, shape: Any, dtype: Any) -> Any:
    least = -1.0 + float(dtypes.finfo(dtype).epsneg)
    u = between(key, least, 1.0, shape=shape, dtype=dtype)
    return lax.sign(u) * lax.log1p(lax.neg(lax.abs(u)))


laplace = distribution("laplace", _laplace, "Draw Laplace numbers, with density `exp(-abs(x)) / 2`.")


def _logistic(key: Any, *, shape: Any, dtype: Any) -> Any:
    u = _positive(between(key, dtypes.finfo(dtype).tiny, 1.0, shape=shape, dtype=dtype))
    return lax.log(u) - lax.log1p(lax.neg(u))


logistic = distribution("logistic", _logistic, "Draw logistic numbers, with density `exp(-x) / (1 + exp(-x))**2`.")


def _positive(u: Any) -> Any:
    """Replace zeros among uniform numbers by half the spacing, the middle of the interval that a zero represents."""
    return jnp.maximum(u, u.dtype.type(0.5 * 2.0 ** -dtypes.finfo(u.dtype).nmant))


@draws
def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None) -> Any:
    """Draw Gumbel numbers, with density `exp(-x - exp(-x))`.

    Args:
        key: a key.
        shape: shape of the result.
        dtype: a floating-point dtype.
        mode: "low", "high", or "highest". "high" uses twice as many bits, with which the greatest numbers in float32
            are about 32 instead of 16; "highest" uses 64 bits for float32. The default is "high" or "low", depending
            on the setting `high_dynamic_range_gumbel`.

    Raises:
        TypeError: if `key` is not a key.
        ValueError: if the dtype is not floating-point, the shape is negative, or the mode is unknown.
    """
    mode, dtype, shape = gumbel_mode("gumbel", mode), float_dtype("gumbel", dtype), shape_argument("gumbel", shape)
    return draw(standard_gumbel, size_of(shape), key, shape=shape, dtype=dtype, mode=mode)


def gumbel_mode(name: str, mode: str | None) -> str:
    """Return the mode of a draw of Gumbel numbers; None becomes the default.

    Raises:
        ValueError: if the mode is unknown.
    """
    if mode is None:
        return "high" if config.high_dynamic_range_gumbel else "low"
    return one_of(name, "mode", mode, ("low", "high", "highest"))


def standard_gumbel(key: Any, *, shape: Any, dtype: Any, mode: str) -> Any:
    """Draw `-log(-log(u))`."""
    info = dtypes.finfo(dtype)
    if mode == "highest" and dtype == np.float32:
        return _gumbel_of_64_bits(key, shape)
    if mode == "low":
        return -lax.log(-lax.log(between(key, info.tiny, 1.0, shape=shape, dtype=dtype)))
    coarse, fine = between_0_and_1(key, shape=(2, *shape), dtype=dtype)
    x = jnp.where(coarse >= 0.5, coarse, coarse + 2.0**-info.nmant * fine + dtype.type(info.tiny))
    return -lax.log(-lax.log1p(-x))


def _gumbel_of_64_bits(key: Any, shape: Any) -> Any:
    """Draw from uniform numbers u of 64 bits, by the logarithm of the smaller of u and 1 - u."""
    high, low = words = bits(key, 32, (2, *shape))
    # 1 - u in fixed point is the complement plus one in the last place, which may carry.
    other = lax.bitwise_not(words) + jnp.stack([low == 0, jnp.ones(low.shape, bool)]).astype(np.uint32)
    small = high < np.uint32(1 << 31)
    x = _float_of_64_bits(*jnp.where(small, words, other))
    return jnp.where(small, -lax.log(-lax.log1p(-x)), -lax.log(-lax.log(x)))


def _float_of_64_bits(high: Any, low: Any) -> Any:
    """Convert a fixed-point number of 64 bits to a float32 in [0, 1), rounded down."""
    u32 = np.uint32
    zeros, more = lax.clz(high), lax.clz(low)
    none = zeros == 32
    rest = jnp.where(none, lax.shift_left(low, more), lax.shift_right_logical(low, u32(32) - zeros))
    mantissa = (lax.shift_right_logical(lax.shift_left(high, zeros) | rest, u32(8))) & u32(2**23 - 1)
    exponent = lax.shift_left(u32(126) - jnp.where(none, u32(32) + more, zeros), u32(23))
    exponent = exponent & u32(2**30 - 2**22)
    return lax.bitcast_convert_type(exponent | mantissa, np.dtype(np.float32))


def _pareto(key: Any, b: Any, *, shape: Any, dtype: Any) -> Any:
    return lax.exp(standard_exponential(key, shape=shape, dtype=dtype) / b)


pareto = distribution(
    "pareto", _pareto,
    "Draw Pareto numbers, with density `b / x**(b + 1)` for x above 1.",
    b=in_dtype("not negative"),
)  # fmt: skip


def _rayleigh(key: Any, scale: Any, *, shape: Any, dtype: Any) -> Any:
    u = _positive(between_0_and_1(key, shape=shape, dtype=dtype))
    return scale * lax.sqrt(lax.log(u) * dtype.type(-2))


rayleigh = distribution(
    "rayleigh", _rayleigh,
    "Draw Rayleigh numbers, with density `x exp(-x**2 / (2 scale**2)) / scale**2` for positive x.",
    scale=in_dtype("not negative"),
)  # fmt: skip


def _triangular(key: Any, left: Any, mode: Any, right: Any, *, shape: Any, dtype: Any) -> Any:
    u = _positive(between_0_and_1(key, shape=shape, dtype=dtype))
    width = right - left
    divisor = jnp.where(width == 0, dtype.type(1), width)
    peak = (mode - left) / divisor
    rises = u < peak
    distance = width * lax.sqrt(jnp.where(rises, u * peak, (1 - u) * ((right - mode) / divisor)))
    return jnp.where(rises, left + distance, right - distance)


triangular = distribution(
    "triangular", _triangular,
    "Draw triangular numbers, with a density that rises from `left` to `mode` and falls to `right`.",
    left=in_dtype("the least number", least=None),
    mode=in_dtype("the position of the greatest density, not less than `left`", least=None),
    right=in_dtype("the greatest number, not less than `mode`", least=None),
)  # fmt: skip


def _wald(key: Any, mean: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw one of the two roots of a quadratic equation, x and `mean**2 / x` (Michael, Schucany and Haas 1976).

    The smaller root is computed by its reciprocal, a sum of positive numbers, which avoids cancellation.
    """
    first, second = two_keys(key)
    mean = broadcast_to(mean, shape)
    y = lax.square(standard_normal(first, shape=shape, dtype=dtype)) / 2
    z = between_0_and_1(second, shape=shape, dtype=dtype)
    none = mean == 0
    q = 1 / jnp.where(none, dtype.type(1), mean)
    reciprocal = q + y + lax.sqrt(y) * lax.sqrt(y + 2 * q)
    factor = jnp.where(z <= 1 / (1 + q / reciprocal), dtype.type(1), mean * reciprocal)
    return jnp.where(none, mean, factor * (factor / reciprocal))


wald = distribution(
    "wald", _wald,
    "Draw Wald (inverse Gaussian) numbers of scale 1.",
    mean=in_dtype("not negative"),
)  # fmt: skip


@as_draw
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw Weibull numbers, with density proportional to `x**(c - 1) exp(-(x / scale)**c)` for positive x.

    Args:
        key: a key.
        scale: the scale, not negative.
        concentration: the shape parameter c, not negative.
        shape: shape of the random numbers, which broadcast with the parameters.
        dtype: a floating-point dtype.

    Raises:
        TypeError: if `key` is not a key, or a parameter is not a number.
        ValueError: if the dtype or the shape is invalid, or a parameter is negative.
    """
    name = "weibull_min"
    key = single_key(name, key)
    dtype = float_dtype(name, dtype)
    scale = parameter(name, "scale", scale)
    concentration = parameter(name, "concentration", concentration)
    shape = shape_argument(name, shape)
    joint_shape(name, None, {"shape": shape, "scale": np.shape(scale), "concentration": np.shape(concentration)})
    return draw(_weibull_min, size_of(shape), key, scale, concentration, shape=shape, dtype=dtype)


def _weibull_min(key: Any, scale: Any, concentration: Any, *, shape: Any, dtype: Any) -> Any:
    one = 1.0 / as_array(concentration)
    return jnp.power(_positive(standard_exponential(key, shape=shape, dtype=dtype)), one) * scale
