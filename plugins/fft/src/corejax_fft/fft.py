"""`fft`: discrete Fourier transforms over the last axes of an array, and the rules of the primitive.

    FFT, IFFT : c[*b, *n] -> c[*b, *n]        RFFT : f[*b, *n, m] -> c[*b, *n, m//2+1]        IRFFT : the inverse of
    RFFT

Sources: StableHLO `fft`; values are computed by `scipy.fft`, which keeps float32.
"""

from __future__ import annotations

import enum
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, deflinear, dtypes, get_aval, move_batch_axis
from corejax.extend.programs import register_param_type
from corejax.extend.types import as_dim
from corejax_lax_basic import lax

__all__ = ["FftType", "fft", "fft_p"]


@register_param_type
class FftType(enum.IntEnum):
    """The kind of transform: complex to complex, real to complex or complex to real, forward or inverse."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_COMPLEX: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}
_REAL = {wide: part for part, wide in _COMPLEX.items()}


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """Compute the discrete Fourier transform over the last axes.

    Args:
        x: an array. Integers and 16-bit floats are converted to floating point of at least 32 bits, and real numbers
            to complex ones if the transform requires it.
        fft_type: an `FftType`, or its name: "FFT", "IFFT", "RFFT" (of real numbers, the non-redundant half of the
            result), "IRFFT" (the inverse of RFFT).
        fft_lengths: the lengths of the transformed axes, which are the last ones; each at least 1. The lengths are
            those of `x`, or for "IRFFT" those of the result. Without lengths, `x` is returned in the dtype of the
            transform.

    Raises:
        TypeError: `x` is not an array, or `fft_type` is neither an `FftType` nor a string.
        ValueError: the transform is unknown, `x` is complex for "RFFT", or the lengths do not match.
    """
    kind = _kind(fft_type)
    lengths = _lengths(fft_lengths)
    x = _to_input_dtype(kind, x)
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths) if lengths else x


def _kind(fft_type: Any) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if isinstance(fft_type, str):
        if fft_type.upper() in FftType.__members__:
            return FftType[fft_type.upper()]
        raise ValueError(f"fft: fft_type is one of {', '.join(FftType.__members__)}, got {fft_type!r}")
    got = f"{fft_type!r} of type {type(fft_type).__name__}"
    raise TypeError(f"fft: fft_type is a corejax.lax.FftType or its name, got {got}")


def _lengths(fft_lengths: Any) -> tuple[Any, ...]:
    try:
        lengths = tuple([as_dim(n) for n in fft_lengths])
    except TypeError:
        raise TypeError(f"fft: fft_lengths is a sequence of integers, got {fft_lengths!r}") from None
    for n in lengths:
        if n < 1:
            raise ValueError(f"fft: each of fft_lengths is 1 or more, got {lengths}")
    return lengths


def _to_input_dtype(kind: FftType, x: Any) -> Any:
    """Convert `x` to the dtype of the transform."""
    x = lax.asarray(x)
    dtype = get_aval(x).dtype
    if kind is FftType.RFFT and dtypes.is_complex(dtype):
        raise ValueError(f"fft: RFFT takes real numbers, got {get_aval(x).str_short()}; take FFT, or the real part")
    if not dtypes.is_inexact(dtype):
        wanted = np.dtype(dtypes.default_float_dtype())
    elif dtypes.finfo(dtype).bits < 32:
        wanted = np.dtype(np.float32)
    else:
        wanted = dtype
    if kind is not FftType.RFFT:
        wanted = _COMPLEX.get(wanted, wanted)
    return x if wanted == dtype else lax.convert_element_type(x, wanted)


# -- types -------------------------------------------------------------------------------------------------------


def _abstract_eval(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    out_dtypes = _COMPLEX if fft_type is FftType.RFFT else _REAL
    name = f"fft: {fft_type.name}"
    if x.dtype not in out_dtypes:
        raise TypeError(f"{name} takes {' or '.join(map(str, out_dtypes))}, got {x.str_short()}")
    count = len(fft_lengths)
    if not 0 < count <= x.ndim:
        raise ValueError(f"{name} over {count} axes of {x.str_short()}, which has {x.ndim}; fft_lengths {fft_lengths}")
    before, last = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    expected = half if fft_type is FftType.IRFFT else fft_lengths
    if last != expected:
        raise ValueError(f"{name} with fft_lengths {fft_lengths} is of last axes {expected}, got {x.str_short()}")
    if fft_type is FftType.RFFT:
        return ShapedArray((*before, *half), out_dtypes[x.dtype])
    if fft_type is FftType.IRFFT:
        return ShapedArray((*before, *fft_lengths), out_dtypes[x.dtype])
    return ShapedArray(x.shape, x.dtype)


# -- values ------------------------------------------------------------------------------------------------------

_FUNCTIONS = {FftType.FFT: "fftn", FftType.IFFT: "ifftn", FftType.RFFT: "rfftn", FftType.IRFFT: "irfftn"}
_ONE_AXIS_FUNCTIONS = {kind: name[:-1] for kind, name in _FUNCTIONS.items()}


def _impl(x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """Compute the transform by `scipy.fft`, which is imported when the first transform is computed."""
    scipy_fft = importlib.import_module("scipy.fft")
    if not x.size:
        out = _abstract_eval(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(out.shape, out.dtype)
    if len(fft_lengths) == 1:
        return getattr(scipy_fft, _ONE_AXIS_FUNCTIONS[fft_type])(x, fft_lengths[0])
    return getattr(scipy_fft, _FUNCTIONS[fft_type])(x, fft_lengths, tuple(range(-len(fft_lengths), 0)))


# -- transformations ---------------------------------------------------------------------------------------------


def _multiplicity(count: Any, length: Any, dtype: Any) -> Any:
    """Return how often each element of the half spectrum occurs in the whole: once at both ends, else twice."""
    if type(length) is int:
        return np.where(2 * np.arange(count) % length == 0, 1, 2).astype(dtype)
    places = lax.iota(np.dtype(np.int32), count)
    is_end = lax.eq(2 * places % lax.make_scalar(length, places.dtype), 0)
    return lax.in_dtype(lax.select(is_end, lax.full_like(places, 1), lax.full_like(places, 2)), np.dtype(dtype))


def _times(x: Any, row: Any) -> Any:
    """Multiply `x` by a row along its last axis."""
    shape = get_aval(x).shape
    return lax.mul(x, lax.broadcast_in_dim(lax.asarray(row), shape, (len(shape) - 1,)))


def _transpose(ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> list[Any]:
    """Transform the cotangent: the matrix is symmetric, and half spectra are weighted by their multiplicity."""
    aval = get_aval(ct)
    if fft_type in (FftType.FFT, FftType.IFFT):
        return [fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]
    size = math.prod(fft_lengths)
    if fft_type is FftType.RFFT:
        weights = size / _multiplicity(aval.shape[-1], fft_lengths[-1], np.float64)
        row = weights.astype(aval.dtype)
        return [fft_p.bind(_times(lax.conj(ct), row), fft_type=FftType.IRFFT, fft_lengths=fft_lengths)]
    out = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
    out_aval = get_aval(out)
    row = (_multiplicity(out_aval.shape[-1], fft_lengths[-1], np.float64) / size).astype(out_aval.dtype)
    return [lax.conj(_times(out, row))]


def _vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[Any, int]:
    return fft_p.bind(move_batch_axis(axis_size, dims[0], 0, vals[0]), **params), 0


fft_p = Primitive(
    "fft",
    linear_in=(0,),
    tags=("linear",),
    impl=_impl,
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="The discrete Fourier transform over the last axes.",
)
deflinear(fft_p, _transpose)
