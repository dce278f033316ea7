"""The multivariate normal distribution. Source: `scipy.stats.multivariate_normal`."""

from __future__ import annotations

import math
from typing import Any

import corejax.numpy as jnp
from corejax_scipy._arguments import reals
from corejax_scipy.stats._families import Distribution

_LOG_2PI = math.log(2 * math.pi)


def _logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal: allow_singular must be None; covariances must be positive definite"
        )
    x, mean, cov = reals("multivariate_normal.logpdf", x, mean, cov)
    if not mean.ndim:
        return -0.5 * (jnp.square(x - mean) / cov + _LOG_2PI + jnp.log(cov))
    n = mean.shape[-1]
    if x.ndim and x.shape[-1] not in (1, n):
        raise ValueError(
            f"multivariate_normal: the last axis of x must have the length {n} of mean, got {x.aval.str_short()}"
        )
    y = x - mean
    if not cov.ndim:
        return -0.5 * (jnp.sum(y * y, axis=-1) / cov + n * (_LOG_2PI + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal: cov must be a number or of shape (..., {n}, {n}) for a mean of length {n}, got "
            f"{cov.aval.str_short()}"
        )
    from corejax.lax import linalg

    factor = linalg.cholesky(cov)
    batch = jnp.broadcast_shapes(y.shape[:-1], cov.shape[:-2])
    # Make vectors with the same covariance columns of one array.
    front = len(batch) - (factor.ndim - 2)
    factors = jnp.broadcast_to(factor, (*batch[front:], n, n))
    columns = jnp.broadcast_to(y, (*batch, n)).reshape(-1, *batch[front:], n)
    white = linalg.triangular_solve(factors, jnp.moveaxis(columns, 0, -1), left_side=True, lower=True)
    squares = jnp.moveaxis(jnp.sum(white * white, axis=-2), -1, 0).reshape(batch)
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (squares + n * _LOG_2PI) - half_log_det


def _pdf(x: Any, mean: Any, cov: Any) -> Any:
    return jnp.exp(_logpdf(x, mean, cov))


multivariate_normal = Distribution(
    "multivariate_normal",
    "The normal distribution of vectors, the last axis of `x`, with a mean and a covariance matrix.",
    {"logpdf": _logpdf, "pdf": _pdf},
)
