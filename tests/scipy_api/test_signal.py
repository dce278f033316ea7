"""`corejax.scipy.signal` beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import corejax
import corejax.numpy as jnp
from corejax.scipy import signal

RNG = np.random.default_rng(13)
MODES = ("full", "same", "valid")


def _close(got, want, tolerance=1e-10):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d"])
def test_convolutions(name, mode):
    shapes = [((7, 6), (3, 4)), ((3, 2), (5, 5)), ((4, 4), (4, 4))]
    if not name.endswith("2d"):
        shapes += [((9,), (4,)), ((4,), (9,)), ((5, 4, 3), (2, 2, 2))]
    for shape1, shape2 in shapes:
        x, y = RNG.standard_normal(shape1), RNG.standard_normal(shape2)
        for a, b in ((x, y), (x + 1j * x[::-1], y - 2j * y)):
            _close(getattr(signal, name)(a, b, mode), getattr(scipy.signal, name)(a, b, mode))
    if name in ("convolve", "correlate"):
        want = getattr(scipy.signal, name)(x, y, mode)
        _close(getattr(signal, name)(x, y, mode, method="fft"), want)
        slope = corejax.grad(lambda y: getattr(signal, name)(x, y, mode).sum())(y)
        _close(slope, corejax.jacfwd(lambda y: getattr(signal, name)(x, y, mode, method="fft").sum())(y))


def test_fftconvolve_along_some_axes():
    x, y = RNG.standard_normal((3, 8, 5)), RNG.standard_normal((3, 4, 5))
    _close(signal.fftconvolve(x, y, axes=1), scipy.signal.fftconvolve(x, y, axes=1))
    _close(signal.fftconvolve(x, y, "same", axes=(-2,)), scipy.signal.fftconvolve(x, y, "same", axes=(-2,)))
    assert signal.fftconvolve(jnp.ones(3), jnp.ones(2)).dtype == "float32"


def test_detrend():
    x = RNG.standard_normal((3, 20)) + np.arange(20.0)
    for options in ({}, {"type": "constant"}, {"axis": 0}, {"bp": [5, 12]}):
        _close(signal.detrend(x, **options), scipy.signal.detrend(x, **options))


def test_densities_of_one_signal_are_real():
    x = RNG.standard_normal(64).astype(np.float32)
    for given in (x, jnp.asarray(x)):
        for found in (
            signal.welch(given, nperseg=16)[1],
            signal.csd(given, given, nperseg=16)[1],
            signal.csd(given, None, nperseg=16)[1],
            corejax.jit(lambda x: signal.welch(x, nperseg=16)[1])(given),
        ):
            assert found.dtype == np.float32
    assert signal.csd(x, x + 1, nperseg=16)[1].dtype == np.complex64
    for short, whole in (("l", "linear"), ("c", "constant")):
        np.testing.assert_array_equal(signal.detrend(x, type=short), signal.detrend(x, type=whole))


@pytest.mark.parametrize(
    "options",
    [
        {"nperseg": 32},
        {"nperseg": 31, "noverlap": 20, "nfft": 40, "fs": 50.0},
        {"nperseg": 32, "window": ("kaiser", 6.0), "detrend": "linear"},
        {"nperseg": 32, "return_onesided": False, "axis": 0},
    ],
)
def test_spectra(options):
    x, y = RNG.standard_normal((2, 200)), RNG.standard_normal((2, 200))
    if "axis" in options:
        x, y = x.T, y.T
    for average, scaling in (("mean", "density"), ("median", "spectrum")):
        more = {**options, "average": average, "scaling": scaling}
        for got, want in zip(signal.welch(x, **more), scipy.signal.welch(x, **more), strict=True):
            _close(got, want)
        for got, want in zip(signal.csd(x, y, **more), scipy.signal.csd(x, y, **more), strict=True):
            _close(got, want)
    for boundary in ("zeros", "even", "odd", "constant", None):
        more = {**options, "boundary": boundary}
        for got, want in zip(signal.stft(x, **more), scipy.signal.stft(x, **more), strict=True):
            _close(got, want)


def test_stft_and_back():
    x = RNG.standard_normal((2, 3, 128))
    for options in ({"nperseg": 32}, {"nperseg": 24, "noverlap": 18, "fs": 8.0}):
        _, _, z = scipy.signal.stft(x, **options)
        want = scipy.signal.istft(z, **options)
        got = corejax.jit(lambda z, o=options: signal.istft(z, **o))(z)
        _close(got[0], scipy.signal.istft(z[0, 0], **options)[0])  # of batches SciPy gives times for the wrong axis
        _close(got[1], want[1])
        moved = signal.istft(np.moveaxis(z, -1, 0), **options, time_axis=0, freq_axis=-1)
        _close(moved[1], np.moveaxis(want[1], -1, 0))
        assert signal.stft(jnp.ones(64), nperseg=16)[2].dtype == "complex64"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: signal.convolve(x, x, "half"), ValueError, "convolve: mode must be one of .* got 'half'"),
        (lambda x: signal.convolve(x, x[0]), ValueError, "convolve: in1 and in2 must have the same number of axes"),
        (lambda x: signal.correlate(x, x, method="slow"), ValueError, "correlate: method must be one of"),
        (lambda x: signal.convolve(x, x[:0]), ValueError, "convolve: in1 and in2 must have elements"),
        (lambda x: signal.fftconvolve(x, x[:2].T, "valid"), ValueError, "fftconvolve: with mode 'valid'"),
        (
            lambda x: signal.convolve2d(x, x, boundary="wrap"),
            NotImplementedError,
            "convolve2d: boundary must be 'fill'",
        ),
        (lambda x: signal.welch(x, nperseg=0), ValueError, "welch: nperseg must be 1 or more, got 0"),
        (lambda x: signal.welch(x, nperseg=3, noverlap=3), ValueError, "welch: noverlap must be less than nperseg 3"),
        (lambda x: signal.welch(x, nperseg=3, nfft=2), ValueError, "welch: nfft must be nperseg 3 or more, got 2"),
        (lambda x: signal.stft(x, nperseg=3, window="round"), ValueError, "stft: window 'round' is unknown to SciPy"),
        (lambda x: signal.stft(x, nperseg=3, boundary="wrap"), ValueError, "stft: boundary must be one of"),
        (lambda x: signal.csd(x, x, average="mode"), ValueError, "csd: average must be one of"),
        (lambda x: signal.istft(x, time_axis=0, freq_axis=0), ValueError, "istft: freq_axis and time_axis must differ"),
        (lambda x: signal.detrend(x, bp=9), ValueError, "detrend: bp must be between 0 and the length 4"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.arange(12.0).reshape(3, 4))
