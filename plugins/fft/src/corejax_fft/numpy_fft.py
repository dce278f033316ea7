"""`corejax.numpy.fft`: discrete Fourier transforms along any axes, with NumPy's names.

Transforms of float32 and complex64 are computed in 32 bits, of float64 and complex128 in 64. Narrower floats are
converted to 32 bits, integers and booleans to the default float. With `norm=None` or "backward" inverse transforms are
divided by the number of elements, with "forward" the forward transforms, with "ortho" both by its square root.
Source: `numpy.fft`.
"""

from __future__ import annotations

import math as _math
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

import corejax.numpy as _jnp
from corejax.extend import dtypes as _dtypes
from corejax.extend import remembered as _remembered
from corejax.extend.types import SymbolicDim as _SymbolicDim
from corejax.extend.types import as_dim as _as_dim
from corejax.extend.types import min_dim as _min_dim
from corejax_fft.fft import FftType as _FftType
from corejax_fft.fft import fft as _fft
from corejax_lax_basic import lax as _lax

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_INVERSE = (_FftType.IFFT, _FftType.IRFFT)
_NORMS = (None, "backward", "ortho", "forward")


# -- arguments ---------------------------------------------------------------------------------------------------


def _array(name: str, x: _Any) -> _Any:
    operand = _lax.as_operand(x)
    if operand is NotImplemented:
        raise TypeError(
            f"{name} takes an array, got {x!r} of type {type(x).__name__}; convert it with corejax.numpy.asarray"
        )
    return _lax.asarray(operand)


def _axis(name: str, axis: _Any, ndim: int) -> int:
    try:
        index = int(_as_dim(axis))
    except TypeError:
        raise TypeError(f"{name}: axis is an integer, got {axis!r} of type {type(axis).__name__}") from None
    if not -ndim <= index < ndim:
        raise _np.exceptions.AxisError(f"{name}: axis {index} is out of bounds for array of dimension {ndim}")
    return index % ndim


def _length(name: str, n: _Any, what: str) -> _Any:
    try:
        length = _as_dim(n)
    except TypeError:
        raise TypeError(f"{name}: {what} is an integer, got {n!r} of type {type(n).__name__}") from None
    if length < 1:
        raise ValueError(f"{name}: {what} is 1 or more, got {n!r}")
    return length


def _several(name: str, values: _Any, what: str) -> list[_Any]:
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name}: {what} is a sequence of integers, got {values!r}") from None


def _axes_and_lengths(name: str, x: _Any, s: _Any, axes: _Any) -> tuple[list[int], list[_Any] | None]:
    """Return the axes, counted from the front, and the requested lengths or None."""
    lengths = None if s is None else [_length(name, n, "each length in s") for n in _several(name, s, "s")]
    if axes is None:
        count = x.ndim if lengths is None else len(lengths)
        if count > x.ndim:
            raise ValueError(f"{name}: s has {count} lengths, and the array has {x.ndim} axes")
        resolved = list(range(x.ndim - count, x.ndim))
    else:
        resolved = [_axis(name, a, x.ndim) for a in _several(name, axes, "axes")]
    if len(set(resolved)) != len(resolved):
        raise ValueError(f"{name}: an axis is given twice, in axes {tuple(axes)}")
    if lengths is not None and len(lengths) != len(resolved):
        raise ValueError(f"{name}: s has {len(lengths)} lengths and axes {len(resolved)}; one for each axis is needed")
    return resolved, lengths


def _resize(x: _Any, axes: list[int], lengths: list[_Any]) -> _Any:
    """Crop axes, or pad them with zeros at the end."""
    for axis, length in zip(axes, lengths, strict=True):
        if (kept := _min_dim(x.shape[axis], length)) != x.shape[axis]:
            x = _lax.slice_in_dim(x, 0, kept, axis=axis)
    missing = [(0, 0, 0)] * x.ndim
    for axis, length in zip(axes, lengths, strict=True):
        missing[axis] = (0, length - x.shape[axis], 0)
    return _lax.pad(x, _lax.make_scalar(0, x.dtype, False), missing) if any(high != 0 for _, high, _ in missing) else x


def _normalise(x: _Any, kind: _FftType, lengths: _Sequence[_Any], norm: str | None) -> _Any:
    """Apply the normalisation `norm`; the inverse primitives divide by the number of elements already."""
    size: _Any = _math.prod(lengths)
    is_symbolic = isinstance(size, _SymbolicDim)
    inverse = kind in _INVERSE
    if norm == "ortho":
        root = size**0.5 if is_symbolic else _math.sqrt(size)
        factor = root if inverse else 1 / root
    elif norm == "forward":
        factor = 1.0 * size if inverse else 1 / size
    else:
        return x
    if is_symbolic:
        return _lax.mul(x, _lax.convert_element_type(factor, x.dtype))
    return _lax.mul(x, _lax.make_scalar(factor, x.dtype, False))


def _check_norm(name: str, norm: _Any) -> None:
    if not isinstance(norm, str | None) or norm not in _NORMS:
        raise ValueError(f"{name}: norm is None, 'backward', 'ortho' or 'forward', got {norm!r}")


def _transform(name: str, kind: _FftType, a: _Any, s: _Any, axes: _Any, norm: _Any) -> _Any:
    """Transform some axes, which are moved to the end first."""
    x = _array(name, a)
    _check_norm(name, norm)
    if kind is _FftType.RFFT and _dtypes.is_complex(x.dtype):
        raise ValueError(f"{name} takes real numbers, got {x.aval.str_short()}; take the real part, or use fft")
    positions, lengths = _axes_and_lengths(name, x, s, axes)
    if not positions:
        if kind in (_FftType.RFFT, _FftType.IRFFT):
            raise ValueError(f"{name}: at least one axis must be transformed, got none of {x.aval.str_short()}")
        return _fft(x, kind, ())
    if lengths is None:
        lengths = [x.shape[axis] for axis in positions]
        if kind is _FftType.IRFFT:
            lengths[-1] = 2 * (lengths[-1] - 1)
        for axis, length in zip(positions, lengths, strict=True):
            if length < 1:
                raise ValueError(
                    f"{name}: axis {axis} of {x.aval.str_short()} gives a transform of length {length}; "
                    f"lengths are 1 or more"
                )
    wanted = list(lengths)
    if kind is _FftType.IRFFT:
        wanted[-1] = lengths[-1] // 2 + 1
    x = _resize(x, positions, wanted)
    last = tuple(range(x.ndim - len(positions), x.ndim))
    are_last = tuple(positions) == last
    x = _fft(x if are_last else _jnp.moveaxis(x, positions, last), kind, lengths)
    x = _normalise(x, kind, lengths, norm)
    return x if are_last else _jnp.moveaxis(x, last, positions)


def _transform_axis(name: str, kind: _FftType, a: _Any, n: _Any, axis: _Any, norm: _Any) -> _Any:
    """Transform one axis."""
    if isinstance(axis, list | tuple):
        raise ValueError(f"{name} transforms one axis, got axis {axis!r}; use {name}n for several")
    return _transform(name, kind, a, None if n is None else (_length(name, n, "n"),), (axis,), norm)


def _function_of_axis(name: str, kind: _FftType, doc: str) -> _Any:
    def transform(a: _Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
        return _transform_axis(name, kind, a, n, axis, norm)

    return _remembered(_lax.named(transform, name, doc))


def _function_of_axes(name: str, kind: _FftType, doc: str, default: tuple[int, int] | None = None) -> _Any:
    """Return a transform of any number of axes; if there is a default, of exactly two."""

    def transform(a: _Any, s: _Any = None, axes: _Any = default, norm: str | None = None) -> _Any:
        if default is not None and len(_several(name, axes, "axes")) != 2:
            raise ValueError(f"{name} transforms two axes, got axes {axes!r}; use {name[:-1]}n for other numbers")
        return _transform(name, kind, a, s, axes, norm)

    return _remembered(_lax.named(transform, name, doc))


# -- complex -----------------------------------------------------------------------------------------------------

_FFT = """Compute the discrete Fourier transform along an axis.

    Element k of the result is the sum of `a[j] exp(-2 pi i j k / n)` over j.

    Args:
        a: an array.
        n: the length of the transform, by default that of the axis; the axis is cropped, or padded with zeros.
        axis: the axis to transform, by default the last.
        norm: the normalisation: None (the default), "backward", "ortho" or "forward", as described above.

    Raises:
        TypeError: `a` is not an array, or `n` or `axis` is not an integer.
        ValueError: `n` is less than 1, the axis does not exist, or `norm` is unknown.

    Example:
        >>> corejax.numpy.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))
        Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
_FFTN = """Compute the discrete Fourier transform along several axes.

    Args:
        a: an array.
        s: the length for each axis, by default those of the array.
        axes: the axes to transform; by default the last ones, as many as `s` has lengths, or all.
        norm: the normalisation, as for `fft`.

    Raises:
        TypeError: `a` is not an array, or `s` or `axes` is not a sequence of integers.
        ValueError: a length is less than 1, an axis does not exist or is given twice, or the numbers of lengths and
            axes differ.
    """
_LAST_TWO = (-2, -1)

fft = _function_of_axis("fft", _FftType.FFT, _FFT)
ifft = _function_of_axis("ifft", _FftType.IFFT, "Compute the inverse of `fft`; arguments and errors are the same.")
fft2 = _function_of_axes("fft2", _FftType.FFT, "Compute `fftn` over two axes.", _LAST_TWO)
ifft2 = _function_of_axes("ifft2", _FftType.IFFT, "Compute `ifftn` over two axes.", _LAST_TWO)
fftn = _function_of_axes("fftn", _FftType.FFT, _FFTN)
ifftn = _function_of_axes("ifftn", _FftType.IFFT, "Compute the inverse of `fftn`; arguments and errors are the same.")

# -- real --------------------------------------------------------------------------------------------------------

rfft = _function_of_axis(
    "rfft",
    _FftType.RFFT,
    "Compute the first `n // 2 + 1` elements of `fft` of real numbers. Raises ValueError for complex numbers.",
)
irfft = _function_of_axis(
    "irfft",
    _FftType.IRFFT,
    "Compute the inverse of `rfft`; `n` is the length of the result, by default even, `2 * (a.shape[axis] - 1)`.",
)
rfft2 = _function_of_axes("rfft2", _FftType.RFFT, "Compute `rfftn` over two axes.", _LAST_TWO)
irfft2 = _function_of_axes("irfft2", _FftType.IRFFT, "Compute `irfftn` over two axes.", _LAST_TWO)
rfftn = _function_of_axes(
    "rfftn",
    _FftType.RFFT,
    "Compute `rfft` along the last of the axes, then `fft` along the others; arguments as for `fftn`.",
)
irfftn = _function_of_axes(
    "irfftn", _FftType.IRFFT, "Compute the inverse of `rfftn`; the last length in `s` is that of the result."
)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@_remembered
def hfft(a: _Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
    """Compute `fft` of a signal with Hermitian symmetry, of which only the first half is given.

    The arguments are as for `irfft`; the result is real.
    """
    _check_norm("hfft", norm)
    return _transform_axis("hfft", _FftType.IRFFT, _jnp.conj(_array("hfft", a)), n, axis, _SWAPPED[norm])


@_remembered
def ihfft(a: _Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
    """Compute the inverse of `hfft`, for real numbers; arguments as for `rfft`."""
    _check_norm("ihfft", norm)
    return _lax.conj(_transform_axis("ihfft", _FftType.RFFT, a, n, axis, _SWAPPED[norm]))


# -- frequencies -------------------------------------------------------------------------------------------------


def _frequencies(name: str, indices: _Any, n: _Any, d: _Any, dtype: _Any, device: _Any) -> _Any:
    """Return `indices(dtype) / (n d)`, in a floating dtype."""
    n = _length(name, n, "n")
    spacing = _array(name, d)
    if spacing.ndim or isinstance(d, list | tuple):
        raise ValueError(f"{name}: d is one number, the time between samples, got {d!r}")
    if _dtypes.is_complex(spacing.dtype):
        raise TypeError(f"{name}: d is a real number, the time between samples, got {d!r}")
    dtype = _dtypes.canonicalize_dtype(_dtypes.default_float_dtype() if dtype is None else dtype)
    if not _dtypes.is_inexact(dtype):
        raise TypeError(f"{name}: frequencies are floating-point numbers, and dtype is {dtype}")
    out = indices(n, dtype) / _lax.convert_element_type(spacing * n, dtype)
    return out if device is None else out.to_device(device)


@_remembered
def fftfreq(n: int, d: _Any = 1.0, *, dtype: _Any = None, device: _Any = None) -> _Any:
    """Return the frequencies of the elements of `fft`: 0, 1, ..., then the negative ones, divided by `n * d`.

    Args:
        n: the length of the transform, at least 1.
        d: the sample spacing, 1 by default.
        dtype: dtype of the result, by default the default float.
        device: device of the result, by default the default device.

    Raises:
        TypeError: `n` is not an integer, `d` is not a real number, or `dtype` is not inexact.
        ValueError: `n` is less than 1, or `d` is not a scalar.
    """

    def indices(n: int, dtype: _Any) -> _Any:
        count = _jnp.arange(n)
        return _lax.convert_element_type(_jnp.where(count < (n + 1) // 2, count, count - n), dtype)

    return _frequencies("fftfreq", indices, n, d, dtype, device)


@_remembered
def rfftfreq(n: int, d: _Any = 1.0, *, dtype: _Any = None, device: _Any = None) -> _Any:
    """Return the frequencies of the elements of `rfft`: 0, 1, ..., `n // 2`, divided by `n * d`; see `fftfreq`."""
    return _frequencies("rfftfreq", lambda n, dtype: _jnp.arange(n // 2 + 1, dtype=dtype), n, d, dtype, device)


def _shifted(name: str, x: _Any, axes: _Any, sign: int) -> _Any:
    x = _array(name, x)
    if axes is None:
        positions = list(range(x.ndim))
    elif isinstance(axes, list | tuple):
        positions = [_axis(name, a, x.ndim) for a in axes]
    else:
        positions = [_axis(name, axes, x.ndim)]
    return _jnp.roll(x, [sign * (x.shape[a] // 2) for a in positions], positions) if positions else x


@_remembered
def fftshift(x: _Any, axes: _Any = None) -> _Any:
    """Move frequency zero to the middle of some axes, by default of all."""
    return _shifted("fftshift", x, axes, 1)


@_remembered
def ifftshift(x: _Any, axes: _Any = None) -> _Any:
    """Compute the inverse of `fftshift`, which differs from `fftshift` for odd lengths."""
    return _shifted("ifftshift", x, axes, -1)
