"""`corejax.numpy.fft` beside NumPy's, and beside jax's where that has dtypes of its own."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp

jax = pytest.importorskip("jax")

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((3, 4, 6, 5))
COMPLEX = REAL + 1j * RNG.standard_normal(REAL.shape)


def _operand(name):
    return REAL if name in ("rfft", "ihfft", "rfftn", "rfft2") else COMPLEX


def _same(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-11, atol=1e-11)
    assert got.dtype == want.dtype


def test_names():
    names = {n for n in dir(jax.numpy.fft) if not n.startswith("_")}
    assert names <= set(dir(jnp.fft)) and names <= set(corejax.numpy.fft.__all__)
    assert names == {n for n in dir(jnp.fft) if not n.startswith("_") and n != "annotations"}


@pytest.mark.parametrize("name", ONE)
def test_one_axis(name):
    x = _operand(name)
    for n in (None, 3, 4, 9, 1):
        for axis in (-1, 1, -4):
            for norm in (None, "backward", "ortho", "forward"):
                got = getattr(jnp.fft, name)(x, n, axis, norm)
                _same(got, getattr(np.fft, name)(x, n, axis, norm))


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(name):
    x = _operand(name)
    for s, axes in ((None, None), ((3, 7), (2, 0)), ((5,), (1,)), (None, (-1, 1, 0)), ((2, 2, 2, 4), (3, 1, 0, 2))):
        for norm in (None, "ortho", "forward"):
            _same(getattr(jnp.fft, name)(x, s, axes, norm), getattr(np.fft, name)(x, s, axes, norm))
    got = getattr(jnp.fft, name)(x, (3, 7))
    _same(got, getattr(np.fft, name)(x, (3, 7), (-2, -1)))


@pytest.mark.parametrize("name", TWO)
def test_two_axes(name):
    x = _operand(name)
    _same(getattr(jnp.fft, name)(x), getattr(np.fft, name)(x))
    _same(
        getattr(jnp.fft, name)(x, s=(3, 5), axes=(0, -2), norm="ortho"),
        getattr(np.fft, name)(x, (3, 5), (0, -2), "ortho"),
    )


def test_frequencies_and_shifts():
    for n in (1, 2, 5, 8):
        _same(jnp.fft.fftfreq(n, 0.5, dtype="float64"), np.fft.fftfreq(n, 0.5))
        _same(jnp.fft.rfftfreq(n, 0.5, dtype="float64"), np.fft.rfftfreq(n, 0.5))
        assert jnp.fft.fftfreq(n).dtype == jax.numpy.fft.fftfreq(n).dtype == "float32"
    for axes in (None, 1, (0, -1), ()):
        _same(jnp.fft.fftshift(REAL, axes), np.fft.fftshift(REAL, axes))
        _same(jnp.fft.ifftshift(REAL, axes), np.fft.ifftshift(REAL, axes))


@pytest.mark.parametrize("dtype", ["int32", "bool", "float32", "complex64", "bfloat16"])
def test_dtypes_are_those_of_jax(dtype):
    x = np.ones((4,), dtype if dtype != "bfloat16" else jnp.bfloat16)
    for name in ("fft", "ifft", "irfft", "hfft"):
        assert getattr(jnp.fft, name)(x).dtype == getattr(jax.numpy.fft, name)(x).dtype


def test_derivative_through_padding_and_norm():
    x = REAL[0, 0, 0].astype("float32")

    def loss(np_, x):
        return np_.sum(np_.abs(np_.fft.fft(x, 7, norm="ortho") * np_.arange(7.0)) ** 2)

    np.testing.assert_allclose(
        corejax.jit(corejax.grad(lambda x: loss(jnp, x)))(x), jax.grad(lambda x: loss(jax.numpy, x))(x), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f, x: f.fft(x, 0), ValueError, "fft: n is 1 or more, got 0"),
        (lambda f, x: f.rfft(x, -2), ValueError, "rfft: n is 1 or more, got -2"),
        (lambda f, x: f.fft(x, 2.5), TypeError, "fft: n is an integer, got 2.5 of type float"),
        (lambda f, x: f.fft(x, axis=4), np.exceptions.AxisError, "fft: axis 4 is out of bounds for array"),
        (lambda f, x: f.fft(x, axis=(0, 1)), ValueError, r"fft transforms one axis, got axis \(0, 1\); use fftn"),
        (
            lambda f, x: f.fft(x, norm="unit"),
            ValueError,
            "fft: norm is None, 'backward', 'ortho' or 'forward', got 'unit'",
        ),
        (lambda f, x: f.fftn(x, axes=(0, -2)), ValueError, r"fftn: an axis is given twice, in axes \(0, -2\)"),
        (lambda f, x: f.fftn(x, s=(2,), axes=(0, 1)), ValueError, "fftn: s has 1 lengths and axes 2"),
        (lambda f, x: f.fftn(x, s=(1, 2, 3)), ValueError, "fftn: s has 3 lengths, and the array has 2 axes"),
        (lambda f, x: f.fft2(x, axes=(1,)), ValueError, r"fft2 transforms two axes, got axes \(1,\)"),
        (lambda f, x: f.rfft(x * 1j), ValueError, "rfft takes real numbers, got c64"),
        (lambda f, x: f.irfft(x[:, :1]), ValueError, "gives a transform of length 0"),
        (lambda f, x: f.fft(x[:, :0]), ValueError, "gives a transform of length 0"),
        (lambda f, x: f.fft([1.0, 2.0]), TypeError, r"fft takes an array, got \[1.0, 2.0\] of type list"),
        (lambda f, x: f.fftfreq(0), ValueError, "fftfreq: n is 1 or more, got 0"),
        (lambda f, x: f.fftfreq(4, 1j), TypeError, "fftfreq: d is a real number, the time between samples, got 1j"),
        (lambda f, x: f.fftfreq([3]), TypeError, r"fftfreq: n is an integer, got \[3\]"),
        (lambda f, x: f.fftshift(x, 2), ValueError, "fftshift: axis 2 is out of bounds"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.fft, jnp.ones((2, 4)))
