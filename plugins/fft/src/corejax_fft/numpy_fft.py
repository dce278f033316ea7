"""`corejax.numpy.fft`: discrete Fourier transforms along any axes, NumPy's names.

Transforms of float32 and complex64 are of 32 bits, of float64 and complex128 of 64; narrower floats count in 32,
integers and booleans in the default float. With `norm=None` or "backward" inverse transforms are divided by the number
of elements, with "forward" the others, with "ortho" each by its root. Source: `numpy.fft`.
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
    found = _lax.as_operand(x)
    if found is NotImplemented:
        raise TypeError(
            f"{name} takes an array, got {x!r} of type {type(x).__name__}; make it one with corejax.numpy.asarray"
        )
    return _lax.asarray(found)


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
    """The axes, counted from the front, and the lengths that were asked for."""
    lengths = None if s is None else [_length(name, n, "each length in s") for n in _several(name, s, "s")]
    if axes is None:
        count = x.ndim if lengths is None else len(lengths)
        if count > x.ndim:
            raise ValueError(f"{name}: s has {count} lengths, and the array has {x.ndim} axes")
        found = list(range(x.ndim - count, x.ndim))
    else:
        found = [_axis(name, a, x.ndim) for a in _several(name, axes, "axes")]
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: an axis is given twice, in axes {tuple(axes)}")
    if lengths is not None and len(lengths) != len(found):
        raise ValueError(f"{name}: s has {len(lengths)} lengths and axes {len(found)}; one for each axis is needed")
    return found, lengths


def _resized(x: _Any, axes: list[int], lengths: list[_Any]) -> _Any:
    """Axes cropped, or filled up with zeros behind."""
    for axis, length in zip(axes, lengths, strict=True):
        if (kept := _min_dim(x.shape[axis], length)) != x.shape[axis]:
            x = _lax.slice_in_dim(x, 0, kept, axis=axis)
    missing = [(0, 0, 0)] * x.ndim
    for axis, length in zip(axes, lengths, strict=True):
        missing[axis] = (0, length - x.shape[axis], 0)
    return _lax.pad(x, _lax.make_scalar(0, x.dtype, False), missing) if any(high != 0 for _, high, _ in missing) else x


def _scaled(x: _Any, kind: _FftType, lengths: _Sequence[_Any], norm: str | None) -> _Any:
    """Divided as `norm` says, by what the inverse transforms are not divided by already."""
    size = _math.prod(lengths)
    inverse = kind in _INVERSE
    if norm == "ortho":
        root = size**0.5 if isinstance(size, _SymbolicDim) else _math.sqrt(size)
        factor = root if inverse else 1 / root
    elif norm == "forward":
        factor = 1.0 * size if inverse else 1 / size
    else:
        return x
    if isinstance(size, _SymbolicDim):
        return _lax.mul(x, _lax.convert_element_type(factor, x.dtype))
    return _lax.mul(x, _lax.make_scalar(factor, x.dtype, False))


def _checked_norm(name: str, norm: _Any) -> None:
    if not isinstance(norm, str | None) or norm not in _NORMS:
        raise ValueError(f"{name}: norm is None, 'backward', 'ortho' or 'forward', got {norm!r}")


def _transform(name: str, kind: _FftType, a: _Any, s: _Any, axes: _Any, norm: _Any) -> _Any:
    """The transform of some axes, moved to the end for it."""
    x = _array(name, a)
    _checked_norm(name, norm)
    if kind is _FftType.RFFT and _dtypes.is_complex(x.dtype):
        raise ValueError(f"{name} is of real numbers, got {x.aval.str_short()}; take the real part, or fft")
    found, lengths = _axes_and_lengths(name, x, s, axes)
    if not found:
        if kind in (_FftType.RFFT, _FftType.IRFFT):
            raise ValueError(f"{name}: at least one axis has to be transformed, got none of {x.aval.str_short()}")
        return _fft(x, kind, ())
    if lengths is None:
        lengths = [x.shape[axis] for axis in found]
        if kind is _FftType.IRFFT:
            lengths[-1] = 2 * (lengths[-1] - 1)
        for axis, length in zip(found, lengths, strict=True):
            if length < 1:
                raise ValueError(
                    f"{name}: axis {axis} of {x.aval.str_short()} makes a transform of length {length}; "
                    f"lengths are 1 or more"
                )
    wanted = list(lengths)
    if kind is _FftType.IRFFT:
        wanted[-1] = lengths[-1] // 2 + 1
    x = _resized(x, found, wanted)
    last = tuple(range(x.ndim - len(found), x.ndim))
    in_place = tuple(found) == last
    x = _fft(x if in_place else _jnp.moveaxis(x, found, last), kind, lengths)
    x = _scaled(x, kind, lengths, norm)
    return x if in_place else _jnp.moveaxis(x, last, found)


def _one(name: str, kind: _FftType, a: _Any, n: _Any, axis: _Any, norm: _Any) -> _Any:
    """The transform of one axis."""
    if isinstance(axis, list | tuple):
        raise ValueError(f"{name} is of one axis, got axis {axis!r}; {name}n is of several")
    return _transform(name, kind, a, None if n is None else (_length(name, n, "n"),), (axis,), norm)


def _of_one_axis(name: str, kind: _FftType, doc: str) -> _Any:
    def transform(a: _Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
        return _one(name, kind, a, n, axis, norm)

    return _remembered(_lax.named(transform, name, doc))


def _of_several_axes(name: str, kind: _FftType, doc: str, default: tuple[int, int] | None = None) -> _Any:
    """Of any axes; if there is a default, of as many as that has."""

    def transform(a: _Any, s: _Any = None, axes: _Any = default, norm: str | None = None) -> _Any:
        if default is not None and len(_several(name, axes, "axes")) != 2:
            raise ValueError(f"{name} is of two axes, got axes {axes!r}; {name[:-1]}n is of any number")
        return _transform(name, kind, a, s, axes, norm)

    return _remembered(_lax.named(transform, name, doc))


# -- complex -----------------------------------------------------------------------------------------------------

_FFT = """The discrete Fourier transform along an axis: element k is the sum of `a[j] exp(-2 pi i j k / n)` over j.

    Args:
        a: an array.
        n: the length, by default that of the axis, which is cropped or filled up with zeros.
        axis: the axis.
        norm: None, "backward", "ortho" or "forward", see above.

    Raises:
        TypeError: `a` is no array, `n` or `axis` no integer.
        ValueError: `n` is below 1, there is no such axis, or `norm` is another.

    Example:
        >>> corejax.numpy.fft.fft(jnp.array([1.0, 2.0, 3.0, 4.0]))
        Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
_FFTN = """The discrete Fourier transform along several axes.

    Args:
        a: an array.
        s: a length for each axis, by default those of the array.
        axes: the axes, by default the last ones, as many as `s` has lengths, or all.
        norm: as in `fft`.

    Raises:
        TypeError: `a` is no array, `s` or `axes` no sequence of integers.
        ValueError: a length is below 1, an axis is not there or given twice, or there is not one length for each.
    """
_LAST_TWO = (-2, -1)

fft = _of_one_axis("fft", _FftType.FFT, _FFT)
ifft = _of_one_axis("ifft", _FftType.IFFT, "The inverse of `fft`; arguments and errors are the same.")
fft2 = _of_several_axes("fft2", _FftType.FFT, "`fftn` of two axes.", _LAST_TWO)
ifft2 = _of_several_axes("ifft2", _FftType.IFFT, "`ifftn` of two axes.", _LAST_TWO)
fftn = _of_several_axes("fftn", _FftType.FFT, _FFTN)
ifftn = _of_several_axes("ifftn", _FftType.IFFT, "The inverse of `fftn`; arguments and errors are the same.")

# -- real --------------------------------------------------------------------------------------------------------

rfft = _of_one_axis(
    "rfft",
    _FftType.RFFT,
    "The first `n // 2 + 1` elements of `fft` of real numbers, which say the others; ValueError for complex ones.",
)
irfft = _of_one_axis(
    "irfft",
    _FftType.IRFFT,
    "The inverse of `rfft`; `n` is the length of the result, by default even, `2 * (a.shape[axis] - 1)`.",
)
rfft2 = _of_several_axes("rfft2", _FftType.RFFT, "`rfftn` of two axes.", _LAST_TWO)
irfft2 = _of_several_axes("irfft2", _FftType.IRFFT, "`irfftn` of two axes.", _LAST_TWO)
rfftn = _of_several_axes(
    "rfftn",
    _FftType.RFFT,
    "`rfft` along the last of the axes, then `fft` along the others; arguments as of `fftn`.",
)
irfftn = _of_several_axes(
    "irfftn", _FftType.IRFFT, "The inverse of `rfftn`; the last of `s` is the length of the result."
)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@_remembered
def hfft(a: _Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
    """`fft` of a signal whose second half is the conjugate of the first one turned round, which alone is given.

    Arguments as of `irfft`; the result is real.
    """
    _checked_norm("hfft", norm)
    return _one("hfft", _FftType.IRFFT, _jnp.conj(_array("hfft", a)), n, axis, _SWAPPED[norm])


@_remembered
def ihfft(a: _Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
    """The inverse of `hfft`, of real numbers; arguments as of `rfft`."""
    _checked_norm("ihfft", norm)
    return _lax.conj(_one("ihfft", _FftType.RFFT, a, n, axis, _SWAPPED[norm]))


# -- frequencies -------------------------------------------------------------------------------------------------


def _frequencies(name: str, indices: _Any, n: _Any, d: _Any, dtype: _Any, device: _Any) -> _Any:
    """`indices(dtype) / (n d)`, in a floating dtype."""
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
    """The frequencies of the elements of `fft`: 0, 1, ..., then the negative ones, over `n * d`.

    Args:
        n: the length of the transform, 1 or more.
        d: the time between samples.
        dtype: of the result, by default the default float.
        device: where the result is put.

    Raises:
        TypeError: `n` is no integer, `d` no number, or `dtype` holds no fractions.
        ValueError: `n` is below 1, or `d` is several numbers.
    """

    def indices(n: int, dtype: _Any) -> _Any:
        count = _jnp.arange(n)
        return _lax.convert_element_type(_jnp.where(count < (n + 1) // 2, count, count - n), dtype)

    return _frequencies("fftfreq", indices, n, d, dtype, device)


@_remembered
def rfftfreq(n: int, d: _Any = 1.0, *, dtype: _Any = None, device: _Any = None) -> _Any:
    """The frequencies of the elements of `rfft`: 0, 1, ..., `n // 2`, over `n * d`; arguments as of `fftfreq`."""
    return _frequencies("rfftfreq", lambda n, dtype: _jnp.arange(n // 2 + 1, dtype=dtype), n, d, dtype, device)


def _shifted(name: str, x: _Any, axes: _Any, sign: int) -> _Any:
    x = _array(name, x)
    if axes is None:
        found = list(range(x.ndim))
    elif isinstance(axes, list | tuple):
        found = [_axis(name, a, x.ndim) for a in axes]
    else:
        found = [_axis(name, axes, x.ndim)]
    return _jnp.roll(x, [sign * (x.shape[a] // 2) for a in found], found) if found else x


@_remembered
def fftshift(x: _Any, axes: _Any = None) -> _Any:
    """The frequency zero moved to the middle of some axes, by default all."""
    return _shifted("fftshift", x, axes, 1)


@_remembered
def ifftshift(x: _Any, axes: _Any = None) -> _Any:
    """The inverse of `fftshift`, which differs from it where lengths are odd."""
    return _shifted("ifftshift", x, axes, -1)
