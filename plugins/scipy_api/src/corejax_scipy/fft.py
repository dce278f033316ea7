"""`corejax.scipy.fft`: discrete cosine transforms of type 2 and their inverses.

With `norm=None` or "backward" the transform is `2 sum(x[j] cos(pi k (2 j + 1) / (2 n)))`; with "ortho" it is
orthonormal. It is computed by a complex transform of the same length (Makhoul 1980). Source: `scipy.fft`.
"""

from __future__ import annotations

import math as _math
from typing import Any as _Any

import corejax.numpy as _jnp
from corejax.extend import dtypes as _dtypes
from corejax_lax_basic import lax as _lax
from corejax_scipy._arguments import axis_of as _axis_of
from corejax_scipy._arguments import inexact as _inexact
from corejax_scipy._arguments import one_of as _one_of
from corejax_scipy._arguments import static_int as _static_int

__all__ = ["dct", "dctn", "idct", "idctn"]


def _checked(name: str, x: _Any, type: _Any, norm: _Any) -> _Any:
    if not isinstance(type, int) or type != 2:
        raise NotImplementedError(f"{name}: type must be 2, got {type!r}")
    _one_of(name, norm, "norm", (None, "backward", "ortho"))
    return _inexact(name, x)[0]


def _resized(x: _Any, length: int, axis: int) -> _Any:
    """Crop an array, or pad it with zeros at the end."""
    if x.shape[axis] > length:
        return _lax.slice_in_dim(x, 0, length, axis=axis)
    missing = [(0, length - x.shape[axis] if i == axis else 0) for i in range(x.ndim)]
    return _jnp.pad(x, missing)


def _along(row: _Any, ndim: int, axis: int) -> _Any:
    return row.reshape([-1 if i == axis else 1 for i in range(ndim)])


def _phases(n: int, dtype: _Any) -> _Any:
    """Return `exp(-i pi k / (2 n))`."""
    angles = _jnp.arange(n, dtype=dtype) * (-_math.pi / (2 * n))
    return _lax.complex(_jnp.cos(angles), _jnp.sin(angles))


def _scales(n: int, dtype: _Any) -> _Any:
    """Return the divisors that make the plain transform orthonormal."""
    return _jnp.asarray([_math.sqrt(4 * n), *[_math.sqrt(2 * n)] * (n - 1)], dtype=dtype)


def _forward(x: _Any, axis: int, norm: str | None) -> _Any:
    if _dtypes.is_complex(x.dtype):
        return _lax.complex(_forward(_jnp.real(x), axis, norm), _forward(_jnp.imag(x), axis, norm))
    n = x.shape[axis]
    even = _lax.slice_in_dim(x, 0, n, 2, axis)
    odd = _lax.rev(_lax.slice_in_dim(x, 1, n, 2, axis), (axis,)) if n > 1 else None
    whole = _jnp.fft.fft(even if odd is None else _jnp.concatenate([even, odd], axis), axis=axis)
    part = _jnp.real(whole).dtype
    out = 2 * _jnp.real(whole * _along(_phases(n, part), x.ndim, axis))
    return out / _along(_scales(n, part), x.ndim, axis) if norm == "ortho" else out


def _backward(x: _Any, axis: int, norm: str | None) -> _Any:
    if _dtypes.is_complex(x.dtype):
        return _lax.complex(_backward(_jnp.real(x), axis, norm), _backward(_jnp.imag(x), axis, norm))
    n = x.shape[axis]
    if norm == "ortho":
        x = x * _along(_scales(n, x.dtype), x.ndim, axis)
    # Invert the transform of a real sequence, (x[k] - i x[n - k]) exp(i pi k / (2 n)) / 2.
    turned = _jnp.roll(_jnp.flip(x, axis), 1, axis)
    turned = turned * _along(_jnp.asarray([0.0] + [1.0] * (n - 1), dtype=x.dtype), x.ndim, axis)
    spectrum = _lax.complex(x, -turned)
    spectrum = spectrum * _along(_jnp.conj(_phases(n, x.dtype)), x.ndim, axis) * 0.5
    v = _jnp.real(_jnp.fft.ifft(spectrum, axis=axis))
    order = [j // 2 if j % 2 == 0 else n - 1 - j // 2 for j in range(n)]
    return _jnp.take(v, _jnp.asarray(order), axis=axis)


def _one(name: str, transform: _Any, x: _Any, type: _Any, n: _Any, axis: _Any, norm: _Any) -> _Any:
    x = _checked(name, x, type, norm)
    at = _axis_of(name, axis, x.ndim)
    length = x.shape[at] if n is None else _static_int(name, n, "n", 1)
    if length < 1:
        raise ValueError(f"{name}: axis {axis} of {x.aval.str_short()} has no elements")
    return transform(_wide(_resized(x, length, at)), at, norm)


def _wide(x: _Any) -> _Any:
    """Convert 16-bit floats to float32."""
    return x if _dtypes.finfo(x.dtype).bits >= 32 else x.astype("float32")


def _several(name: str, transform: _Any, x: _Any, type: _Any, s: _Any, axes: _Any, norm: _Any) -> _Any:
    x = _checked(name, x, type, norm)
    lengths = None if s is None else list(s) if isinstance(s, list | tuple) else [s]
    if axes is None:
        count = x.ndim if lengths is None else len(lengths)
        if count > x.ndim:
            raise ValueError(f"{name}: s has {count} lengths, but the array has {x.ndim} axes")
        axes = range(x.ndim - count, x.ndim)
    found = [_axis_of(name, a, x.ndim) for a in (axes if isinstance(axes, list | tuple | range) else [axes])]
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: an axis is given twice, in axes {axes!r}")
    if lengths is not None and len(lengths) != len(found):
        raise ValueError(f"{name}: s has {len(lengths)} lengths for {len(found)} axes; give one for each axis")
    for i, at in enumerate(found):
        x = _one(name, transform, x, 2, None if lengths is None else lengths[i], at, norm)
    return x


def dct(x: _Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
    """Compute the discrete cosine transform along an axis.

    Args:
        x: an array; both parts of complex numbers are transformed.
        type: must be 2.
        n: the length of the transform, by default that of the axis; the axis is cropped or padded with zeros.
        axis: the axis to transform.
        norm: None, "backward" or "ortho".

    Raises:
        TypeError: `x` is not an array, or `n` or `axis` is not an integer.
        ValueError: `n` is below 1, the axis is out of range, or `norm` is unknown.
        NotImplementedError: `type` is not 2.
    """
    return _one("dct", _forward, x, type, n, axis, norm)


def idct(x: _Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> _Any:
    """Compute the inverse of `dct`; arguments and errors are the same."""
    return _one("idct", _backward, x, type, n, axis, norm)


def dctn(x: _Any, type: int = 2, s: _Any = None, axes: _Any = None, norm: str | None = None) -> _Any:
    """Compute `dct` along several axes: by default the last ones, as many as `s` has lengths, or all axes."""
    return _several("dctn", _forward, x, type, s, axes, norm)


def idctn(x: _Any, type: int = 2, s: _Any = None, axes: _Any = None, norm: str | None = None) -> _Any:
    """Compute the inverse of `dctn`; arguments and errors are the same."""
    return _several("idctn", _backward, x, type, s, axes, norm)
