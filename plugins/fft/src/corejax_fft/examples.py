"""Applications of `fft`, for checks of its rules. Data only."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray
from corejax_fft.fft import FftType

F32, C64 = np.dtype(np.float32), np.dtype(np.complex64)


_ODD = {"stablehlo": "the interpreter counts the last element of the half spectrum only once"}


def _matrix(n: int, sign: int) -> np.ndarray[Any, Any]:
    matrix: np.ndarray[Any, Any] = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    return matrix


def _by_matrix(x: np.ndarray[Any, Any], *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Compute the transform by its definition, axis by axis."""
    inverse = fft_type in (FftType.IFFT, FftType.IRFFT)
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    out: np.ndarray[Any, Any] = x.astype(np.complex128)
    for axis, n in zip(axes, fft_lengths, strict=True):
        if axis == x.ndim - 1 and fft_type is FftType.IRFFT:
            break
        out = np.moveaxis(np.moveaxis(out, axis, -1) @ _matrix(n, 1 if inverse else -1), -1, axis)
        out = out / n if inverse else out
    n = fft_lengths[-1]
    if fft_type is FftType.RFFT:
        return out[..., : n // 2 + 1]
    if fft_type is not FftType.IRFFT:
        return out
    half = out[..., 1 : n - n // 2]
    whole = np.concatenate([out[..., : n // 2 + 1], np.conj(half[..., ::-1])], -1)
    whole[..., 0] = whole[..., 0].real
    out = (whole @ _matrix(n, 1)).real / n
    return out


def fft_examples() -> list[Example]:
    """Return examples of each transform: one axis and several, more than XLA supports, even and odd lengths."""
    rows = [
        (FftType.FFT, (3, 4), C64, (4,)),
        (FftType.FFT, (2, 3), C64, (2, 3)),
        (FftType.IFFT, (5,), C64, (5,)),
        (FftType.IFFT, (2, 1, 3, 2), C64, (2, 1, 3, 2)),
        (FftType.RFFT, (2, 6), F32, (6,)),
        (FftType.RFFT, (3, 5), F32, (3, 5)),
        (FftType.IRFFT, (2, 4), C64, (6,)),
        (FftType.IRFFT, (3, 3), C64, (3, 5)),
    ]
    return [
        Example(
            (ShapedArray(shape, dtype),),
            {"fft_type": kind, "fft_lengths": lengths},
            reference=_by_matrix,
            skip=_ODD if kind is FftType.IRFFT and lengths[-1] % 2 else {},
        )
        for kind, shape, dtype, lengths in rows
    ]
