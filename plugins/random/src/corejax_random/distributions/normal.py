"""The normal distribution and related ones.

normal truncated_normal lognormal maxwell double_sided_maxwell multivariate_normal
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import as_array, dtypes
from corejax_lax_basic import lax
from corejax_random.distributions import on_host
from corejax_random.distributions.arguments import (
    broadcast_to,
    common_shape,
    converted,
    float_dtype,
    joint_shape,
    number,
    one_of,
    parameter,
    single_key,
)
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.random_between import random_between_p
from corejax_random.distributions.repeating import as_draw
from corejax_random.distributions.rows import INEXACT, distribution, draws, in_dtype
from corejax_random.distributions.uniform import between, between_0_and_1, signs
from corejax_random.keys.functions import shape_argument


def standard_normal(key: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw standard normal numbers as quantiles of uniform numbers."""
    if dtypes.is_complex(dtype):
        real = dtypes.real_dtype_of(dtype)
        parts = [standard_normal(k, shape=shape, dtype=real) for k in two_keys(key)]
        return lax.complex(*parts) / as_array(np.array(math.sqrt(2), dtype))
    if on_host.on_host(key, shape):
        return on_host.standard_normal(key, shape, dtype)
    low = np.nextafter(dtype.type(-1), dtype.type(0), dtype=dtype)
    u = between(key, low, dtype.type(1), shape=shape, dtype=dtype)
    return lax.mul(as_array(np.array(math.sqrt(2), dtype)), lax.erf_inv(u))


normal = distribution(
    "normal", standard_normal,
    """Draw standard normal numbers, with density `exp(-x**2 / 2) / sqrt(2 pi)`.

    Real and imaginary parts of complex numbers have variance 1/2.
    """,
    INEXACT,
)  # fmt: skip


@draws
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw standard normal numbers between two bounds.

    Args:
        key: a key.
        lower: the lower bound, exclusive.
        upper: the upper bound, exclusive.
        shape: shape of the result, to which the bounds broadcast; by default the shape that they broadcast to.
        dtype: a floating-point dtype.

    Raises:
        TypeError: if `key` is not a key, or a bound is not a number.
        ValueError: if the dtype is not floating-point, or the bounds do not broadcast to the shape.
    """
    dtype = float_dtype("truncated_normal", dtype)
    lower, upper = number("truncated_normal", "lower", lower), number("truncated_normal", "upper", upper)
    shape = common_shape("truncated_normal", shape, lower=lower, upper=upper)
    known = type(lower) in (float, int) and type(upper) in (float, int)
    outside_tails = (
        known and math.erf(lower / math.sqrt(2)) <= _tail(dtype) and math.erf(upper / math.sqrt(2)) >= -_tail(dtype)
    )
    lower, upper = converted(lower, dtype), converted(upper, dtype)
    return draw(_truncated_normal, size_of(shape), key, lower, upper, shape=shape, dtype=dtype, tails=not outside_tails)


def _tail(dtype: Any) -> float:
    """Return the value of the error function beyond which a bound is in a tail."""
    tail: float = 1 - float(dtypes.finfo(dtype).eps) ** 0.25
    return tail


def _truncated_normal(key: Any, lower: Any, upper: Any, *, shape: Any, dtype: Any, tails: bool) -> Any:
    """Draw quantiles of uniform numbers between the error function's values at the bounds.

    In the tails, these values are too close to each other, so that another method replaces the numbers. `tails` is True
    if an interval may be in a tail.
    """
    sqrt2, one = (as_array(np.array(x, dtype)) for x in (math.sqrt(2), 1))
    low, high = lax.erf(lower / sqrt2), lax.erf(upper / sqrt2)
    unit = between_0_and_1(key, shape=shape, dtype=dtype)
    most = lax.nextafter(one, -one)
    out = sqrt2 * lax.erf_inv(jnp.clip(random_between_p.bind(unit, low, high), -most, most))
    if tails:
        right, left = broadcast_to(low > _tail(dtype), shape), broadcast_to(high < -_tail(dtype), shape)
        bounds = (broadcast_to(lower, shape), broadcast_to(upper, shape))
        out = lax.cond(jnp.any(right | left), _or_in_tails, lambda out, *_: out, out, unit, right, left, *bounds)
    infinity = as_array(np.array(math.inf, dtype))
    least = lax.nextafter(lax.stop_gradient(lower), jnp.broadcast_to(infinity, lower.shape))
    most = lax.nextafter(lax.stop_gradient(upper), jnp.broadcast_to(-infinity, upper.shape))
    return jnp.clip(out, least, most)


def _or_in_tails(out: Any, unit: Any, right: Any, left: Any, lower: Any, upper: Any) -> Any:
    """Replace the numbers of intervals in the right or the left tail."""
    tail, sign = right | left, jnp.where(left, -1.0, 1.0)
    near = jnp.where(tail, jnp.where(left, -upper, lower), 3.0)
    far = jnp.where(tail, jnp.where(left, -lower, upper), 4.0)
    near, far, unit = (lax.convert_element_type(x, dtypes.canonicalize_dtype(np.float64)) for x in (near, far, unit))
    drawn = near + _beyond(near, far, unit)
    return jnp.where(tail, lax.convert_element_type(drawn, out.dtype) * lax.convert_element_type(sign, out.dtype), out)


def _beyond(near: Any, far: Any, unit: Any) -> Any:
    """Draw the distance t from `near`, which is positive, to a normal number between `near` and `far`.

    With the survival function S, t is the solution of `log S(near) - log S(near + t) = v`. The left side is convex, and
    Newton's method converges from above. Only the last step is differentiated.
    """
    far = jnp.minimum(far, near + 40.0)  # numbers beyond this have probability 0 in float64

    def fall(t: Any) -> Any:
        return t * (near + t / 2.0) + _log_erfcx(near) - _log_erfcx(near + t)

    v = -lax.log1p(unit * lax.expm1(-fall(far - near)))
    t = lax.stop_gradient(2.0 * v / (near + lax.sqrt(near * near + 2.0 * v)))
    for _ in range(5):
        hazard = math.sqrt(2 / math.pi) * lax.exp(-_log_erfcx(lax.stop_gradient(near + t)))
        t = lax.stop_gradient(t) - (fall(lax.stop_gradient(t)) - v) / hazard
    return t


def _log_erfcx(x: Any) -> Any:
    """Return `x**2 / 2 + log(erfc(x / sqrt(2)))`, for positive x of float64; for large x by DLMF 7.12.1."""
    y = x * math.sqrt(0.5)
    large = y > 8.0
    small_y, large_y = jnp.where(large, 1.0, y), jnp.where(large, y, 8.0)
    z = 0.5 / (large_y * large_y)
    series = 1.0 - z * (1.0 - z * (3.0 - z * (15.0 - z * (105.0 - z * (945.0 - z * (10395.0 - z * 135135.0))))))
    by_series = lax.log(series / large_y) - 0.5 * math.log(math.pi)
    return jnp.where(large, by_series, lax.log(lax.erfc(small_y)) + small_y * small_y)


def _lognormal(key: Any, sigma: Any, *, shape: Any, dtype: Any) -> Any:
    return lax.exp(standard_normal(key, shape=shape, dtype=dtype) * sigma)


lognormal = distribution(
    "lognormal", _lognormal,
    "Draw numbers with a normal logarithm of standard deviation `sigma`.",
    INEXACT,
    sigma=in_dtype("not negative", default="1.0"),
)  # fmt: skip


def _maxwell(key: Any, *, shape: Any, dtype: Any) -> Any:
    vectors = standard_normal(key, shape=(*shape, 3), dtype=dtype)
    return jnp.sqrt(jnp.sum(vectors * vectors, axis=-1))


maxwell = distribution("maxwell", _maxwell, "Draw lengths of three-dimensional standard normal vectors.")


@as_draw
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw `maxwell` numbers with random signs, scaled by `scale` and shifted by `loc`.

    Args:
        key: a key.
        loc: the centre.
        scale: the scale, not negative.
        shape: leading axes of the result, before the shape of the parameters. If it is (), the shape of the parameters
            appears twice, as in JAX.
        dtype: a floating-point dtype.

    Raises:
        TypeError: if `key` is not a key, or a parameter is not a number.
        ValueError: if the dtype or the shape is invalid, or `scale` is negative.
    """
    name = "double_sided_maxwell"
    key = single_key(name, key)
    dtype = float_dtype(name, dtype)
    loc, scale = parameter(name, "loc", loc, least=None), parameter(name, "scale", scale)
    shape = shape_argument(name, shape)
    inner = common_shape(name, None, loc=loc, scale=scale)
    shape = (shape or inner) + inner
    return draw(_double_sided_maxwell, size_of(shape), key, loc, scale, shape=shape, dtype=dtype)


def _double_sided_maxwell(key: Any, loc: Any, scale: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    lengths = _maxwell(first, shape=shape, dtype=dtype)
    return signs(second, shape=shape, dtype=dtype) * lengths * scale + loc


@draws
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Any:
    """Draw normal vectors with a given mean and covariance.

    Args:
        key: a key.
        mean: mean of shape (..., n).
        cov: covariance of shape (..., n, n), symmetric and positive definite.
        shape: shape of the batch, to which the leading axes of both broadcast; by default the shape that these
            broadcast to.
        dtype: a floating-point dtype; by default the dtype of `mean` and `cov`.
        method: factorisation of `cov`: "cholesky", or "eigh" or "svd", which accept singular matrices.

    Returns:
        An array of shape (*shape, n).

    Raises:
        TypeError: if `key` is not a key, or a parameter is not an array.
        ValueError: if shapes, dtype or method are invalid.
    """
    name = "multivariate_normal"
    mean, cov = lax.promote_dtypes(number(name, "mean", mean), number(name, "cov", cov), inexact=True, name=name)
    one_of(name, "method", method, ("cholesky", "eigh", "svd"))
    dtype = float_dtype(name, mean.dtype if dtype is None else dtype)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(
            f"{name}: mean must have shape (..., n) and cov shape (..., n, n), got {mean.shape} and {cov.shape}"
        )
    shape = joint_shape(name, shape, {"mean": mean.shape[:-1], "cov": cov.shape[:-2]})
    size = size_of(shape) * mean.shape[-1]
    return draw(_multivariate_normal, size, key, mean, cov, shape=shape, dtype=dtype, method=method)


def _multivariate_normal(key: Any, mean: Any, cov: Any, *, shape: Any, dtype: Any, method: str) -> Any:
    vectors = standard_normal(key, shape=(*shape, mean.shape[-1]), dtype=dtype)
    return mean + jnp.einsum("...ij,...j->...i", _factor(cov, method), vectors)


def _factor(cov: Any, method: str) -> Any:
    """Return A such that A @ A.T == cov."""
    from corejax.numpy import linalg  # from another plugin, which is optional

    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = linalg.eigh(cov)
    else:
        vectors, values, _ = linalg.svd(cov)
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[..., None, :]  # rounding may turn zeros negative
