"""`corejax.scipy.fft` beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import corejax
import corejax.numpy as jnp
from corejax.scipy import fft

X = np.random.default_rng(3).standard_normal((4, 5, 6))


@pytest.mark.parametrize("name", ["dct", "idct"])
def test_one_axis(name):
    for x in (X, X + 1j * X[::-1]):
        for n in (None, 1, 3, 8):
            for axis in (-1, 0, 1):
                for norm in (None, "backward", "ortho"):
                    want = getattr(scipy.fft, name)(x, n=n, axis=axis, norm=norm)
                    np.testing.assert_allclose(getattr(fft, name)(x, 2, n, axis, norm), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_several_axes(name):
    for s, axes in ((None, None), (None, (0, 2)), ((3, 7), None), ((3, 7), (-1, 0)), ((4,), (1,))):
        want = getattr(scipy.fft, name)(X, s=s, axes=axes, norm="ortho")
        np.testing.assert_allclose(getattr(fft, name)(X, 2, s, axes, "ortho"), want, rtol=1e-11, atol=1e-12)


def test_inverse_and_derivative():
    x = X[0, 0].astype("float32")
    np.testing.assert_allclose(fft.idct(fft.dct(x)), x, rtol=1e-5, atol=1e-6)
    slope = corejax.jit(corejax.grad(lambda x: jnp.sum(fft.dct(x, norm="ortho") ** 2)))(x)
    np.testing.assert_allclose(slope, 2 * x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fft.dct(X, 3), NotImplementedError, "dct: type must be 2, got 3"),
        (lambda: fft.dct(X, n=0), ValueError, "dct: n must be 1 or more, got 0"),
        (lambda: fft.idct(X, axis=3), ValueError, "idct: axis 3 is out of bounds"),
        (
            lambda: fft.dct(X, norm="forward"),
            ValueError,
            "dct: norm must be one of None, 'backward', 'ortho', got 'forward'",
        ),
        (lambda: fft.dctn(X, axes=(0, 0)), ValueError, r"dctn: an axis is given twice, in axes \(0, 0\)"),
        (lambda: fft.dctn(X, s=(2,), axes=(0, 1)), ValueError, "dctn: s has 1 lengths for 2 axes"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()
