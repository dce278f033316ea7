"""Distributions at the ends of their supports, and of parameters that are huge or infinite."""

import math

import numpy as np
import pytest
import scipy.stats

import corejax
from corejax.scipy import stats

INF = math.inf


def _both(f, *arguments):
    """Run and compiled."""
    for function in (f, corejax.jit(lambda *xs: f(*xs))):
        yield np.asarray(function(*arguments)).astype(np.float64)


# In float32, SciPy's in float64: what cancelled where terms are large, or where 1 - x is rounded.
LARGE = [
    ("poisson", "logpmf", [1e4, 1e6, 1e6, 12.0], [1e4, 1e6, 1.002e6, 9.0]),
    ("binom", "logpmf", [5e5, 12.0, 2.0], [1e6, 40.0, 1e6], [0.5, 0.25, 1e-6]),
    ("nbinom", "logpmf", [1.0, 300.0, 0.0], [1e4, 1e6, 1e30], [0.9, 0.9997, 1.0]),
    ("betabinom", "logpmf", [0.0, 1.0, 2.0, 40.0], [1.0, 10.0, 10.0, 1e6], [1e8, 1e4, 1e4, 50.0], [1e8, 1e8, 1e9, 3e5]),
    ("gamma", "logpdf", [1e4, 1.01e6, 8.0], [1e4, 1e6, 30.0]),
    ("chi2", "logpdf", [1e4, 1.01e6, 8.0], [1e4, 1e6, 50.0]),
    ("beta", "logpdf", [0.5, 0.25, 0.125], [1e6, 1e4, 20.0], [1e6, 3e4, 60.0]),
    ("beta", "sf", [1e-10, 1e-5, 0.25, 1e-30], [1e-4, 1.0, 2.0, 0.5], [30.0, 1e5, 5.0, 1e30]),
    ("beta", "logcdf", [1e-10, 1e-30], [1e-4, 1e-20], [30.0, 1e-20]),
    ("gumbel_r", "logsf", [100.0, 8.5, 7.5]),
    ("gumbel_l", "logcdf", [-100.0, -8.5, -7.5]),
    ("vonmises", "logpdf", [0.0, 2.0, 0.01, 0.0, 1e-20, 1.0], [0.0, 0.0, 1e5, 3e38, 3e38, 1e38]),
    ("wrapcauchy", "logpdf", [0.0, 1e-4], [0.9999, 0.9999]),
    ("gennorm", "cdf", [0.01, -0.01, 0.5, 0.0], [30.0, 30.0, 100.0, 30.0]),
    ("t", "logpdf", [0.0, 1.5, -30.0, INF], [INF] * 4),
    ("t", "logpdf", [0.0, 1.5, -30.0, 1.0, 2.0], [3e38, 3e38, 3e38, 2e20, 1e18]),
    ("gennorm", "logpdf", [0.0, 0.5, -0.9, 1e-20], [3e38, 3e38, 1e38, 1e30]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function", "operands"), [(n, f, x) for n, f, *x in LARGE])
def test_large_terms(name, function, operands):
    single = [np.array(x, np.float32) for x in operands]
    wanted = getattr(getattr(scipy.stats, name), function)(*[x.astype(np.float64) for x in single])
    for found in _both(getattr(getattr(stats, name), function), *single):
        np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=3e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masses_of_narrow_intervals(dtype):
    low, width = np.array([0.0, 3.0, -20.0, 0.0, 1.0]), np.array([1e-4, 1e-3, 1e-3, 0.045, 2.0**-10])
    a, b = low.astype(dtype), (low + width).astype(dtype)
    x = (a + (b - a) / 4).astype(dtype)
    low, width, inner = a.astype(float), (b - a).astype(float), (x - a).astype(float)
    points, weights = np.polynomial.legendre.leggauss(12)

    def mass(h):
        ys = low + 0.5 * h * (1 + points[:, None])
        return 0.5 * h * (weights[:, None] * np.exp(-0.5 * ys * ys)).sum(0)

    tolerance = {"float32": 2e-4, "float64": 1e-11}[dtype]
    for found in _both(stats.truncnorm.cdf, x, a, b):
        np.testing.assert_allclose(found, mass(inner) / mass(width), rtol=tolerance)
    for found in _both(stats.truncnorm.pdf, x, a, b):
        np.testing.assert_allclose(found, np.exp(-0.5 * (low + inner) ** 2) / mass(width), rtol=tolerance)


ENDS = [
    ("gamma", (2.0,), INF), ("gamma", (INF,), INF), ("chi2", (3.0,), INF), ("chi2", (INF,), INF), ("expon", (), INF),
    ("gumbel_r", (), -INF), ("gumbel_r", (), -8e37), ("gumbel_l", (), INF), ("gumbel_l", (), 8e37),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shapes", "end"), ENDS)
def test_at_infinity(name, shapes, end):
    """XLA's `exp` of large numbers is a large one inside of a sum."""
    operands = [np.float32(v) for v in (end, *shapes)]
    for function, (below, above) in {"logpdf": (-INF, -INF), "pdf": (0, 0), "cdf": (0, 1), "sf": (1, 0)}.items():
        f = getattr(getattr(stats, name), function, None)
        for found in _both(f, *operands) if f else ():
            assert found == (above if end > 0 else below), (function, found)


@pytest.mark.parametrize("name", ["norm", "cauchy", "expon", "gamma", "logistic", "uniform"])
def test_masses_to_infinity_have_derivatives(name):
    """Of censored data one end of the interval is often infinite."""
    shapes = (2.0,) if name == "gamma" else ()
    for function in ("cdf", "sf"):
        f = getattr(getattr(stats, name), function, None)
        for end in (INF, -INF) if f else ():
            slopes = corejax.grad(f, argnums=tuple(range(len(shapes) + 1, len(shapes) + 3)))(end, *shapes, 0.5, 2.0)
            np.testing.assert_array_equal(slopes, 0.0)


SLOPES = [
    ("poisson", (30.0,), 25.0, lambda k, mu: k / mu - 1),
    ("poisson", (0.0,), 0.0, lambda k, mu: -1.0),
    ("binom", (100.0, 0.3), 25.0, lambda k, n, p: k / p - (n - k) / (1 - p)),
    ("nbinom", (40.0, 0.3), 25.0, lambda k, n, p: n / p - k / (1 - p)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shapes", "k", "slope"), SLOPES)
def test_derivatives_of_probabilities_of_large_numbers(name, shapes, k, slope):
    f = getattr(stats, name).logpmf
    for found in _both(corejax.grad(f, argnums=len(shapes)), np.float64(k), *map(np.float64, shapes)):
        np.testing.assert_allclose(found, slope(k, *shapes), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "operands"),
    [("gamma", (25.0, 30.0)), ("chi2", (25.0, 30.0)), ("beta", (0.3, 30.0, 50.0)), ("t", (0.3, INF)), ("t", (0.3, 3.0)),
     ("vonmises", (0.3, 0.0)), ("wrapcauchy", (0.3, 0.5)), ("gennorm", (0.3, 1.5))],
)  # fmt: skip
def test_derivatives_beside_differences(name, operands):
    f, theirs = getattr(stats, name).logpdf, getattr(scipy.stats, name).logpdf
    for i, x in enumerate(operands):
        step = 1e-5 if x != INF else 0.0
        up, down = ([*operands[:i], x + s, *operands[i + 1 :]] for s in (step, -step))
        if name == "vonmises" and i == 1:
            wanted = math.cos(operands[0])  # SciPy has no negative ones
        else:
            wanted = (theirs(*up) - theirs(*down)) / (2 * step) if step else 0.0
        for found in _both(corejax.grad(f, argnums=i), *map(np.float64, operands)):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_points_that_are_not_known():
    x, alpha = np.array([[math.nan, 0.2, -0.2], [0.5, 0.8, 1.2]]), np.array([2.0, 3.0])
    for found in _both(stats.dirichlet.logpdf, x, alpha):
        np.testing.assert_allclose(found, [math.nan, scipy.stats.dirichlet.logpdf(x[:, 1], alpha), -INF])
