"""The gamma distribution and related ones: gamma loggamma beta chisquare dirichlet f t generalized_normal ball."""

from __future__ import annotations

from typing import Any

import corejax.nn as nn
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_random.distributions.arguments import (
    broadcast_to,
    converted,
    float_dtype,
    joint_shape,
    known_integer,
    parameter,
    positive,
)
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.quantiles import standard_exponential
from corejax_random.distributions.random_gamma import random_gamma_p
from corejax_random.distributions.rows import Parameter, distribution, draws, in_dtype
from corejax_random.distributions.uniform import signs
from corejax_random.keys.functions import shape_argument


def _gamma(key: Any, a: Any, *, shape: Any, dtype: Any) -> Any:
    return random_gamma_p.bind(key, broadcast_to(lax.convert_element_type(a, dtype), shape), log_space=False)


def _loggamma(key: Any, a: Any, *, shape: Any, dtype: Any) -> Any:
    return random_gamma_p.bind(key, broadcast_to(lax.convert_element_type(a, dtype), shape), log_space=True)


_SHAPE = Parameter(
    "the shape parameter, not negative",
    lambda name, argument, a, dtype: converted(parameter(name, argument, a), dtype),
)

gamma = distribution(
    "gamma", _gamma,
    """Draw gamma numbers, with density proportional to `x**(a - 1) exp(-x)` for positive x.

    Differentiable with respect to `a`, by implicit reparametrisation.
    """,
    a=_SHAPE,
)  # fmt: skip

loggamma = distribution(
    "loggamma", _loggamma,
    "Draw logarithms of gamma numbers, accurate also if the numbers themselves underflow.",
    a=_SHAPE,
)  # fmt: skip


def _beta(key: Any, a: Any, b: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    x = _loggamma(first, a, shape=shape, dtype=dtype)
    y = _loggamma(second, b, shape=shape, dtype=dtype)
    greater = jnp.maximum(x, y)
    x, y = lax.exp(x - greater), lax.exp(y - greater)
    return x / (x + y)


beta = distribution(
    "beta", _beta,
    "Draw beta numbers, with density proportional to `x**(a - 1) (1 - x)**(b - 1)` between 0 and 1.",
    a=in_dtype("not negative"),
    b=in_dtype("not negative"),
)  # fmt: skip


def _chisquare(key: Any, df: Any, *, shape: Any, dtype: Any) -> Any:
    return 2 * _gamma(key, df / 2, shape=shape, dtype=dtype)


chisquare = distribution(
    "chisquare", _chisquare,
    "Draw chi-squared numbers, twice gamma numbers of `df / 2`.",
    df=in_dtype("degrees of freedom, not negative"),
)  # fmt: skip


def _f(key: Any, dfnum: Any, dfden: Any, *, shape: Any, dtype: Any) -> Any:
    """Draw by differences of logarithms, as chi-squared numbers of few degrees of freedom underflow."""
    below, above = two_keys(key)
    numerator = _loggamma(above, dfnum / 2, shape=shape, dtype=dtype) - lax.log(dfnum)
    return lax.exp(numerator - (_loggamma(below, dfden / 2, shape=shape, dtype=dtype) - lax.log(dfden)))


f = distribution(
    "f", _f,
    "Draw numbers of the F distribution: the ratio of two chi-squared numbers, each by its degrees of freedom.",
    dfnum=in_dtype("degrees of freedom of the numerator, not negative"),
    dfden=in_dtype("degrees of freedom of the denominator, not negative"),
)  # fmt: skip


def _t(key: Any, df: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    half = df / 2
    normal = standard_normal(first, shape=shape, dtype=dtype)
    logs = _loggamma(second, half, shape=shape, dtype=dtype)  # the numbers underflow if df is small
    return normal * lax.exp((lax.log(half) - logs) / 2)


t = distribution(
    "t", _t,
    "Draw numbers of Student's t distribution, with density proportional to `(1 + t**2 / df)**(-(df + 1) / 2)`.",
    df=in_dtype("degrees of freedom, not negative"),
)  # fmt: skip


@draws
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw Dirichlet vectors, with nonnegative elements that sum to 1.

    Args:
        key: a key.
        alpha: concentration parameters of shape (..., n), not negative.
        shape: shape of the batch, to which the leading axes of `alpha` broadcast; by default these axes.
        dtype: a floating-point dtype.

    Returns:
        An array of shape (*shape, n).

    Raises:
        TypeError: if `key` is not a key, or `alpha` is not an array.
        ValueError: if `alpha` is a scalar or negative, or the dtype or the shape is invalid.
    """
    dtype = float_dtype("dirichlet", dtype)
    alpha = converted(parameter("dirichlet", "alpha", alpha), dtype)
    if alpha.ndim < 1:
        raise ValueError(f"dirichlet: alpha must have at least one axis, got shape {alpha.shape}")
    shape = joint_shape("dirichlet", shape, {"alpha": alpha.shape[:-1]}) + alpha.shape[-1:]
    return draw(_dirichlet, size_of(shape), key, alpha, shape=shape, dtype=dtype)


def _dirichlet(key: Any, alpha: Any, *, shape: Any, dtype: Any) -> Any:
    return nn.softmax(_loggamma(key, alpha, shape=shape, dtype=dtype), -1)


@draws
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw numbers with density proportional to `exp(-abs(x)**p)`.

    Args:
        key: a key.
        p: the exponent, a positive number.
        shape: shape of the result.
        dtype: a floating-point dtype.

    Raises:
        TypeError: if `key` is not a key, or `p` is not a number.
        ValueError: if the dtype or the shape is invalid, or `p` is not positive.
    """
    name = "generalized_normal"
    dtype, p, shape = float_dtype(name, dtype), positive(name, "p", p), shape_argument(name, shape)
    return draw(_generalized_normal, size_of(shape), key, p, shape=shape, dtype=dtype)


def _generalized_normal(key: Any, p: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    logs = _loggamma(first, 1 / p, shape=shape, dtype=dtype)  # the numbers underflow if p is large
    return signs(second, shape=shape, dtype=dtype) * lax.exp(logs * (1 / p))


@draws
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None) -> Any:
    """Draw vectors uniformly in the unit ball of the p-norm (Barthe, Guedon, Mendelson and Naor 2005).

    Args:
        key: a key.
        d: the dimension.
        p: exponent of the norm, a positive number.
        shape: shape of the batch.
        dtype: a floating-point dtype.

    Returns:
        An array of shape (*shape, d).

    Raises:
        TypeError: if `key` is not a key, `d` is not an integer, or `p` is not a number.
        ValueError: if the dtype or the shape is invalid, `d` is negative, or `p` is not positive.
    """
    dtype, p = float_dtype("ball", dtype), positive("ball", "p", p)
    (d,) = shape_argument("ball", (known_integer("ball", "d", d),), "d")
    shape = shape_argument("ball", shape)
    return draw(_ball, size_of((*shape, d)), key, p, d=d, shape=shape, dtype=dtype)


def _ball(key: Any, p: Any, *, d: int, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    x = _generalized_normal(first, p, shape=(*shape, d), dtype=dtype)
    e = standard_exponential(second, shape=shape, dtype=dtype)
    return x / ((jnp.sum(jnp.abs(x) ** p, -1) + e) ** (1 / p))[..., None]
