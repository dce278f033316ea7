"""Distributions of whole numbers: poisson binomial multinomial geometric."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_random.distributions.arguments import (
    broadcast_to,
    common_shape,
    converted,
    float_dtype,
    known_integer,
    number,
    of_32_bits,
    parameter,
    single_key,
)
from corejax_random.distributions.drawing import draw, keys, size_of, two_keys
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.repeating import as_draw
from corejax_random.distributions.rows import INTEGER, Parameter, distribution
from corejax_random.distributions.uniform import between_0_and_1
from corejax_random.keys.functions import shape_argument
from corejax_random.keys.primitives import random_clone_p

_FLOAT32 = np.dtype(np.float32)
_MOST_STEPS = 2**31 - 1


def _geometric(key: Any, p: Any, *, shape: Any, dtype: Any) -> Any:
    u = between_0_and_1(key, shape=shape, dtype=p.dtype)
    u = jnp.where(u == 0, p.dtype.type(1), u)
    trials = lax.floor(lax.log(u) / broadcast_to(lax.log1p(-p), shape)) + 1
    return lax.convert_element_type(trials, dtype)


def _probability(name: str, argument: str, p: Any, dtype: Any) -> Any:
    return of_32_bits(*lax.promote_dtypes(number(name, argument, p), inexact=True))


geometric = distribution(
    "geometric", _geometric,
    "Draw the number of trials until the first success: k with probability `p (1 - p)**(k - 1)`.",
    INTEGER,
    p=Parameter("the probability of success, in (0, 1]; not checked", _probability),
)  # fmt: skip


# -- Poisson -------------------------------------------------------------------------------------------------------


def _poisson(key: Any, lam: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw by products of uniform numbers for means below 10, by rejection above, by quantiles for large means."""
    lam = exact = broadcast_to(lam, shape)
    lam = lax.convert_element_type(lam, _FLOAT32)
    small, large = (lam < 10) | (lam != lam), lam >= _LARGE_VARIANCE
    most = min(int(dtypes.iinfo(dtype).max), _MOST_STEPS)
    few = _poisson_by_products(key, jnp.where(small, lam, 0.0), shape, dtype, most)
    by_rejection = ~(small | large)
    many = _poisson_by_rejection(
        random_clone_p.bind(key), jnp.where(by_rejection, lam, 1e5), jnp.all(~by_rejection), shape, dtype, most
    )
    exact = jnp.clip(exact, 0.0, 2.0**64)  # larger means draw the greatest number of any dtype
    by_normals = _of_large_variance(random_clone_p.bind(key), exact, exact, 1.0, shape, exact.dtype)
    by_normals = lax.convert_element_type(by_normals, dtype)
    return jnp.where(lam == 0, dtype.type(0), jnp.where(large, by_normals, jnp.where(small, few, many)))


def _mean(name: str, argument: str, lam: Any, dtype: Any) -> Any:
    lam = parameter(name, argument, lam)
    wide = dtypes.default_float_dtype() if type(lam) in (float, int) else lam.dtype
    return converted(lam, np.dtype(np.float64) if wide == np.float64 else _FLOAT32)


poisson = distribution(
    "poisson", _poisson,
    "Draw Poisson numbers: k with probability `lam**k exp(-lam) / k!`.",
    INTEGER,
    lam=Parameter("the mean, not negative; rejection computes in float32", _mean),
)  # fmt: skip


# From this variance on, rounding errors of the logarithms in float32 are visible in 4 million draws by rejection.
_LARGE_VARIANCE = 2.0**15


def _of_large_variance(key: Any, mean: Any, variance: Any, skew: Any, shape: Any, dtype: Any) -> Any:
    """Draw integers, in float64, as quantiles of normal numbers (Cornish and Fisher 1938; Giles 2016).

    The first omitted term of the expansion is of order `variance**-0.5`.

    Args:
        key: a typed key.
        mean: mean of the distribution.
        variance: variance of the distribution.
        skew: the skewness times the standard deviation.
        shape: shape of the result.
        dtype: dtype of the normal numbers.
    """
    z = standard_normal(key, shape=shape, dtype=dtype)
    wide = dtypes.canonicalize_dtype(np.float64)
    mean, variance, skew, z = (lax.convert_element_type(x, wide) for x in (mean, variance, skew, z))
    return lax.floor(mean + lax.sqrt(variance) * z + skew * ((z * z - 1.0) / 6.0) + 0.5)


def _poisson_by_products(key: Any, lam: Any, shape: Any, dtype: Any, most: int) -> Any:
    """Count the uniform numbers to multiply until the product is below exp(-lam) (Knuth)."""

    def going(state: Any) -> Any:
        step, _, _, log_product = state
        return jnp.any(log_product > -lam) & (step < most)

    def factor(state: Any) -> Any:
        step, k, key, log_product = state
        key, subkey = two_keys(key)
        k = jnp.where(log_product > -lam, k + 1, k)
        u = between_0_and_1(subkey, shape=shape, dtype=_FLOAT32)
        return step + 1, k, key, log_product + lax.log(u)

    start = (jnp.int32(0), jnp.zeros(shape, dtype), key, jnp.zeros(shape, _FLOAT32))
    return lax.while_loop(going, factor, start)[1] - dtype.type(1)


def _poisson_by_rejection(key: Any, lam: Any, unused: Any, shape: Any, dtype: Any, most: int) -> Any:
    """Draw by rejection (Hoermann 1993, algorithm PTRS); return -1 for all elements if all are unused.

    As in JAX, an accepted number is drawn again until all numbers are accepted, so that elements cannot be skipped
    one by one.
    """
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def going(state: Any) -> Any:
        step, _, accepted, _ = state
        return jnp.any(~accepted) & (step < most)

    def attempt(state: Any) -> Any:
        step, out, accepted, key = state
        three = keys(key, 3)
        u = between_0_and_1(three[1], shape=shape, dtype=_FLOAT32) - 0.5
        v = between_0_and_1(three[2], shape=shape, dtype=_FLOAT32)
        side = 0.5 - jnp.abs(u)
        k = lax.floor((2 * a / side + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (side * side) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        refused = (k < 0) | ((side < 0.013) & (v > side))
        accept = ((side >= 0.07) & (v <= v_r)) | (~refused & (s <= t))
        return step + 1, jnp.where(accept, k, out), accepted | accept, three[0]

    start = (jnp.int32(0), jnp.full(shape, -1.0, _FLOAT32), broadcast_to(unused, shape), key)
    return lax.convert_element_type(lax.while_loop(going, attempt, start)[1], dtype)


# -- binomial ------------------------------------------------------------------------------------------------------


@as_draw
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw the number of successes in `n` trials, each with probability `p`.

    Args:
        key: a key.
        n: the number of trials, rounded down. A negative number gives NaN.
        p: the probability of success. A negative number gives NaN.
        shape: shape of the result, to which the parameters broadcast; by default the shape that they broadcast to.
        dtype: a floating-point dtype.

    Raises:
        TypeError: if `key` is not a key, or a parameter is not a number.
        ValueError: if the dtype or the shape is invalid.
    """
    key = single_key("binomial", key)
    dtype = float_dtype("binomial", dtype)
    n, p = number("binomial", "n", n), number("binomial", "p", p)
    shape = common_shape("binomial", shape, n=n, p=p)
    return draw(binomial_counts, size_of(shape), key, n, p, shape=shape, dtype=dtype)


def binomial_counts(key: Any, n: Any, p: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw by sums of geometric numbers if `n p` is at most 10, else by rejection; p above 1/2 is replaced by 1 - p."""
    (p,) = lax.promote_dtypes(p, inexact=True)
    p = of_32_bits(p)  # narrower dtypes cannot count the trials
    n, p = broadcast_to(lax.convert_element_type(n, p.dtype), shape), broadcast_to(p, shape)
    rare = p < 0.5
    q = jnp.where(rare, p, 1.0 - p)
    wrong_n, wrong_q = (n != n) | (n < 0.0), q != q
    negative = q < 0.0
    q = jnp.where(wrong_q | negative, 0.01, q)
    few = wrong_n | (n * q <= 10.0)
    endless = jnp.isinf(n)
    wide = dtypes.canonicalize_dtype(np.float64)
    exact_n, exact_q = (lax.convert_element_type(x, wide) for x in (lax.floor(n), q))
    mean = exact_n * exact_q
    variance = mean * (1.0 - exact_q)
    large = ~few & (variance >= _LARGE_VARIANCE)
    by_rejection = ~(few | large)
    n = lax.floor(n)
    most = int(min(float(dtypes.finfo(dtype).max), _MOST_STEPS))
    again = random_clone_p.bind(key)  # each element uses only one of the methods, so that they may share the key
    by_normals = _of_large_variance(random_clone_p.bind(key), mean, variance, 1.0 - 2.0 * exact_q, shape, p.dtype)
    used_n, used_q = jnp.where(by_rejection, n, 1e4), jnp.where(by_rejection, q, 0.5)
    out = jnp.where(
        few,
        _binomial_by_gaps(key, jnp.where(few, n, -1.0), q, shape, dtype, most),
        _binomial_by_rejection(again, used_n, used_q, jnp.all(~by_rejection), shape, dtype, most),
    )
    out = jnp.where(large, lax.convert_element_type(jnp.clip(by_normals, 0.0, exact_n), dtype), out)
    invalid = negative | wrong_q | wrong_n
    out = jnp.where(invalid, dtype.type(np.nan), out)
    out = jnp.where(endless & ~invalid, dtype.type(np.inf), out)
    keep = rare | wrong_n | wrong_q | endless
    return jnp.where(keep, out, lax.convert_element_type(n, dtype) - out)


def _binomial_by_gaps(key: Any, n: Any, q: Any, shape: Any, dtype: Any, most: int) -> Any:
    """Count the geometric numbers, the gaps between successes, with a sum of at most n."""
    log_failure = lax.log1p(-q)

    def going(state: Any) -> Any:
        step, _, total, _ = state
        return jnp.any(total <= n) & (step < most)

    def gap(state: Any) -> Any:
        step, count, total, key = state
        subkey, key = two_keys(key)
        count = jnp.where(total <= n, count + 1, count)
        u = between_0_and_1(subkey, shape=shape, dtype=q.dtype)
        return step + 1, count, total + lax.ceil(lax.log(u) / log_failure), key

    start = (jnp.int32(0), jnp.zeros(shape, q.dtype), jnp.zeros(shape, q.dtype), key)
    return lax.convert_element_type(lax.while_loop(going, gap, start)[1] - 1, dtype)


def _binomial_by_rejection(key: Any, n: Any, q: Any, unused: Any, shape: Any, dtype: Any, most: int) -> Any:
    """Draw by rejection (Hoermann 1993, algorithm BTRS); return -1 if all are unused, as `_poisson_by_rejection`."""
    deviation = jnp.sqrt(n * q * (1 - q))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c = n * q + 0.5
    v_r = 0.92 - 4.2 / b
    odds = q / (1 - q)
    alpha = (2.83 + 5.1 / b) * deviation
    m = lax.floor((n + 1) * q)

    def bound(k: Any) -> Any:
        """Return the logarithm of the probability of k relative to the mode m, by terms of the size of k - m."""
        tails = _stirling_tail(m) + _stirling_tail(n - m) - _stirling_tail(k) - _stirling_tail(n - k)
        return (
            (k - m) * lax.log(odds * (n - m + 1) / (m + 1))
            - (k + 0.5) * lax.log1p((k - m) / (m + 1))
            - (n - k + 0.5) * lax.log1p((m - k) / (n - m + 1))
            + tails
        )

    def going(state: Any) -> Any:
        step, _, accepted, _ = state
        return jnp.any(~accepted) & (step < most)

    def attempt(state: Any) -> Any:
        step, out, accepted, key = state
        three = keys(key, 3)
        u = between_0_and_1(three[1], shape=shape, dtype=q.dtype) - 0.5
        v = between_0_and_1(three[2], shape=shape, dtype=q.dtype)
        side = 0.5 - jnp.abs(u)
        k = lax.floor((2 * a / side + b) * u + c)
        refused = (k < 0) | (k > n)
        height = lax.log(v * alpha / (a / (side * side) + b))
        accept = ((side >= 0.07) & (v <= v_r)) | (~refused & (height <= bound(k)))
        return step + 1, jnp.where(accept, k, out), accepted | accept, three[0]

    start = (jnp.int32(0), jnp.full(shape, -1, q.dtype), broadcast_to(unused, shape), key)
    return lax.convert_element_type(lax.while_loop(going, attempt, start)[1], dtype)


# The error of Stirling's formula: log(k!) - log(sqrt(2 pi)) - (k + 1/2) log(k + 1) + (k + 1), for k = 0 .. 9.
_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    """Return the error of Stirling's formula for log(k!), from a table for k up to 9, by its series above."""
    table = jnp.asarray(np.array(_TAILS), k.dtype)
    small = k <= 9
    k = jnp.clip(k, k.dtype.type(0), k.dtype.type(9))
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return jnp.where(small, table[lax.convert_element_type(lax.floor(k), np.dtype(np.int32))], series)


@as_draw
def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: int | bool = 1) -> Any:
    """Draw the number of times that each outcome happens in `n` trials.

    Args:
        key: a key.
        n: the number of trials, which broadcasts to the leading axes of `p`.
        p: the outcomes' probabilities, along the last axis.
        shape: shape of the result, including the last axis, to which `p` broadcasts; by default the shape of `p`.
        dtype: dtype of the result; by default the default floating-point dtype.
        unroll: `unroll` argument of the scan over the outcomes.

    Raises:
        TypeError: if `key` is not a key, or a parameter is not a number.
        ValueError: if `p` is a scalar, or the parameters do not broadcast to the shape.
    """
    key = single_key("multinomial", key)
    n, p = lax.promote_dtypes(
        number("multinomial", "n", n), number("multinomial", "p", p), inexact=True, name="multinomial"
    )
    n, p = of_32_bits(n), of_32_bits(p)
    if p.ndim < 1:
        raise ValueError(f"multinomial: p must have an axis of outcomes, got shape {p.shape}")
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.canonicalize_dtype(dtype)
    if type(unroll) is not bool:
        unroll = known_integer("multinomial", "unroll", unroll)
    shape = p.shape if shape is None else shape_argument("multinomial", shape)
    common_shape("multinomial", shape, p=p)
    common_shape("multinomial", shape[:-1], n=n)
    return draw(_multinomial, size_of(shape), key, n, p, shape=shape, dtype=dtype, unroll=unroll)


def _multinomial(key: Any, n: Any, p: Any, *, shape: Any, dtype: Any, unroll: int | bool) -> Any:
    """Draw the count of each outcome from the remaining trials, by the binomial distribution."""
    n, p = broadcast_to(n, shape[:-1]), jnp.moveaxis(broadcast_to(p, shape), -1, 0)
    left = lax.cumsum(p, 0, reverse=True)
    shares = p / jnp.where(left == 0, p.dtype.type(1), left)

    def outcome(remaining: Any, inputs: Any) -> Any:
        share, key = inputs
        count = binomial_counts(key, remaining, jnp.clip(share, 0, 1), shape=remaining.shape, dtype=remaining.dtype)
        return remaining - count, count

    counts = lax.scan(outcome, n, (shares, keys(key, shares.shape[0])), unroll=unroll)[1]
    return lax.convert_element_type(jnp.moveaxis(counts, 0, -1), dtype)
