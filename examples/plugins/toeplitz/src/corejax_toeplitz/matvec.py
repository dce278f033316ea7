"""The product of a Toeplitz matrix and a vector by FFT, in O((n + m) log(n + m)).

The matrix is given by its diagonals d, from the top right corner to the bottom left: T[i, j] = d[i - j + m - 1].
The product T x is the "valid" part of the convolution of d and x. It is bilinear, and its transposes are products of
the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft

from corejax.extend import (
    Primitive,
    ShapedArray,
    add_tangents,
    dtypes,
    get_aval,
    is_undef_primal,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
)


def fft_length(diagonals: ShapedArray) -> int:
    """Return the length of the transforms; wrapping around does not affect the part of the result that is used."""
    return int(scipy.fft.next_fast_len(diagonals.shape[-1], real=True) or 0)


def _impl(d: np.ndarray, x: np.ndarray) -> np.ndarray:
    narrow = d.dtype not in (np.float32, np.float64, np.complex64, np.complex128)
    if narrow:
        return _impl(d.astype(np.float32), x.astype(np.float32)).astype(d.dtype)
    size, m = d.shape[-1], x.shape[-1]
    length = fft_length(ShapedArray(d.shape, d.dtype))
    forward: Any
    back: Any
    forward, back = (scipy.fft.fft, scipy.fft.ifft) if d.dtype.kind == "c" else (scipy.fft.rfft, scipy.fft.irfft)
    return back(forward(d, length) * forward(x, length), length)[..., m - 1 : size]


def _abstract_eval(d: ShapedArray, x: ShapedArray) -> ShapedArray:
    given = f"got diagonals {d.str_short()} and vector {x.str_short()}"
    if d.dtype != x.dtype or not dtypes.is_inexact(d.dtype):
        raise TypeError(f"toeplitz.matvec takes real or complex floating-point numbers of one dtype, {given}")
    if d.ndim != x.ndim or d.ndim == 0:
        raise TypeError(f"toeplitz.matvec takes operands of one rank, of at least 1, {given}")
    size, m = d.shape[-1], x.shape[-1]
    if m == 0 or size < m:
        raise TypeError(f"toeplitz.matvec: m entries, at least one, take n + m - 1 diagonals with n >= 1, {given}")
    try:
        batch = np.broadcast_shapes(d.shape[:-1], x.shape[:-1])
    except ValueError:
        raise TypeError(f"toeplitz.matvec: leading axes are equal or of length 1, {given}") from None
    return ShapedArray((*batch, size - m + 1), d.dtype, d.weak_type and x.weak_type)


matvec_p = Primitive(
    "toeplitz.matvec",
    impl=_impl,
    abstract_eval=_abstract_eval,
    linear_in=(0, 1),
    doc="y[..., i] = sum over j of d[..., i - j + m - 1] * x[..., j]; leading axes are equal or of length 1.",
)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Apply the product rule. None is a zero tangent, for which nothing is computed."""
    (d, x), (d_dot, x_dot) = primals, tangents
    first = None if d_dot is None else matvec_p.bind(d_dot, x)
    second = None if x_dot is None else matvec_p.bind(d, x_dot)
    return matvec_p.bind(d, x), add_tangents(first, second)


def _vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    """Add a leading axis; an operand that is not mapped gets an axis of length 1, and is transformed once."""
    from corejax import lax

    pairs = zip(vals, dims, strict=True)
    d, x = (lax.expand_dims(v, (0,)) if dim is None else move_batch_axis(axis_size, dim, 0, v) for v, dim in pairs)
    return matvec_p.bind(d, x), 0


def _transpose(ct: Any, d: Any, x: Any) -> list[Any]:
    """Return the cotangent of d or of x.

    The cotangent of x is a product with the transposed matrix, whose diagonals are d in reverse. The cotangent of d is
    the product of the Toeplitz matrix of the padded cotangents and the reversed x.
    """
    from corejax import lax

    last = (ct.ndim - 1,)
    if is_undef_primal(d):
        m = x.shape[-1]
        padded = lax.pad(ct, np.zeros((), ct.dtype), [(0, 0, 0)] * (ct.ndim - 1) + [(m - 1, m - 1, 0)])
        return [_sum_to(matvec_p.bind(padded, lax.rev(x, last)), d.aval), None]
    return [None, _sum_to(matvec_p.bind(lax.rev(d, last), ct), x.aval)]


def _sum_to(ct: Any, aval: ShapedArray) -> Any:
    """Sum cotangents over the leading axes along which an operand of length 1 was broadcast."""
    from corejax import lax

    repeated = tuple(i for i, (a, b) in enumerate(zip(ct.shape, aval.shape, strict=True)) if a != b)
    return lax.reshape(lax.reduce_sum(ct, repeated), aval.shape) if repeated else ct


jvp_rules.register(matvec_p, _jvp, symbolic_zeros=True)
vmap_rules.register(matvec_p, _vmap)
transpose_rules.register(matvec_p, _transpose)


def toeplitz_matvec(c: Any, r: Any, x: Any) -> Any:
    """Multiply the Toeplitz matrix with first column `c` and first row `r` by a vector.

    Args:
        c: first column, shape (n,), n >= 1.
        r: first row, shape (m,), m >= 1; r[0] is not used, as in `scipy.linalg.toeplitz`. None: the conjugate of c.
        x: vector, shape (m,).

    Returns:
        An array of shape (n,), in the common dtype of the arguments. Time and memory are those of an FFT of length
        n + m - 1.

    Raises:
        TypeError: shapes do not fit together, or the common dtype is not a floating-point or complex one.
    """
    import corejax.numpy as jnp

    c, x = jnp.asarray(c), jnp.asarray(x)
    r = jnp.conj(c) if r is None else jnp.asarray(r)
    shapes = [get_aval(v).str_short() for v in (c, r, x)]
    if not (c.ndim == r.ndim == x.ndim == 1) or c.size == 0 or x.shape != r.shape or x.size == 0:
        raise TypeError(
            "toeplitz_matvec takes a column (n,), a row (m,) and a vector (m,), n and m at least 1, "
            f"got c {shapes[0]}, r {shapes[1]} and x {shapes[2]}; vmap it for more of them"
        )
    dtype = dtypes.result_type(c, r, x)
    if not dtypes.is_inexact(dtype):
        raise TypeError(f"toeplitz_matvec computes in floating-point numbers, got c {shapes[0]}, r {shapes[1]} and "
                        f"x {shapes[2]}; convert one of them")  # fmt: skip
    c, r, x = (v.astype(dtype) for v in (c, r, x))
    return matvec_p.bind(jnp.concatenate([jnp.flip(r[1:]), c]), x)


__all__ = ["toeplitz_matvec"]
