"""Draws are distributed as they say: Kolmogorov-Smirnov, chi-squared and moments of fixed seeds, by SciPy."""

import numpy as np
import pytest
import scipy.stats as stats

import corejax.random as random

KEY = random.key(7)
COUNT = 500  # run eagerly, without a compiler
LEAST = 1e-3  # a right sampler is below it with one seed of a thousand

CONTINUOUS = {
    "uniform": ((), stats.uniform()),
    "normal": ((), stats.norm()),
    "cauchy": ((), stats.cauchy()),
    "exponential": ((), stats.expon()),
    "laplace": ((), stats.laplace()),
    "logistic": ((), stats.logistic()),
    "gumbel": ((), stats.gumbel_r()),
    "maxwell": ((), stats.maxwell()),
    "gamma": ((0.7,), stats.gamma(0.7)),
    "loggamma": ((2.5,), stats.loggamma(2.5)),
    "beta": ((2.0, 0.5), stats.beta(2.0, 0.5)),
    "chisquare": ((3.0,), stats.chi2(3.0)),
    "f": ((3.0, 8.0), stats.f(3.0, 8.0)),
    "t": ((4.0,), stats.t(4.0)),
    "pareto": ((2.5,), stats.pareto(2.5)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2.0)),
    "triangular": ((0.0, 1.0, 4.0), stats.triang(0.25, scale=4.0)),
    "wald": ((1.5,), stats.invgauss(1.5)),
    "weibull_min": ((2.0, 1.5), stats.weibull_min(1.5, scale=2.0)),
    "lognormal": ((0.5,), stats.lognorm(0.5)),
    "generalized_normal": ((1.5,), stats.gennorm(1.5)),
    "truncated_normal": ((-1.0, 2.0), stats.truncnorm(-1.0, 2.0)),
}
DISCRETE = {
    "poisson": ((4.0,), stats.poisson(4.0)),
    "binomial": ((12, 0.3), stats.binom(12, 0.3)),
    "geometric": ((0.3,), stats.geom(0.3)),
    "randint": ((2, 9), stats.randint(2, 9)),
    "bernoulli": ((0.3,), stats.bernoulli(0.3)),
}


def _draw(name, args):
    function = getattr(random, name)
    drawn = function(KEY, (COUNT,), *args) if name == "randint" else function(KEY, *args, shape=(COUNT,))
    return np.asarray(drawn, np.float64)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    args, distribution = CONTINUOUS[name]
    assert stats.kstest(_draw(name, args), distribution.cdf).pvalue > LEAST


def test_the_test_can_fail():
    assert stats.kstest(_draw("normal", ()), stats.norm(0.3).cdf).pvalue < LEAST


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    """Counts of each number, those that are expected less than five times together."""
    args, distribution = DISCRETE[name]
    numbers = np.arange(0, 30)
    expected = COUNT * distribution.pmf(numbers)
    counts = np.array([np.sum(_draw(name, args) == n) for n in numbers])
    often = expected >= 5
    wanted, got = (np.append(x[often], COUNT - x[often].sum()) for x in (expected, counts))
    kept = wanted > 1e-6
    assert stats.chisquare(got[kept], wanted[kept] * got[kept].sum() / wanted[kept].sum()).pvalue > LEAST
    assert got[~kept].sum() == 0


def test_moments_of_vectors():
    shares = np.asarray(random.dirichlet(KEY, np.float32([1.0, 2.0, 3.0]), (COUNT,)))
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(shares.mean(0), np.array([1, 2, 3]) / 6, atol=0.03)
    inside = np.asarray(random.ball(KEY, 3, shape=(100,)))
    radius = np.linalg.norm(inside, axis=-1)
    assert radius.max() < 1 and stats.kstest(radius**3, stats.uniform().cdf).pvalue > LEAST
    counts = np.asarray(random.multinomial(KEY, 10.0, np.float32([0.2, 0.3, 0.5]), shape=(40, 3)))
    assert (counts.sum(-1) == 10).all()
    np.testing.assert_allclose(counts.mean(0), [2, 3, 5], atol=0.8)
    drawn = np.asarray(random.categorical(KEY, np.log(np.float32([0.2, 0.3, 0.5])), shape=(160,)))
    assert stats.chisquare(np.bincount(drawn, minlength=3), 160 * np.array([0.2, 0.3, 0.5])).pvalue > LEAST


def test_bits_are_even():
    """Each bit of a word, and each pair of neighbours, of many keys."""
    words = np.asarray(random.bits(KEY, (256,)))
    ones = np.unpackbits(words.view(np.uint8)).reshape(256, 32)
    assert stats.chisquare([ones.sum(), ones.size - ones.sum()]).pvalue > LEAST
    per_place = ones.sum(0)
    assert stats.chisquare(per_place).pvalue > LEAST


@pytest.mark.parametrize("name", ["choice", "permutation"])
def test_orders_are_even(name):
    """All orders of three are drawn equally often."""
    keys = random.split(KEY, 120)
    counts = {}
    for key in keys:
        drawn = random.permutation(key, 3) if name == "permutation" else random.choice(key, 3, (3,), replace=False)
        counts[tuple(np.asarray(drawn))] = counts.get(tuple(np.asarray(drawn)), 0) + 1
    assert len(counts) == 6 and stats.chisquare(list(counts.values())).pvalue > LEAST
