"""The gamma distribution and its kin: gamma loggamma beta chisquare dirichlet f t generalized_normal ball."""

from __future__ import annotations

from typing import Any

import corejax.nn as nn
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_random.distributions.arguments import (
    common_shape,
    converted,
    float_dtype,
    joint_shape,
    known_integer,
    parameter,
    positive,
    shape_argument,
    single_key,
    spread,
)
from corejax_random.distributions.drawing import draw, size_of, two_keys
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.quantiles import standard_exponential
from corejax_random.distributions.random_gamma import random_gamma_p
from corejax_random.distributions.repeating import as_draw
from corejax_random.distributions.uniform import signs


@as_draw
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Gamma numbers, with density proportional to `x**(a - 1) exp(-x)` for positive x.

    Differentiable by `a`: numbers move as their quantiles do.

    Args:
        key: a key.
        a: the shape parameter, not negative.
        shape: of the result, to which `a` broadcasts; by default its own.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or `a` is no number.
        ValueError: the dtype or the shape does not fit, or `a` is negative.
    """
    return _gamma("gamma", key, a, shape, dtype, out_sharding, log_space=False)


@as_draw
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Logarithms of the numbers that `gamma` draws, exact also where these are too small for the dtype.

    Args, Raises: as `gamma`.
    """
    return _gamma("loggamma", key, a, shape, dtype, out_sharding, log_space=True)


def _gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any, out_sharding: Any, *, log_space: bool) -> Any:
    key = single_key(name, key)
    dtype = float_dtype(name, dtype)
    a = converted(parameter(name, "a", a), dtype)
    shape = common_shape(name, shape, a=a)
    return lax.place(
        name, draw(_of_shape, size_of(shape), key, a, shape=shape, dtype=dtype, log_space=log_space), out_sharding
    )


def _of_shape(key: Any, a: Any, *, shape: Any, dtype: Any, log_space: bool) -> Any:
    a = spread(lax.convert_element_type(a, dtype), shape)
    return random_gamma_p.bind(key, a, log_space=log_space)


def _draw(name: str, body: Any, key: Any, shape: Any, dtype: Any, out_sharding: Any, **given: Any) -> Any:
    """A draw from a distribution of parameters that are not negative, and broadcast."""
    key = single_key(name, key)
    dtype = float_dtype(name, dtype)
    found = {argument: parameter(name, argument, x, dtype) for argument, x in given.items()}
    shape = common_shape(name, shape, **found)
    return lax.place(name, draw(body, size_of(shape), key, *found.values(), shape=shape, dtype=dtype), out_sharding)


@as_draw
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Beta numbers, with density proportional to `x**(a - 1) (1 - x)**(b - 1)` between 0 and 1.

    Args:
        key: a key.
        a, b: not negative.
        shape: of the result, to which the parameters broadcast; by default what they broadcast to.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or a parameter is no number.
        TypePromotionError: a parameter is of a wider dtype.
        ValueError: the dtype or the shape does not fit, or a parameter is negative.
    """
    return _draw("beta", _beta, key, shape, dtype, out_sharding, a=a, b=b)


def _beta(key: Any, a: Any, b: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    x = _of_shape(first, a, shape=shape, dtype=dtype, log_space=True)
    y = _of_shape(second, b, shape=shape, dtype=dtype, log_space=True)
    greater = jnp.maximum(x, y)
    x, y = lax.exp(x - greater), lax.exp(y - greater)
    return x / (x + y)


@as_draw
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Chi-squared numbers: twice gamma numbers of `df / 2`.

    Args:
        key: a key.
        df: degrees of freedom, not negative.
        shape: of the result, to which `df` broadcasts; by default its own.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or `df` is no number.
        TypePromotionError: `df` is of a wider dtype.
        ValueError: the dtype or the shape does not fit, or `df` is negative.
    """
    return _draw("chisquare", _chisquare, key, shape, dtype, out_sharding, df=df)


def _chisquare(key: Any, df: Any, *, shape: Any, dtype: Any) -> Any:
    return 2 * _of_shape(key, df / 2, shape=shape, dtype=dtype, log_space=False)


@as_draw
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of the F distribution: the ratio of two chi-squared numbers, each by its degrees of freedom.

    Args:
        key: a key.
        dfnum, dfden: degrees of freedom of numerator and denominator, not negative.
        shape: of the result, to which the parameters broadcast; by default what they broadcast to.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or a parameter is no number.
        TypePromotionError: a parameter is of a wider dtype.
        ValueError: the dtype or the shape does not fit, or a parameter is negative.
    """
    return _draw("f", _f, key, shape, dtype, out_sharding, dfnum=dfnum, dfden=dfden)


def _f(key: Any, dfnum: Any, dfden: Any, *, shape: Any, dtype: Any) -> Any:
    """Differences of logarithms, for chi-squared numbers of few degrees of freedom underflow."""
    below, above = two_keys(key)
    numerator = _of_shape(above, dfnum / 2, shape=shape, dtype=dtype, log_space=True) - lax.log(dfnum)
    return lax.exp(numerator - (_of_shape(below, dfden / 2, shape=shape, dtype=dtype, log_space=True) - lax.log(dfden)))


@as_draw
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of Student's t distribution, with density proportional to `(1 + t**2 / df)**(-(df + 1) / 2)`.

    Args:
        key: a key.
        df: degrees of freedom, not negative.
        shape: of the result, to which `df` broadcasts; by default its own.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or `df` is no number.
        TypePromotionError: `df` is of a wider dtype.
        ValueError: the dtype or the shape does not fit, or `df` is negative.
    """
    return _draw("t", _t, key, shape, dtype, out_sharding, df=df)


def _t(key: Any, df: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    half = df / 2
    normal = standard_normal(first, shape=shape, dtype=dtype)
    logs = _of_shape(second, half, shape=shape, dtype=dtype, log_space=True)  # the numbers underflow if df is small
    return normal * lax.exp((lax.log(half) - logs) / 2)


@as_draw
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Dirichlet vectors, of numbers that are not negative and add up to 1.

    Args:
        key: a key.
        alpha: of shape (..., n), not negative.
        shape: of the batch, to which the leading axes of `alpha` broadcast; by default these.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Returns:
        Of shape (*shape, n).

    Raises:
        TypeError: it is no key, or `alpha` is no array.
        ValueError: `alpha` is a scalar or negative, or the dtype or the shape does not fit.
    """
    key = single_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    alpha = converted(parameter("dirichlet", "alpha", alpha), dtype)
    if alpha.ndim < 1:
        raise ValueError(f"dirichlet: alpha has an axis at least, got shape {alpha.shape}")
    shape = joint_shape("dirichlet", shape, {"alpha": alpha.shape[:-1]}) + alpha.shape[-1:]
    return lax.place("dirichlet", draw(_dirichlet, size_of(shape), key, alpha, shape=shape, dtype=dtype), out_sharding)


def _dirichlet(key: Any, alpha: Any, *, shape: Any, dtype: Any) -> Any:
    return nn.softmax(_of_shape(key, alpha, shape=shape, dtype=dtype, log_space=True), -1)


@as_draw
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers with density proportional to `exp(-abs(x)**p)`.

    Args:
        key: a key.
        p: a positive number.
        shape: of the result.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: it is no key, or `p` is no number.
        ValueError: the dtype or the shape does not fit, or `p` is not positive.
    """
    name = "generalized_normal"
    key = single_key(name, key)
    dtype = float_dtype(name, dtype)
    p = positive(name, "p", p)
    shape = shape_argument(name, shape)
    return lax.place(name, draw(_generalized_normal, size_of(shape), key, p, shape=shape, dtype=dtype), out_sharding)


def _generalized_normal(key: Any, p: Any, *, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    logs = _of_shape(first, 1 / p, shape=shape, dtype=dtype, log_space=True)  # the numbers underflow if p is large
    return signs(second, shape=shape, dtype=dtype) * lax.exp(logs * (1 / p))


@as_draw
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Vectors distributed uniformly in the unit ball of the p-norm (Barthe, Guedon, Mendelson and Naor 2005).

    Args:
        key: a key.
        d: the dimension.
        p: of the norm, a positive number.
        shape: of the batch.
        dtype: a floating-point dtype.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Returns:
        Of shape (*shape, d).

    Raises:
        TypeError: it is no key, `d` no integer, or `p` no number.
        ValueError: the dtype or the shape does not fit, `d` is negative, or `p` not positive.
    """
    key = single_key("ball", key)
    dtype, p = float_dtype("ball", dtype), positive("ball", "p", p)
    (d,) = shape_argument("ball", (known_integer("ball", "d", d),), "d")
    shape = shape_argument("ball", shape)
    return lax.place("ball", draw(_ball, size_of((*shape, d)), key, p, d=d, shape=shape, dtype=dtype), out_sharding)


def _ball(key: Any, p: Any, *, d: int, shape: Any, dtype: Any) -> Any:
    first, second = two_keys(key)
    x = _generalized_normal(first, p, shape=(*shape, d), dtype=dtype)
    e = standard_exponential(second, shape=shape, dtype=dtype)
    return x / ((jnp.sum(jnp.abs(x) ** p, -1) + e) ** (1 / p))[..., None]
