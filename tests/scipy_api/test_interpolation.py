"""`map_coordinates`, `RegularGridInterpolator`, `trapezoid` and `vq` beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import corejax
import corejax.numpy as jnp
import corejax.scipy as csp

jax = pytest.importorskip("jax")
pytest.importorskip("jax.scipy.ndimage")

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_map_coordinates(mode):
    image = RNG.standard_normal((5, 7))
    points = RNG.uniform(-9, 12, (2, 60))
    for order in (0, 1):
        want = jax.scipy.ndimage.map_coordinates(image, points, order, mode, 2.5)  # SciPy blends at edges
        got = csp.ndimage.map_coordinates(image, points, order, mode, 2.5)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        inner = RNG.uniform(0, 4, (2, 20))
        want = scipy.ndimage.map_coordinates(image, inner, order=order)
        np.testing.assert_allclose(csp.ndimage.map_coordinates(image, inner, order), want, rtol=1e-10, atol=1e-12)
    whole = (image * 10).astype(int)
    got = csp.ndimage.map_coordinates(whole, points, 1, mode)
    np.testing.assert_array_equal(got, jax.scipy.ndimage.map_coordinates(whole, points, 1, mode))


def test_map_coordinates_has_derivatives():
    image, points = RNG.standard_normal((5, 7)).astype("float32"), RNG.uniform(0.1, 3.9, (2, 6)).astype("float32")

    def total(module, image, points):
        return module.ndimage.map_coordinates(image, [points[0], points[1]], 1).sum()

    got = corejax.jit(corejax.grad(lambda i, p: total(csp, i, p), (0, 1)))(image, points)
    want = jax.grad(lambda i, p: total(jax.scipy, i, p), (0, 1))(image, points)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interpolator(method):
    grid = (np.linspace(0, 1, 4), np.array([0.0, 0.3, 1.5, 2.0]), np.linspace(-1, 1, 3))
    values = RNG.standard_normal((4, 4, 3, 2))
    points = RNG.uniform(-0.3, 1.2, (5, 8, 3))
    for fill in (np.nan, 7.0, None):
        theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method, bounds_error=False, fill_value=fill)
        ours = csp.interpolate.RegularGridInterpolator(grid, values, method, fill_value=fill)
        np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(corejax.jit(lambda f, x: f(x))(ours, points), theirs(points), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours((0.2, 0.4, np.zeros(3))), theirs((0.2, 0.4, np.zeros(3))), rtol=1e-6)


def test_trapezoid_and_vq():
    y, x = RNG.standard_normal((3, 6)), np.sort(RNG.standard_normal(6))
    got = csp.integrate.trapezoid(y, x)
    np.testing.assert_allclose(got, scipy.integrate.trapezoid(y, x), rtol=1e-12)
    obs, codes = RNG.standard_normal((9, 3)), RNG.standard_normal((4, 3))
    for ours, theirs in ((csp.cluster.vq.vq(obs, codes), scipy.cluster.vq.vq(obs, codes)),):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12)
    index, _ = csp.cluster.vq.vq(obs[:, 0], codes[:, 0])
    np.testing.assert_array_equal(index, scipy.cluster.vq.vq(obs[:, 0], codes[:, 0])[0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: csp.ndimage.map_coordinates(x, [x], 1),
            ValueError,
            "an array for each of the 2 axes of input, got 1",
        ),
        (lambda x: csp.ndimage.map_coordinates(x, [x, x], 2), NotImplementedError, "order must be 0 or 1, got 2"),
        (
            lambda x: csp.ndimage.map_coordinates(x, [x, x], 1, "grid"),
            NotImplementedError,
            "mode must be one of .* 'grid'",
        ),
        (lambda x: csp.interpolate.RegularGridInterpolator((x[0],) * 3, x), ValueError, "points has 3 axes"),
        (
            lambda x: csp.interpolate.RegularGridInterpolator((x[0, :2],), x),
            ValueError,
            r"points\[0\] must be a vector",
        ),
        (lambda x: csp.interpolate.RegularGridInterpolator((x[0],), x, "cubic"), ValueError, "got 'cubic'"),
        (
            lambda x: csp.ndimage.map_coordinates(x, 3, 1),
            TypeError,
            "map_coordinates: coordinates must be a sequence.* got 3",
        ),
        (
            lambda x: csp.interpolate.RegularGridInterpolator((-x[0],), x),
            ValueError,
            r"points\[0\] must increase strictly.*\[-0",
        ),
        (lambda x: csp.cluster.vq.vq(x, x[:, :2]), ValueError, "code_book must have at least one row, of the length 3"),
        (lambda x: csp.cluster.vq.vq(x, x[0]), ValueError, "both have 1 or 2 axes"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.arange(9.0).reshape(3, 3))


def test_coordinates_that_are_traced_are_taken_to_increase():
    values = RNG.standard_normal((5, 6))
    at = RNG.uniform(0, 4, (7, 2))

    def f(x, at):
        return csp.interpolate.RegularGridInterpolator((jnp.arange(5.0), x), values)(at)

    np.testing.assert_allclose(corejax.jit(f)(jnp.arange(6.0), at), f(jnp.arange(6.0), at), rtol=1e-5)
    with pytest.raises(ValueError, match="must increase strictly"):
        f(-jnp.arange(6.0), at)
