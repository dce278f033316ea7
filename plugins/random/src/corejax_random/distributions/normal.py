"""The normal distribution and its kin.

normal truncated_normal lognormal maxwell double_sided_maxwell multivariate_normal
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import as_array, dtypes, laid_out
from corejax_lax_basic import lax
from corejax_random.distributions import on_host
from corejax_random.distributions.arguments import (
    common_shape,
    converted,
    float_dtype,
    joint_shape,
    number,
    one_of,
    parameter,
    shape_argument,
    single_key,
)
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.repeating import as_draw
from corejax_random.distributions.uniform import between, signs


@as_draw
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard normal numbers, with density `exp(-x**2 / 2) / sqrt(2 pi)`.

    Args:
        key: a key.
        shape: of the result.
        dtype: a floating-point or complex dtype. Real and imaginary parts of complex numbers have variance 1/2.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key.
        ValueError: the dtype is neither floating-point nor complex, or the shape is none.
    """
    key = single_key("normal", key)
    shape = shape_argument("normal", shape)
    dtype = float_dtype("normal", dtype, or_complex=True)
    return laid_out("normal", draw(standard_normal, size_of(shape), key, shape=shape, dtype=dtype), out_sharding)


def standard_normal(key: Any, *, shape: Any, dtype: Any) -> Any:
    """Numbers whose quantiles are uniform."""
    if dtypes.is_complex(dtype):
        real = dtypes.real_dtype_of(dtype)
        parts = [standard_normal(k, shape=shape, dtype=real) for k in two_keys(key)]
        return lax.complex(*parts) / as_array(np.array(math.sqrt(2), dtype))
    if on_host.on_host(key, shape):
        return on_host.standard_normal(key, shape, dtype)
    low = np.nextafter(dtype.type(-1), dtype.type(0), dtype=dtype)
    u = between(key, low, dtype.type(1), shape=shape, dtype=dtype)
    return lax.mul(as_array(np.array(math.sqrt(2), dtype)), lax.erf_inv(u))


@as_draw
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Standard normal numbers that lie between two bounds.

    Args:
        key: a key.
        lower, upper: the bounds; neither is drawn.
        shape: of the result, to which the bounds broadcast; by default what they broadcast to.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or a bound is no number.
        ValueError: the dtype is not floating-point, or the bounds do not broadcast to the shape.
    """
    key = single_key("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    lower, upper = number("truncated_normal", "lower", lower), number("truncated_normal", "upper", upper)
    shape = common_shape("truncated_normal", shape, lower=lower, upper=upper)
    lower, upper = converted(lower, dtype), converted(upper, dtype)
    return laid_out(
        "truncated_normal",
        draw(_truncated_normal, size_of(shape), key, lower, upper, shape=shape, dtype=dtype),
        out_sharding,
    )


def _truncated_normal(key: Any, lower: Any, upper: Any, *, shape: Any, dtype: Any) -> Any:
    sqrt2 = as_array(np.array(math.sqrt(2), dtype))
    u = between(key, lax.erf(lower / sqrt2), lax.erf(upper / sqrt2), shape=shape, dtype=dtype)
    out = sqrt2 * lax.erf_inv(u)
    infinity = as_array(np.array(math.inf, dtype))
    least = lax.nextafter(lax.stop_gradient(lower), jnp.broadcast_to(infinity, lower.shape))
    most = lax.nextafter(lax.stop_gradient(upper), jnp.broadcast_to(-infinity, upper.shape))
    return jnp.clip(out, least, most)


@as_draw
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers whose logarithm is normal, with standard deviation `sigma`.

    Args:
        key: a key.
        sigma: not negative.
        shape: of the result, to which `sigma` broadcasts; by default its own.
        dtype: a floating-point or complex dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or `sigma` is no number.
        TypePromotionError: `sigma` is of a wider dtype.
        ValueError: the dtype or the shape does not fit, or `sigma` is negative.
    """
    key = single_key("lognormal", key)
    dtype = float_dtype("lognormal", dtype, or_complex=True)
    sigma = parameter("lognormal", "sigma", sigma, dtype)
    shape = common_shape("lognormal", shape, sigma=sigma)
    return laid_out("lognormal", draw(_lognormal, size_of(shape), key, sigma, shape=shape, dtype=dtype), out_sharding)


def _lognormal(key: Any, sigma: Any, *, shape: Any, dtype: Any) -> Any:
    return lax.exp(standard_normal(key, shape=shape, dtype=dtype) * sigma)


@as_draw
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Lengths of three-dimensional standard normal vectors.

    Args:
        key: a key.
        shape: of the result.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key.
        ValueError: the dtype is not floating-point, or the shape is none.
    """
    key = single_key("maxwell", key)
    dtype = float_dtype("maxwell", dtype)
    shape = shape_argument("maxwell", shape)
    return laid_out("maxwell", draw(_maxwell, size_of(shape), key, shape=shape, dtype=dtype), out_sharding)


def _maxwell(key: Any, *, shape: Any, dtype: Any) -> Any:
    vectors = standard_normal(key, shape=(*shape, 3), dtype=dtype)
    return jnp.sqrt(jnp.sum(vectors * vectors, axis=-1))


@as_draw
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """`loc` and `scale` times a `maxwell` number of random sign.

    Args:
        key: a key.
        loc: the centre.
        scale: not negative.
        shape: in front of the shape of the parameters; where it is (), that is there twice, as in JAX.
        dtype: a floating-point dtype.

    Raises:
        TypeError: it is no key, or a parameter is no number.
        ValueError: the dtype or the shape does not fit, or `scale` is negative.
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


@as_draw
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Any:
    """Normal vectors of a given mean and covariance.

    Args:
        key: a key.
        mean: of shape (..., n).
        cov: of shape (..., n, n), symmetric and positive definite.
        shape: of the batch, to which the leading axes of both broadcast; by default what these broadcast to.
        dtype: a floating-point dtype; by default that of `mean` and `cov`.
        method: how `cov` is factored: "cholesky", or "eigh" or "svd", which take singular ones.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Returns:
        Of shape (*shape, n).

    Raises:
        TypeError: it is no key, or a parameter is no array.
        ValueError: shapes, dtype or method do not fit.
    """
    name = "multivariate_normal"
    key = single_key(name, key)
    mean, cov = lax.promote_dtypes(number(name, "mean", mean), number(name, "cov", cov), inexact=True, name=name)
    one_of(name, "method", method, ("cholesky", "eigh", "svd"))
    dtype = float_dtype(name, mean.dtype if dtype is None else dtype)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(f"{name}: mean is of shape (..., n) and cov (..., n, n), got {mean.shape} and {cov.shape}")
    shape = joint_shape(name, shape, {"mean": mean.shape[:-1], "cov": cov.shape[:-2]})
    static = {"shape": shape, "dtype": dtype, "method": method}
    return laid_out(
        name, draw(_multivariate_normal, size_of(shape) * mean.shape[-1], key, mean, cov, **static), out_sharding
    )


def _multivariate_normal(key: Any, mean: Any, cov: Any, *, shape: Any, dtype: Any, method: str) -> Any:
    vectors = standard_normal(key, shape=(*shape, mean.shape[-1]), dtype=dtype)
    return mean + jnp.einsum("...ij,...j->...i", _factor(cov, method), vectors)


def _factor(cov: Any, method: str) -> Any:
    """A with A @ A.T == cov."""
    from corejax.numpy import linalg  # another plugin, which need not be installed

    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = linalg.eigh(cov)
    else:
        vectors, values, _ = linalg.svd(cov)
    return vectors * jnp.sqrt(values[..., None, :])
