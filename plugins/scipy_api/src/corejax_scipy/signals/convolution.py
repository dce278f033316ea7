"""Convolution and correlation in any number of axes: convolve convolve2d correlate correlate2d fftconvolve."""

from __future__ import annotations

import importlib
from typing import Any

import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_scipy._arguments import axis_of, inexact, one_of

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_MODES = ("full", "same", "valid")


def _operands(name: str, in1: Any, in2: Any, mode: Any) -> list[Any]:
    one_of(name, mode, "mode", _MODES)
    in1, in2 = inexact(name, in1, in2)
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of axes, got {in1.aval.str_short()} and "
            f"{in2.aval.str_short()}"
        )
    if not in1.size or not in2.size:
        raise ValueError(
            f"{name}: in1 and in2 must have elements, got {in1.aval.str_short()} and {in2.aval.str_short()}"
        )
    return [in1, in2]


def _part(name: str, shape1: Any, shape2: Any, mode: str) -> list[tuple[int, int]]:
    """Return, for each axis of the full result, the start and the length of the part that `mode` selects."""
    if mode == "full":
        return [(0, n + m - 1) for n, m in zip(shape1, shape2, strict=True)]
    if mode == "same":
        return [((m - 1) // 2, n) for n, m in zip(shape1, shape2, strict=True)]
    pairs = list(zip(shape1, shape2, strict=True))
    if not (all(n >= m for n, m in pairs) or all(n <= m for n, m in pairs)):
        raise ValueError(
            f"{name}: with mode 'valid' one array must be at least as long as the other along every axis, got shapes "
            f"{tuple(shape1)} and {tuple(shape2)}"
        )
    return [(min(n, m) - 1, abs(n - m) + 1) for n, m in pairs]


def _direct(name: str, in1: Any, in2: Any, mode: str, precision: Any) -> Any:
    """Convolve by XLA's convolution, with a flipped kernel."""
    if not in1.ndim:
        return in1 * in2
    parts = _part(name, in1.shape, in2.shape, mode)
    padding = [
        (m - 1 - start, start + length - n) for (start, length), n, m in zip(parts, in1.shape, in2.shape, strict=True)
    ]
    kernel = jnp.flip(in2)[None, None]
    return lax.conv_general_dilated(in1[None, None], kernel, (1,) * in1.ndim, padding, precision=precision)[0, 0]


@remembered
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """Compute the convolution of two arrays.

    Args:
        in1: an array.
        in2: an array with the same number of axes.
        mode: "full" for all shifts at which the arrays overlap, "same" for the middle, of the shape of `in1`, "valid"
            for shifts at which one array lies within the other.
        method: "direct" or "auto" for sums, "fft" for a product of Fourier transforms.
        precision: as for `lax.conv_general_dilated`.

    Returns:
        An array of the common floating-point or complex dtype.

    Raises:
        TypeError: an argument is not an array.
        ValueError: the numbers of axes differ, an array has no elements, the shapes do not allow "valid", or `mode` or
            `method` is unknown.
    """
    one_of("convolve", method, "method", ("auto", "direct", "fft"))
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    in1, in2 = _operands("convolve", in1, in2, mode)
    return _direct("convolve", in1, in2, mode, precision)


@remembered
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """Compute the correlation of two arrays; the second is conjugated.

    Arguments and errors are those of `convolve`.
    """
    one_of("correlate", method, "method", ("auto", "direct", "fft"))
    in1, in2 = _operands("correlate", in1, in2, mode)
    turned = jnp.flip(jnp.conj(in2))
    return fftconvolve(in1, turned, mode) if method == "fft" else _direct("correlate", in1, turned, mode, precision)


def _images(name: str, in1: Any, in2: Any, mode: str, boundary: Any, fillvalue: Any) -> list[Any]:
    in1, in2 = _operands(name, in1, in2, mode)
    if in1.ndim != 2:
        raise ValueError(
            f"{name}: in1 and in2 must have two axes, got {in1.aval.str_short()} and {in2.aval.str_short()}"
        )
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}: boundary must be 'fill' and fillvalue 0, got {boundary!r} and {fillvalue!r}"
        )
    return [in1, in2]


@remembered
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0, precision: Any = None
) -> Any:
    """Convolve two matrices, padded with zeros; other values of `boundary` and `fillvalue` are not supported."""
    in1, in2 = _images("convolve2d", in1, in2, mode, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision)


@remembered
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0, precision: Any = None
) -> Any:
    """Correlate two matrices, padded with zeros; as in SciPy, the middle for "same" rounds up."""
    in1, in2 = _images("correlate2d", in1, in2, mode, boundary, fillvalue)
    turned = jnp.flip(jnp.conj(in2))
    if mode != "same":
        out = _direct("correlate2d", in1, turned, mode, precision)
        larger = in1.shape != in2.shape and all(n <= m for n, m in zip(in1.shape, in2.shape, strict=True))
        return jnp.conj(out) if mode == "valid" and larger else out  # SciPy swaps the two and conjugates the result
    full = _direct("correlate2d", in1, turned, "full", precision)
    starts = [m // 2 for m in in2.shape]
    return lax.slice(full, starts, [s + n for s, n in zip(starts, in1.shape, strict=True)])


def _fast_length(n: int) -> int:
    """Return the next number without prime factors above 5; symbolic sizes stay."""
    return n if isinstance(n, SymbolicDim) else importlib.import_module("scipy.fft").next_fast_len(n, real=True)


@remembered
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolve by Fourier transforms, along some axes or all.

    Args:
        in1: as for `convolve`.
        in2: as for `convolve`.
        mode: as for `convolve`.
        axes: the axes to convolve; the other axes broadcast.

    Raises:
        TypeError: an argument is not an array.
        ValueError: as for `convolve`; or an axis is out of range or given twice, or the other axes do not broadcast.
    """
    name = "fftconvolve"
    in1, in2 = _operands(name, in1, in2, mode)
    given = range(in1.ndim) if axes is None else axes if isinstance(axes, tuple | list | range) else (axes,)
    chosen = [axis_of(name, a, in1.ndim) for a in given]
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{name}: an axis is given twice, in axes {axes!r}")
    for a in set(range(in1.ndim)) - set(chosen):
        if in1.shape[a] != in2.shape[a] and 1 not in (in1.shape[a], in2.shape[a]):
            raise ValueError(
                f"{name}: axis {a} is not one of axes {axes!r}, so its lengths must be equal or 1, got shapes "
                f"{in1.shape} and {in2.shape}"
            )
    if not chosen:
        return in1 * in2
    parts = _part(name, [in1.shape[a] for a in chosen], [in2.shape[a] for a in chosen], mode)
    lengths = [_fast_length(in1.shape[a] + in2.shape[a] - 1) for a in chosen]
    complexes = dtypes.is_complex(in1.dtype)
    forward, backward = (jnp.fft.fftn, jnp.fft.ifftn) if complexes else (jnp.fft.rfftn, jnp.fft.irfftn)
    out = backward(forward(in1, lengths, chosen) * forward(in2, lengths, chosen), lengths, chosen)
    for a, (start, length) in zip(chosen, parts, strict=True):
        out = lax.slice_in_dim(out, start, start + length, axis=a)
    return lax.convert_element_type(out, in1.dtype)
