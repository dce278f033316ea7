"""The gamma distribution and its kin: gamma loggamma beta chisquare dirichlet f t generalized_normal ball."""

from __future__ import annotations

from typing import Any

import corejax.nn as nn
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_random.distributions.arguments import (
    converted,
    float_dtype,
    joint_shape,
    known_integer,
    parameter,
    positive,
    spread,
)
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.quantiles import standard_exponential
from corejax_random.distributions.random_gamma import random_gamma_p
from corejax_random.distributions.rows import Parameter, distribution, draws, in_dtype
from corejax_random.distributions.uniform import signs
from corejax_random.keys.functions import shape_argument


def _gamma(key: Any, a: Any, *, shape: Any, dtype: Any) -> Any:
    return random_gamma_p.bind(key, spread(lax.convert_element_type(a, dtype), shape), log_space=False)


def _loggamma(key: Any, a: Any, *, shape: Any, dtype: Any) -> Any:
    return random_gamma_p.bind(key, spread(lax.convert_element_type(a, dtype), shape), log_space=True)


_SHAPE = Parameter(
    "the shape parameter, not negative",
    lambda name, argument, a, dtype: converted(parameter(name, argument, a), dtype),
)

gamma = distribution(
    "gamma", _gamma,
    """Draw gamma numbers, with density proportional to `x**(a - 1) exp(-x)` for positive x.

    Differentiable by `a`: numbers move as their quantiles do.
    """,
    a=_SHAPE,
)  # fmt: skip

loggamma = distribution(
    "loggamma", _loggamma,
    "Draw logarithms of the numbers that `gamma` draws, exact also if these are too small for the dtype.",
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
    """Differences of logarithms, for chi-squared numbers of few degrees of freedom underflow."""
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
    """Draw Dirichlet vectors, of numbers that are not negative and add up to 1.

    Args:
        alpha: of shape (..., n), not negative.
        shape: of the batch, to which the leading axes of `alpha` broadcast; by default these.
        dtype: a floating-point dtype.

    Returns:
        Of shape (*shape, n).

    Raises:
        TypeError: it is no key, or `alpha` is no array.
        ValueError: `alpha` is a scalar or negative, or the dtype or the shape does not fit.
    """
    dtype = float_dtype("dirichlet", dtype)
    alpha = converted(parameter("dirichlet", "alpha", alpha), dtype)
    if alpha.ndim < 1:
        raise ValueError(f"dirichlet: alpha has an axis at least, got shape {alpha.shape}")
    shape = joint_shape("dirichlet", shape, {"alpha": alpha.shape[:-1]}) + alpha.shape[-1:]
    return draw(_dirichlet, size_of(shape), key, alpha, shape=shape, dtype=dtype)


def _dirichlet(key: Any, alpha: Any, *, shape: Any, dtype: Any) -> Any:
    return nn.softmax(_loggamma(key, alpha, shape=shape, dtype=dtype), -1)


@draws
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw numbers with density proportional to `exp(-abs(x)**p)`.

    Args:
        p: a positive number.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        TypeError: it is no key, or `p` is no number.
        ValueError: the dtype or the shape does not fit, or `p` is not positive.
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
        d: the dimension.
        p: of the norm, a positive number.
        shape: of the batch.
        dtype: a floating-point dtype.

    Returns:
        Of shape (*shape, d).

    Raises:
        TypeError: it is no key, `d` no integer, or `p` no number.
        ValueError: the dtype or the shape does not fit, `d` is negative, or `p` not positive.
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
