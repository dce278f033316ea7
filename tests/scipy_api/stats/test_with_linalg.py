"""`multivariate_normal` and `gaussian_kde`, which need linear algebra."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import scipy.stats

import corejax
import corejax.numpy as jnp
from corejax.scipy import stats

RNG = np.random.default_rng(19)

if not hasattr(corejax.lax, "linalg"):
    pytest.skip("corejax-linalg is not installed", allow_module_level=True)


def _close(got, want, tolerance=1e-9):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-14)


@pytest.mark.parametrize(
    "shapes", [((5, 2), ()), ((3, 5, 2), (5,)), ((4, 1, 2), (3,)), ((2,), (3,)), ((7, 3, 1, 2), (3, 2))]
)
def test_multivariate_normal_of_several_covariances(shapes):
    (of_x, batch), rng = shapes, np.random.default_rng(0)
    x = rng.standard_normal(of_x)
    root = rng.standard_normal((*batch, 2, 2))
    cov = root @ root.swapaxes(-1, -2) + np.eye(2)
    mean = rng.standard_normal(2)
    full = np.broadcast_shapes(of_x[:-1], batch)
    xs, covs = np.broadcast_to(x, (*full, 2)), np.broadcast_to(cov, (*full, 2, 2))
    wanted = np.empty(full)
    for i in np.ndindex(*full):
        wanted[i] = scipy.stats.multivariate_normal.logpdf(xs[i], mean, covs[i])
    _close(stats.multivariate_normal.logpdf(x, mean, cov), wanted)


def test_multivariate_normal():
    x, mean, half = RNG.standard_normal((5, 3)), RNG.standard_normal(3), RNG.standard_normal((3, 3))
    cov = half @ half.T + np.eye(3)
    _close(stats.multivariate_normal.logpdf(x, mean, cov), scipy.stats.multivariate_normal.logpdf(x, mean, cov))
    _close(stats.multivariate_normal.pdf(x, mean, 2.0), scipy.stats.multivariate_normal.pdf(x, mean, 2.0))
    _close(
        stats.multivariate_normal.logpdf(0.3, np.float64(1.0), np.float64(2.0)), scipy.stats.norm.logpdf(0.3, 1, 2**0.5)
    )
    covs, means = np.stack([cov, 2 * cov]), np.stack([mean, mean + 1])
    batch = stats.multivariate_normal.logpdf(x[:, None], means, covs)
    for i in range(2):
        _close(batch[:, i], scipy.stats.multivariate_normal.logpdf(x, means[i], covs[i]))
    slope = corejax.jit(corejax.grad(lambda m: stats.multivariate_normal.logpdf(x, m, cov).sum()))(mean)
    _close(slope, np.linalg.solve(cov, (x - mean).T).sum(1))
    with pytest.raises(ValueError, match=r"cov must be a number or of shape \(..., 3, 3\)"):
        stats.multivariate_normal.logpdf(x, mean, cov[:2])


@pytest.mark.parametrize("shape", [(20,), (2, 30)])
def test_gaussian_kde(shape):
    data = RNG.standard_normal(shape)
    for weights in (None, RNG.uniform(0.1, 1, shape[-1])):
        for method in (None, "silverman", 0.4, lambda kde: 0.7):
            ours, theirs = stats.gaussian_kde(data, method, weights), scipy.stats.gaussian_kde(data, method, weights)
            points = RNG.standard_normal((theirs.d, 7))
            _close(ours(points), theirs(points))
            _close(ours.logpdf(points), theirs.logpdf(points))
            _close(ours.integrate_kde(ours), theirs.integrate_kde(theirs))
            mean, cov = np.zeros(theirs.d), 0.5 * np.eye(theirs.d)
            _close(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov))
            if theirs.d == 1:
                _close(ours.integrate_box_1d(-1, 0.5), theirs.integrate_box_1d(-1, 0.5))
    _close(corejax.jit(lambda kde, x: kde(x))(ours, points), theirs(points))
    if importlib.util.find_spec("corejax_random") is not None:
        drawn = np.asarray(ours.resample(corejax.random.key(0), (2000,)))
        _close(np.cov(drawn).reshape(theirs.d, theirs.d), np.cov(data) + np.asarray(ours.covariance), 0.4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.gaussian_kde(jnp.ones(1)), "gaussian_kde: dataset must have points in columns"),
        (lambda: stats.gaussian_kde(jnp.arange(4.0), "wide"), "bw_method must be 'scott', 'silverman', .* got 'wide'"),
        (lambda: stats.gaussian_kde(jnp.arange(4.0), None, jnp.ones(3)), "weights must be a vector of 4 numbers"),
        (lambda: stats.gaussian_kde(jnp.arange(4.0))(jnp.ones((2, 3))), "points must have 1 coordinates, in columns"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
