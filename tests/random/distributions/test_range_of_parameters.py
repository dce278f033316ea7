"""Draws of tiny, huge and boundary parameters, against SciPy's distributions: few run, many compiled (slow)."""

import math

import numpy as np
import pytest
import scipy.stats as stats

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax.extend import dtypes

FEW, MANY = 500, 100_000  # the first are drawn eagerly, without a compiler
LARGEST = 1.95  # sqrt(n) times the Kolmogorov-Smirnov statistic, exceeded by a right sampler in 0.1% of seeds
INF = math.inf

CONTINUOUS = {
    "truncated_normal": (
        [(-1, 2), (0, 1), (2, INF), (3, 4), (4, 5), (-4, -3.9), (5, 6), (8, 9), (5, INF), (-INF, -5), (30, INF),
         (-9, -8), (-INF, INF), (100, 101), (1e4, INF), (-5, 20)],
        stats.truncnorm,
    ),
    "gamma": ([(a,) for a in (1e-30, 1e-4, 0.01, 0.5, 1, 10, 1e4, 1e8)], stats.gamma),
    "loggamma": ([(a,) for a in (1e-30, 1e-8, 1e-4, 0.01, 0.5, 1, 10, 1e4, 1e6)], stats.loggamma),
    "chisquare": ([(a,) for a in (1e-3, 0.1, 1, 100, 1e7, 1e10)], stats.chi2),
    "beta": ([(a, b) for a in (1e-6, 0.01, 1, 100, 1e4) for b in (1e-3, 0.1, 3, 1e4)], stats.beta),
    "t": ([(a,) for a in (0.01, 0.1, 1, 3, 100, 1e7, 1e10)], stats.t),
    "f": ([(a, b) for a in (0.01, 1, 1e7) for b in (0.1, 3, 1e7)], stats.f),
    "generalized_normal": ([(p,) for p in (0.05, 0.5, 2, 10, 100)], stats.gennorm),
    "lognormal": ([(s,) for s in (1e-6, 0.5, 10)], stats.lognorm),
    "rayleigh": ([(s,) for s in (1e-30, 1, 1e30)], lambda s: stats.rayleigh(scale=s)),
    "pareto": ([(b,) for b in (0.1, 2, 1e4)], stats.pareto),
    "wald": ([(m,) for m in (1e-6, 0.5, 10, 1e4, 1e10)], stats.invgauss),
    "weibull_min": ([(2, 0.1), (1e-30, 1.5), (1e30, 1.5), (2, 100)], lambda s, c: stats.weibull_min(c, scale=s)),
    "triangular": (
        [(0, 1, 4), (0, 0, 1), (0, 1, 1), (-1e30, 0, 1e30), (-1e-30, 0, 1e-30), (0, 1e-20, 1e-20)],
        lambda left, mode, right: stats.triang((mode - left) / (right - left), left, right - left),
    ),
    "uniform": ([(0, 1), (-3e38, 3e38), (0, 1e-30), (1, 1.5)], lambda low, high: stats.uniform(low, high - low)),
    "normal": ([()], stats.norm),
    "logistic": ([()], stats.logistic),
    "cauchy": ([()], stats.cauchy),
    "maxwell": ([()], stats.maxwell),
}  # fmt: skip
DISCRETE = {
    "poisson": ([(m,) for m in (0, 1e-3, 3, 12, 1e3, 3e4, 4e4, 1e7, 1e9)], stats.poisson),
    "binomial": (
        [(1, 0.5), (10, 1), (1e3, 0.02), (1e5, 0.3), (1e6, 0.3), (1e8, 1e-6), (1e9, 1e-6), (1e9, 1e-9), (1e9, 0.51),
         (1e12, 1e-9)],
        lambda n, p: stats.binom(n, float(np.float32(p))),
    ),
    "geometric": ([(p,) for p in (1, 0.5, 1e-3, 1e-7)], stats.geom),
    "randint": ([(0, 10), (0, 10**9), (-(2**30), 2**31 - 1), (-(2**31), 2**31 - 1)], stats.randint),
}  # fmt: skip
# Whose uniform numbers have some bits: the tails begin sooner.
NARROW = [
    ("truncated_normal", (3, 4)),
    ("truncated_normal", (2, INF)),
    ("truncated_normal", (-INF, INF)),
    ("rayleigh", (1,)),
]
NARROW += [("logistic", ()), ("wald", (10,)), ("generalized_normal", (100,)), ("uniform", (-6e4, 6e4))]
# Where float32 is too coarse for SciPy's moments, or for the width of the distribution.
NO_MOMENTS = {"pareto", "t", "f", "lognormal", "wald", "gamma", "loggamma", "uniform"}


def _drawn(name, args, count, seed, dtype=None):
    function, key = getattr(random, name), random.key(seed)
    args = args if name == "randint" else tuple(map(float, args))
    given = {} if dtype is None else {"dtype": dtype}
    if name in ("randint", "uniform"):
        return np.asarray(function(key, (count,), **dict(zip(("minval", "maxval"), args, strict=True)), **given))
    return np.asarray(function(key, *args, shape=(count,), **given))


def _assert_follows(x, distribution, *, step=0.0, coarse=0.0):
    """Compare the empirical distribution function with another one.

    Args:
        x: the draws.
        distribution: SciPy's.
        step: between the numbers of a discrete distribution.
        coarse: how much the functions may differ besides.
    """
    assert not np.isnan(x.astype(np.float64)).any()
    error, least, most = 0.0, 0.0, INF
    if x.dtype.kind not in "iu":
        info = dtypes.finfo(x.dtype)
        error, least, most = float(info.eps), float(info.tiny), float(info.max) / 2
    values, counts = np.unique(np.clip(x.astype(np.float64), -most, most), return_counts=True)
    above = np.cumsum(counts) / x.size
    below = above - counts / x.size
    rounding = np.abs(values) * 2 * error + least
    with np.errstate(all="ignore"):
        high = np.where(values >= most, 1.0, distribution.cdf(values + rounding))
        low = np.where(values <= -most, 0.0, distribution.cdf(values - step - rounding))
    difference = max(np.max(low - above), np.max(below - high), np.max(above - high), np.max(low - below))
    assert difference * math.sqrt(x.size) < LARGEST + coarse * math.sqrt(x.size), difference


def _assert_moments(x, distribution):
    """Compare mean and variance, within five standard errors."""
    with np.errstate(all="ignore"):
        mean, variance, _, kurtosis = (float(m) for m in distribution.stats("mvsk"))
    if not (0 < variance < INF and math.isfinite(kurtosis)):
        return
    x = x.astype(np.float64)
    rounding = abs(mean) * 2.0**-23
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / x.size) + rounding
    assert abs(x.var() / variance - 1) < 5 * math.sqrt((max(kurtosis, 0) + 2) / x.size) + rounding**2 / variance


def _cases(table):
    return [(name, args) for name, (rows, _) in table.items() for args in rows]


@pytest.mark.parametrize(("name", "args"), _cases(CONTINUOUS))
def test_few_continuous(name, args):
    _assert_follows(_drawn(name, args, FEW, 3), CONTINUOUS[name][1](*args))


@pytest.mark.parametrize(("name", "args"), _cases(DISCRETE))
def test_few_discrete(name, args):
    x, distribution = _drawn(name, args, FEW, 3), DISCRETE[name][1](*args)
    _assert_follows(x, distribution, step=1.0)
    _assert_moments(x, distribution)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "args"), NARROW)
def test_few_of_16_bits(name, args, dtype):
    """Quantiles of uniform numbers of few bits: each quantile is right, and none is infinite."""
    if (name, dtype) == ("uniform", "bfloat16"):
        args = (-3e38, 3e38)
    x = _drawn(name, args, FEW, 3, dtype)
    assert np.isfinite(x.astype(np.float32)).all()
    _assert_follows(x, CONTINUOUS[name][1](*args), coarse=4 * float(dtypes.finfo(x.dtype).eps))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "args"), _cases(CONTINUOUS))
def test_many_continuous(name, args, dtype):
    with corejax.enable_x64(dtype == "float64"):
        x = _drawn(name, args, MANY, 5, dtype)
    distribution = CONTINUOUS[name][1](*args)
    _assert_follows(x, distribution)
    if name not in NO_MOMENTS:
        _assert_moments(x, distribution)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "args"), _cases(DISCRETE))
def test_many_discrete(name, args):
    x, distribution = _drawn(name, args, MANY, 5), DISCRETE[name][1](*args)
    _assert_follows(x, distribution, step=1.0)
    _assert_moments(x, distribution)


def test_the_tests_can_fail():
    with pytest.raises(AssertionError):
        _assert_follows(_drawn("wald", (10,), FEW, 3), stats.invgauss(3))
    with pytest.raises(AssertionError):
        _assert_moments(_drawn("poisson", (1e7,), FEW, 3), stats.poisson(1.3e7))


@pytest.mark.parametrize(("dtype", "span"), [("uint32", 3 * 2**30), ("uint64", 3 * 2**62)])
def test_integers_of_wide_spans(dtype, span):
    """Each third of the span and each remainder, compiled with bounds that are traced; few as many."""
    draw = corejax.jit(lambda key, high: random.randint(key, (3000,), 0, high, dtype))
    with corejax.enable_x64(dtype == "uint64"):
        high = np.asarray(span, dtype)
        x = np.asarray(draw(random.key(2), high))
        few = [random.randint(random.key(2), (300,), 0, bound, dtype) for bound in (span, high)]
        np.testing.assert_array_equal(*few)
    thirds = np.bincount(np.minimum(x.astype(np.float64) * 3 // span, 2).astype(int), minlength=3)
    for counts in (thirds, np.bincount((x % 3).astype(int), minlength=3)):
        assert stats.chisquare(counts).pvalue > 1e-3


def test_counts_that_a_dtype_does_not_hold():
    most = 2**31 - 1
    got = random.poisson(random.key(0), np.float32([INF, 1e30, 3e9, 0]))
    np.testing.assert_array_equal(got, [most, most, most, 0])
    np.testing.assert_array_equal(random.poisson(random.key(0), np.float32([300, 1e6]), dtype="int8"), [127, 127])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_probabilities_of_16_bits(dtype):
    """Their own random numbers would tie, or have 128 values."""
    categories = np.asarray(random.categorical(random.key(1), jnp.zeros(1000, dtype), shape=(400,)))
    assert stats.kstest(categories + 0.5, stats.uniform(0, 1000).cdf).pvalue > 1e-3
    few = np.asarray(random.bernoulli(random.key(1), jnp.asarray(0.001, dtype), (4000,)))
    assert few.sum() < 20
    counts = np.asarray(random.binomial(random.key(1), jnp.asarray(1000, dtype), jnp.asarray(0.25, dtype), (FEW,)))
    _assert_follows(counts.astype(np.float32), stats.binom(1000, 0.25), step=1.0)
    shares = np.asarray(random.multinomial(random.key(1), 1000, jnp.asarray([0.25, 0.75], dtype), shape=(100, 2)))
    np.testing.assert_allclose(shares.mean(0), [250, 750], atol=8)


def test_vectors():
    cov = np.ones((3, 3), np.float32)
    for method in ("eigh", "svd"):
        x = np.asarray(random.multivariate_normal(random.key(1), np.zeros(3, np.float32), cov, (150,), method=method))
        np.testing.assert_allclose(x, x[:, :1] * np.ones(3), atol=1e-2)
        assert stats.kstest(x[:, 0], stats.norm.cdf).pvalue > 1e-3
    for p in (0.5, 100.0, 1e6):
        x = np.asarray(random.ball(random.key(1), 2, p, (200,)), np.float64)
        mean = math.exp(math.lgamma(3 / p) + math.lgamma(2 / p + 1) - math.lgamma(1 / p) - math.lgamma(4 / p + 1))
        np.testing.assert_allclose((x**2).mean(), mean, rtol=0.2)
    x = np.asarray(random.dirichlet(random.key(1), np.full(3, 1e-4, np.float32), (150,)))
    assert np.isfinite(x).all() and stats.chisquare(x.sum(0)).pvalue > 1e-3
