"""Derivatives by parameters: of what is scaled and moved, and implicit ones of the gamma distribution."""

import numpy as np
import pytest
import scipy.stats as stats

import corejax
import corejax.numpy as jnp
import corejax.random as random

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
