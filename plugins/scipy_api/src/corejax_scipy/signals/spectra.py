"""Compute spectra by Fourier transforms of windowed segments: csd istft stft welch. Source: `scipy.signal`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax.extend.messages import warn_user
from corejax_lax_basic import lax
from corejax_scipy._arguments import array, axis_of, inexact, one_of, static_int
from corejax_scipy.signals.trends import detrend as without_trend

__all__ = ["csd", "istft", "stft", "welch"]


class _Plan(NamedTuple):
    """How a signal is cut into segments.

    Attributes:
        window: the window, a real vector.
        segment: the length of segments.
        step: the distance between the starts of segments.
        length: the length of transforms.
    """

    window: Any
    segment: int
    step: int
    length: int


def _window(name: str, window: Any, nperseg: int | None, size: int, dtype: Any) -> tuple[Any, int]:
    """Return the window and its length; a name selects a window of SciPy."""
    if isinstance(window, str | tuple):
        count = size if nperseg is None else nperseg
        if count > size:
            warn_user(
                f"{name}: nperseg {count} is greater than the length {size} of the signal; using {size}", UserWarning
            )
            count = size
        if window == "hann":
            values = np.sin(np.pi * np.arange(count) / count) ** 2 if count > 1 else np.ones(1)
        else:
            try:
                values = importlib.import_module("scipy.signal").get_window(window, count)
            except ValueError as error:
                raise ValueError(f"{name}: window {window!r} is unknown to SciPy: {error}") from None
        return jnp.asarray(values, dtype=dtype), count
    found = array(name, window, "window")
    if found.ndim != 1 or not 0 < found.shape[0] <= size:
        raise ValueError(
            f"{name}: window must be a vector not longer than the signal of length {size}, got {found.aval.str_short()}"
        )
    if nperseg not in (None, found.shape[0]):
        raise ValueError(f"{name}: nperseg {nperseg} is not the length {found.shape[0]} of window")
    return found.astype(dtype), found.shape[0]


def _plan(name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, size: int, dtype: Any) -> _Plan:
    given = None if nperseg is None else static_int(name, nperseg, "nperseg", 1)
    values, segment = _window(name, window, given, size, dtype)
    overlap = segment // 2 if noverlap is None else static_int(name, noverlap, "noverlap", 0)
    length = segment if nfft is None else static_int(name, nfft, "nfft")
    if overlap >= segment:
        raise ValueError(f"{name}: noverlap must be less than nperseg {segment}, got {overlap}")
    if length < segment:
        raise ValueError(f"{name}: nfft must be nperseg {segment} or more, got {length}")
    return _Plan(values, segment, segment - overlap, length)


def _odd(x: Any, n: int) -> Any:
    """Extend a signal by `n` elements that are point reflections about its ends."""
    left, right = 2 * x[..., :1] - jnp.flip(x[..., 1 : n + 1], -1), 2 * x[..., -1:] - jnp.flip(x[..., -n - 1 : -1], -1)
    return jnp.concatenate([left, x, right], axis=-1)


def _extended(name: str, x: Any, boundary: Any, n: int) -> Any:
    one_of(name, boundary, "boundary", ("even", "odd", "constant", "zeros", None))
    if boundary is None or n == 0:
        return x
    if boundary in ("even", "odd") and n > x.shape[-1] - 1:
        raise ValueError(f"{name}: boundary {boundary!r} of {n} elements needs a signal longer than {x.shape[-1]}")
    if boundary == "odd":
        return _odd(x, n)
    mode = {"even": "reflect", "constant": "edge", "zeros": "constant"}[boundary]
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode)


def _trend(name: str, given: Any, axis: int) -> Callable[[Any], Any]:
    """Return the function that removes the trend from segments along the last axis."""
    if isinstance(given, str):
        return lambda x: without_trend(x, -1, given)
    if callable(given):
        return lambda x: jnp.moveaxis(given(jnp.moveaxis(x, -1, axis)), axis, -1)
    if given:
        raise ValueError(f"{name}: detrend must be 'constant', 'linear', a function or False, got {given!r}")
    return lambda x: x


def _transforms(x: Any, plan: _Plan, trend: Callable[[Any], Any], onesided: bool) -> Any:
    """Transform segments of a signal: `[..., time]` to `[..., segment, frequency]`."""
    starts = np.arange(0, x.shape[-1] - plan.segment + 1, plan.step)
    segments = trend(x[..., starts[:, None] + np.arange(plan.segment)])
    windowed = segments * plan.window
    return jnp.fft.rfft(windowed, plan.length) if onesided else jnp.fft.fft(windowed, plan.length)


def _spectra(
    name: str,
    x: Any,
    y: Any,
    fs: Any,
    plan: tuple[Any, ...],
    trend: Any,
    onesided: Any,
    scaling: Any,
    axis: Any,
    boundary: Any = None,
    padded: bool = False,
    density: bool = True,
) -> tuple[Any, Any, Any]:
    """Return frequencies, times and spectra of segments; the last axis is that of times."""  # fmt: skip
    one_of(name, scaling, "scaling", ("density", "spectrum"))
    same = y is None or y is x
    x, y = inexact(name, x) * 2 if same else inexact(name, x, y)
    at = axis_of(name, axis, x.ndim)
    real = jnp.real(x).dtype
    x, y = jnp.moveaxis(x, at, -1), jnp.moveaxis(y, at if y.ndim == x.ndim else -1, -1)
    if x.shape[:-1] != y.shape[:-1]:
        shape = jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        x, y = (jnp.broadcast_to(v, (*shape, v.shape[-1])) for v in (x, y))
    size = max(x.shape[-1], y.shape[-1])
    if not x.size or not y.size:
        raise ValueError(f"{name}: signals must have elements, got shape {x.shape if not x.size else y.shape}")
    x, y = (jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, size - v.shape[-1])]) for v in (x, y))
    window, nperseg, noverlap, nfft = plan
    cut = _plan(name, window, nperseg, noverlap, nfft, size, real)
    extended = [_extended(name, v, boundary, cut.segment // 2) for v in ((x,) if same else (x, y))]
    if padded:
        missing = (-(extended[0].shape[-1] - cut.segment) % cut.step) % cut.segment
        extended = [jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, missing)]) for v in extended]
    if onesided and dtypes.is_complex(x.dtype):
        warn_user(f"{name}: the signal is complex, so both sides of the spectrum are returned", UserWarning)
        onesided = False
    taken = _trend(name, trend, at)
    found = [_transforms(v, cut, taken, bool(onesided)) for v in extended]
    scale = 1.0 / (fs * jnp.sum(cut.window**2)) if scaling == "density" else 1.0 / jnp.sum(cut.window) ** 2
    if density:
        out = jnp.conj(found[0]) * found[-1] * scale
        if onesided:
            end = None if cut.length % 2 else -1
            out = out.at[..., 1:end].multiply(2)
        out = jnp.real(out) if same else out
    else:
        out = found[0] * jnp.sqrt(scale)
    times = jnp.arange(out.shape[-2], dtype=real) * cut.step
    times = (times + (0 if boundary is not None else cut.segment / 2)) / fs
    frequencies = (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(cut.length, dtype=real) * fs
    wanted = real if density and same else dtypes.result_type(real, np.complex64)
    return frequencies, times, jnp.moveaxis(lax.convert_element_type(out, wanted), -1, at)


@remembered
def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """Compute the short-time Fourier transform.

    Args:
        x: a signal, along `axis`.
        fs: samples in a unit of time.
        window: an array, or the name of a window in SciPy ("hann", ("kaiser", 8.0)).
        nperseg: the length of segments.
        noverlap: the overlap of segments, by default half of their length.
        nfft: the length of transforms, by default that of segments.
        detrend: "constant", "linear", a function or False.
        return_onesided: whether to return only the nonnegative frequencies of a real signal.
        boundary: how the signal is extended by half a segment: "zeros", "even", "odd", "constant", or None.
        padded: whether the signal is padded with zeros to whole segments.
        axis: the axis of the signal.

    Returns:
        `(frequencies, times, transforms)`: frequencies lie along `axis`, times along the last axis.

    Raises:
        TypeError: `x` is not an array, or a length is not an integer.
        ValueError: the axis is out of range, the lengths do not match, or an option is unknown.
    """  # fmt: skip
    plan = (window, nperseg, noverlap, nfft)
    return _spectra("stft", x, None, fs, plan, detrend, return_onesided, "spectrum", axis, boundary, padded, False)


def _averaged(name: str, spectra: Any, average: Any) -> Any:
    """Average over segments, by the mean or the bias-corrected median."""
    one_of(name, average, "average", ("mean", "median"))
    if spectra.shape[-1] == 1:
        return spectra[..., 0]
    if average == "mean":
        return jnp.mean(spectra, axis=-1)
    n = spectra.shape[-1]
    bias = 1 + sum(1 / (i + 1) - 1 / i for i in range(2, n, 2))
    if dtypes.is_complex(spectra.dtype):
        middle = lax.complex(jnp.median(jnp.real(spectra), axis=-1), jnp.median(jnp.imag(spectra), axis=-1))
    else:
        middle = jnp.median(spectra, axis=-1)
    return middle / bias


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Estimate the cross spectral density of two signals by Welch's method.

    Args:
        x: a signal.
        y: another signal; the shorter one is padded with zeros. None stands for `x`.
        fs: as for `stft`.
        window: as for `stft`.
        nperseg: the length of segments, by default that of the signal.
        noverlap: as for `stft`.
        nfft: as for `stft`.
        detrend: as for `stft`.
        return_onesided: as for `stft`.
        scaling: "density" (per unit of frequency) or "spectrum".
        axis: as for `stft`.
        average: "mean" or "median" over segments.

    Returns:
        `(frequencies, density)`.

    Raises:
        TypeError: a signal is not an array, or a length is not an integer.
        ValueError: the axis is out of range, the lengths do not match, or an option is unknown.
    """  # fmt: skip
    plan = (window, nperseg, noverlap, nfft)
    frequencies, _, out = _spectra("csd", x, y, fs, plan, detrend, return_onesided, scaling, axis)
    return frequencies, _averaged("csd", out, average)


@remembered
def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Estimate the power spectral density of a signal by Welch's method; arguments are those of `csd`."""  # fmt: skip
    plan = (window, nperseg, noverlap, nfft)
    frequencies, _, out = _spectra("welch", x, None, fs, plan, detrend, return_onesided, scaling, axis)
    return frequencies, _averaged("welch", out, average)


@remembered
def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:
    """Invert `stft`.

    Args:
        Zxx: the transforms.
        fs: as for the forward transform.
        window: as for the forward transform.
        nperseg: as for the forward transform.
        noverlap: as for the forward transform.
        nfft: as for the forward transform.
        input_onesided: whether the transforms have only the nonnegative frequencies of a real signal.
        boundary: whether the signal was extended.
        time_axis: the axis of times in `Zxx`.
        freq_axis: the axis of frequencies in `Zxx`.

    Returns:
        `(times, signal)`.

    Raises:
        TypeError: `Zxx` is not an array, or a length is not an integer.
        ValueError: the axes are equal or out of range, or the lengths do not match.
    """  # fmt: skip
    name = "istft"
    (z,) = inexact(name, Zxx)
    if z.ndim < 2:
        raise ValueError(f"{name}: Zxx must have two axes or more, got {z.aval.str_short()}")
    frequency, time = axis_of(name, freq_axis, z.ndim, "freq_axis"), axis_of(name, time_axis, z.ndim, "time_axis")
    if frequency == time:
        raise ValueError(f"{name}: freq_axis and time_axis must differ, got {freq_axis} and {time_axis}")
    z = jnp.moveaxis(z, (frequency, time), (-1, -2))
    default = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    segment = default if nperseg is None else static_int(name, nperseg, "nperseg", 1)
    length = default + (input_onesided and segment == default + 1) if nfft is None else nfft
    cut = _plan(name, window, segment, noverlap, length, max(segment, 1), jnp.real(z).dtype)
    frames = jnp.fft.irfft(z, cut.length) if input_onesided else jnp.fft.ifft(z, cut.length)
    frames = frames[..., : cut.segment] * jnp.sum(cut.window) * cut.window
    count = z.shape[-2]
    index = np.arange(count)[:, None] * cut.step + np.arange(cut.segment)
    size = (count - 1) * cut.step + cut.segment
    x = jnp.zeros((*z.shape[:-2], size), frames.dtype).at[..., index].add(frames)
    norm = jnp.zeros(size, cut.window.dtype).at[index].add(jnp.broadcast_to(cut.window**2, index.shape))
    if boundary:
        half = cut.segment // 2
        x, norm = x[..., half : size - half], norm[half : size - half]
    x = x / jnp.where(norm > 1e-10, norm, 1.0)
    times = jnp.arange(x.shape[-1], dtype=norm.dtype) / fs
    return times, jnp.moveaxis(x, -1, time - (frequency < time)) if x.ndim > 1 else x
