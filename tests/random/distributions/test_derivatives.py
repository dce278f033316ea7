"""Derivatives by parameters: of what is scaled and moved, and implicit ones of the gamma distribution."""

import numpy as np
import pytest
import scipy.special as special
import scipy.stats as stats

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax import lax
from corejax.extend import dtypes

jax = pytest.importorskip("jax")

KEY, JAX_KEY = random.key(5), jax.random.key(5)
BY_PARAMETER = {
    "uniform": (lambda r, key, a: r.uniform(key, (4,), minval=-a, maxval=2 * a), 1e-6),
    "lognormal": (lambda r, key, a: r.lognormal(key, a, (4,)), 1e-5),
    "truncated_normal": (lambda r, key, a: r.truncated_normal(key, -a, a, (4,)), 1e-4),
    "weibull_min": (lambda r, key, a: r.weibull_min(key, a, a, (4,)), 1e-5),
}


@pytest.mark.parametrize("name", BY_PARAMETER)
def test_as_jax(name):
    draw, error = BY_PARAMETER[name]
    got = corejax.jacfwd(lambda a: draw(random, KEY, a))(1.3)
    wanted = jax.jacfwd(lambda a: draw(jax.random, JAX_KEY, a))(1.3)
    np.testing.assert_allclose(got, wanted, rtol=error, atol=error)


def test_quantiles_stay():
    """The derivative of a gamma number by `a` is that of its quantile function, at its quantile."""
    a = np.float32([0.5, 2.0, 7.0])
    x = np.asarray(random.gamma(KEY, a), np.float64)
    slopes = corejax.grad(lambda a: jnp.sum(random.gamma(KEY, a)))(a)
    quantiles, step = stats.gamma(a).cdf(x), 1e-3
    wanted = (stats.gamma(a + step).ppf(quantiles) - stats.gamma(a - step).ppf(quantiles)) / (2 * step)
    np.testing.assert_allclose(slopes, wanted, rtol=1e-3)


def test_logarithms_move_as_numbers_do():
    a = np.float32([0.5, 2.0])
    slopes, logs = (corejax.grad(lambda a, f=f: jnp.sum(f(KEY, a)))(a) for f in (random.gamma, random.loggamma))
    np.testing.assert_allclose(logs, slopes / random.gamma(KEY, a), rtol=1e-4)


def test_nested():
    def loss(a, key):
        return jnp.mean(random.loggamma(key, a, (3,)) * random.normal(key, (3,)))

    keys = random.split(KEY, 2)
    each = [corejax.value_and_grad(loss)(1.5, key) for key in keys]
    values, slopes = corejax.vmap(corejax.value_and_grad(loss), (None, 0))(1.5, keys)
    np.testing.assert_allclose(values, [value for value, _ in each], rtol=1e-4)
    np.testing.assert_allclose(slopes, [slope for _, slope in each], rtol=1e-4)
    np.testing.assert_allclose(corejax.jit(corejax.grad(loss))(1.5, keys[0]), slopes[0], rtol=1e-4)


# -- implicit derivatives over the whole range of parameters ------------------------------------------------------


def _slope_of_logarithm(a, log_x):
    """d log x / d a at a fixed quantile, of Gamma(a, 1), by differences of SciPy's functions."""
    if log_x < -60:  # where the probability of less is x**a / gamma(a + 1)
        return (special.digamma(a + 1) - log_x) / a
    x, step = np.exp(log_x), 1e-5 * a
    by_tail = special.gammainc if special.gammainc(a, x) < 0.5 else lambda a, x: -special.gammaincc(a, x)
    by_a = (by_tail(a + step, x) - by_tail(a - step, x)) / (2 * step)
    return -by_a / np.exp(a * np.log(x) - x - special.gammaln(a))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_slopes_of_gamma_samples(dtype):
    """Run and compiled, forwards, backwards and mapped."""
    error = 8 * float(dtypes.finfo(dtypes.dtype(dtype)).eps) + 1e-6
    with corejax.enable_x64(dtype == "float64"):
        a = jnp.asarray([1e-6, 1e-3, 0.01, 0.05, 0.3, 1.0, 2.5, 40.0, 1e3, 3e4], dtype)[
            2 if dtype == "float16" else 0 :
        ]
        key, one = random.key(7), jnp.ones_like(a)

        def draw(a):
            return random.loggamma(key, a, dtype=dtype)

        logs, slopes = corejax.jvp(draw, (a,), (one,))
        wanted = [_slope_of_logarithm(float(x), float(y)) for x, y in zip(a, logs, strict=True)]
        relative = np.maximum(1, np.asarray(logs, np.float64))  # what the rounding of large samples adds
        for got in (slopes, corejax.vjp(draw, a)[1](one)[0], *_compiled_slopes(draw, a, one, dtype)):
            assert np.max(np.abs(np.asarray(got, np.float64) / wanted - 1) / relative) < error
        mapped = corejax.vmap(corejax.grad(draw))(a[-3:])
        each = [corejax.grad(draw)(x) for x in a[-3:]]
        np.testing.assert_allclose(*(np.asarray(x, np.float64) for x in (mapped, each)), rtol=error)


def _compiled_slopes(draw, a, one, dtype):
    """With one dtype, for such programs take seconds to compile."""
    return [corejax.jit(lambda a: corejax.jvp(draw, (a,), (one,)))(a)[1]] if dtype == "float32" else []


def test_slopes_of_subnormal_samples():
    """Compiled, whether such a number counts as zero differs from place to place."""
    x = np.float32([0, 1e-45, 1e-40, 1.1e-38, 1.2e-38, 1e-30])
    a = np.full(x.shape, 0.1, np.float32)
    wanted = np.where(x < 1.2e-38, 0, x * (special.digamma(1.1) - np.log(np.maximum(x, 1e-45))) / 0.1)
    np.testing.assert_allclose(corejax.jit(lax.random_gamma_grad)(a, x), wanted, rtol=1e-5)
    assert np.isfinite(corejax.jit(lax.igamma_grad_a)(a, x)).all()


# The mean of a function of the draws, and its derivative by the parameter.
MEANS = {
    "gamma 1e-3": (lambda key, a, s: random.gamma(key, a, s), 1e-3, lambda a: a),
    "gamma 1e5": (lambda key, a, s: random.gamma(key, a, s), 1e5, lambda a: a),
    "loggamma": (lambda key, a, s: random.loggamma(key, a, s), 1e-4, special.digamma),
    "chisquare": (lambda key, a, s: random.chisquare(key, a, s), 0.02, lambda a: a),
    "beta by a": (lambda key, a, s: random.beta(key, a, 0.01, s), 0.01, lambda a: a / (a + 0.01)),
    "beta by b": (lambda key, b, s: random.beta(key, 0.05, b, s), 0.02, lambda b: 0.05 / (b + 0.05)),
    "dirichlet": (lambda key, a, s: random.dirichlet(key, a * np.float32([1, 2]) + 0.001, s)[:, 0], 0.01,
                  lambda a: (a + 0.001) / (3 * a + 0.002)),
    "f": (lambda key, a, s: random.f(key, 20.0, a, s), 30.0, lambda a: a / (a - 2)),
    "f of few degrees": (lambda key, a, s: jnp.log(random.f(key, 0.5, a, s)), 0.3,
                         lambda a: -special.digamma(a / 2) + np.log(a / 2) + special.digamma(0.25) - np.log(0.25)),
    "t": (lambda key, a, s: jnp.log(jnp.abs(random.t(key, a, s))), 0.2,
          lambda a: (np.log(a / 2) - special.digamma(a / 2)) / 2),
    "generalized_normal": (lambda key, p, s: jnp.abs(random.generalized_normal(key, p, s)), 1e3,
                           lambda p: special.gamma(2 / p) / special.gamma(1 / p)),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANS)
def test_slopes_of_means(name):
    """Within five standard errors, and finite in reverse mode, also where samples underflow."""
    draw, at, mean = MEANS[name]
    one = lambda a: draw(KEY, a, (500,))
    slopes = np.asarray(corejax.jvp(one, (np.float32(at),), (np.float32(1),))[1], np.float64)
    step = 1e-5 * at
    wanted = (mean(at + step) - mean(at - step)) / (2 * step)
    assert np.isfinite(slopes).all()
    assert abs(slopes.mean() - wanted) < 5 * slopes.std() / np.sqrt(500) + 1e-4 * abs(wanted)
    np.testing.assert_allclose(corejax.grad(lambda a: one(a).mean())(np.float32(at)), slopes.mean(), rtol=1e-3)


@pytest.mark.slow
def test_slope_of_many_samples_that_underflow():
    slope = corejax.grad(lambda a: jnp.mean(random.gamma(random.key(1), a, shape=(100000,))))(jnp.float32(0.1))
    np.testing.assert_allclose(slope, 1, atol=0.02)


BY_QUANTILE = {
    "truncated_normal in the tail": (lambda a: random.truncated_normal(KEY, a, a + 1, (20,)), 8.0),
    "truncated_normal by its upper bound": (lambda a: random.truncated_normal(KEY, 6.0, a, (20,)), 6.5),
    "truncated_normal without bound": (lambda a: random.truncated_normal(KEY, a, np.inf, (20,)), 30.0),
    "truncated_normal in the left tail": (lambda a: random.truncated_normal(KEY, -np.inf, a, (20,)), -9.0),
    "truncated_normal beside the tail": (lambda a: random.truncated_normal(KEY, a, np.inf, (20,)), -1.0),
    "triangular by its mode": (lambda a: random.triangular(KEY, 0.0, a, 1.0, (20,)), 0.3),
    "triangular by its end": (lambda a: random.triangular(KEY, 0.0, 0.0, a, (20,)), 1e-30),
    "weibull_min": (lambda a: random.weibull_min(KEY, 2.0, a, (20,)), 50.0),
    "rayleigh": (lambda a: random.rayleigh(KEY, a, (20,)), 1e-30),
    "pareto": (lambda a: random.pareto(KEY, a, (20,)), 0.5),
    "lognormal": (lambda a: random.lognormal(KEY, a, (20,)), 3.0),
    "wald": (lambda a: random.wald(KEY, a, (20,)), 1e6),
    "uniform": (lambda a: random.uniform(KEY, (20,), minval=-a, maxval=a), 1e300),
}


@pytest.mark.parametrize("name", BY_QUANTILE)
def test_slopes_of_quantiles(name):
    """Against differences of draws with the same key."""
    draw, at = BY_QUANTILE[name]
    with corejax.enable_x64(True):
        step = 1e-6 * abs(at)
        wanted = (np.asarray(draw(at + step)) - np.asarray(draw(at - step))) / (2 * step)
        np.testing.assert_allclose(corejax.jvp(draw, (at,), (1.0,))[1], wanted, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(corejax.grad(lambda a: draw(a).mean())(at), wanted.mean(), rtol=1e-4, atol=1e-7)


def test_slopes_at_a_corner():
    """The mode at an end: the branch that is not taken has an infinite slope."""
    for mode in (0.0, 1.0):
        assert np.isfinite(corejax.grad(lambda m: random.triangular(KEY, 0.0, m, 1.0, (20,)).sum())(mode))
