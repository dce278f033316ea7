"""Determinants, norms, ranks and condition numbers of matrices."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax.extend import Array, bottom_trace, current_trace, dtypes, host_value, remembered
from corejax.extend.messages import called_function
from corejax.extend.types import max_dim
from corejax_lax_basic import lax
from corejax_linalg import lax_linalg
from corejax_linalg._base import matrices as mat
from corejax_linalg._base import on_host
from corejax_linalg._base.arguments import arrays, choice, flag, matrices, number, square
from corejax_linalg.numpy_linalg.decompositions import svd, svdvals
from corejax_linalg.numpy_linalg.equations import inv
from corejax_linalg.primitives.qr import geqrf

_MATRIX_NORMS = (None, "f", "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


class SlogdetResult(NamedTuple):
    """The results of `slogdet`."""

    sign: Any
    logabsdet: Any


@remembered
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Compute the signs (or complex phases) and logarithms of the absolute values of determinants.

    Args:
        a: matrices, `[..., n, n]`.
        method: `"lu"`, the default, or `"qr"`, which is for real matrices and has no derivative.

    Returns:
        `(sign, logabsdet)`, `[...]`; 0 and -inf for a singular matrix.

    Raises:
        ValueError: the matrices are not square, or `method` is invalid.
        NotImplementedError: `method` is `"qr"` and the matrices are complex.
    """
    choice("slogdet", "method", method, (None, "lu", "qr"))
    (a,) = square("slogdet", a)
    if method == "qr":
        return SlogdetResult(*_slogdet_by_qr(a))
    factors, pivots, _ = lax_linalg.lu(a)
    diagonal = mat.diagonal(factors)
    sign = _parity(pivots, diagonal.dtype)
    size = lax.abs(diagonal)
    if dtypes.is_complex(a.dtype):
        # Make the sign 0, not NaN, if an element of the diagonal is 0.
        phases = diagonal / jnp.where(size == 0, 1, size).astype(diagonal.dtype)
        sign = sign * jnp.prod(phases, axis=-1)
    else:
        sign = sign * jnp.prod(lax.sign(diagonal), axis=-1)
    return SlogdetResult(sign, jnp.sum(lax.log(size), axis=-1))


def _parity(pivots: Any, dtype: Any) -> Any:
    """Return 1 for an even number of exchanges and -1 for an odd one."""
    moved = pivots != lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    odd = jnp.sum(moved, axis=-1) % 2
    return lax.convert_element_type(1 - 2 * odd, dtype)


def _slogdet_by_qr(a: Any) -> tuple[Any, Any]:
    if dtypes.is_complex(a.dtype):
        raise NotImplementedError(f"slogdet: method='qr' is for real matrices, got {a.aval.str_short()}")
    packed, taus = geqrf(a)
    diagonal = mat.diagonal(packed)
    mirrors = jnp.where(taus[..., : a.shape[-1] - 1] != 0, -1, 1).astype(a.dtype)  # each reflector flips the sign
    sign = jnp.prod(lax.sign(diagonal), axis=-1) * jnp.prod(mirrors, axis=-1)
    return sign, jnp.sum(lax.log(lax.abs(diagonal)), axis=-1)


def det(a: Any) -> Any:
    """Compute the determinants of square matrices.

    First derivatives are also right for singular matrices, up to the rounding of the factors.

    Args:
        a: matrices, `[..., n, n]`.

    Returns:
        The determinants, `[...]`.

    Raises:
        ValueError: the matrices are not square.
    """
    found = on_host.determinant(a)
    return _determinant(a) if found is None else found


@remembered
def _determinant(a: Any) -> Any:
    (a,) = square("det", a)
    n = a.shape[-1]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        return jnp.sum(a[..., 0, :] * jnp.cross(a[..., 1, :], a[..., 2, :]), axis=-1)
    return jnp.ones(a.shape[:-2], a.dtype) if n == 0 else _det(a)


def _det_by_lu(a: Any) -> Any:
    factors, pivots, _ = lax_linalg.lu(a)
    return _product(mat.diagonal(factors)) * _parity(pivots, a.dtype)


def _product(diagonal: Any) -> Any:
    """Return the product, which is 0 if an element is 0, even if others overflow."""
    vanishes = jnp.any(diagonal == 0, axis=-1) & ~jnp.any(jnp.isnan(diagonal), axis=-1)
    return jnp.where(vanishes, 0, jnp.prod(diagonal, axis=-1))


def _det_jvp(primals: Any, tangents: Any) -> Any:
    """`tr(adj(A) dA)` by the factors, as `det(U) U^-1 L^-1`.

    A pivot that vanishes is replaced by a tiny one, which cancels: that is right for one such pivot, wherever it is.
    With two or more the adjugate is zero.
    """
    (a,), (da,) = primals, tangents
    if a.shape[-1] == 1:
        return a[..., 0, 0], da[..., 0, 0]
    factors, pivots, permutation = lax_linalg.lu(a)
    diagonal = mat.diagonal(factors)
    sign = _parity(pivots, a.dtype)
    sizes = lax.abs(diagonal)
    tiny = jnp.max(sizes, axis=-1, keepdims=True) * float(dtypes.finfo(sizes.dtype).eps) ** 2
    vanish = sizes <= tiny
    lifted = jnp.where(vanish, tiny.astype(a.dtype), diagonal)
    z = lax_linalg.triangular_solve(
        factors, mat.take_rows(da, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    none = jnp.sum(vanish, axis=-1) > 1
    upper = jnp.where(mat.eye(a) != 0, lifted[..., None, :], factors)
    moved = lax_linalg.triangular_solve(jnp.where(none[..., None, None], mat.eye(a), upper), z, left_side=True)
    slope = sign * jnp.prod(lifted, axis=-1) * jnp.sum(mat.diagonal(moved), axis=-1)
    return _product(diagonal) * sign, jnp.where(none, 0, slope)


_det = corejax.custom_jvp(_det_by_lu)
_det.defjvp(_det_jvp)


# -- norms -----------------------------------------------------------------------------------------------------------


def _norm_of(function: Any, x: Any, *args: Any) -> Any:
    """Return `function(x, *args, scaled)`: eagerly first unscaled, which is right unless a result is tiny or huge."""
    if current_trace() is bottom_trace():
        out = function(x, *args, False)
        if type(out) is Array and _is_ordinary(host_value(out)):
            return out
    return function(x, *args, True)


def _is_ordinary(value: Any) -> bool:
    low, high = _ordinary(value.dtype)
    return low < value.item() < high if value.ndim == 0 else bool(((value > low) & (value < high)).all())


@functools.cache
def _ordinary(dtype: Any) -> tuple[float, float]:
    """Return bounds for numbers with squares, and sums of many squares, far from overflow and underflow."""
    exponent = int(dtypes.finfo(dtype).maxexp)
    return 2.0 ** -(2 * exponent // 5), 2.0 ** (exponent // 3)


def _root_of_squares(x: Any, axis: Any, keepdims: bool, scaled: bool) -> Any:
    """Return the root of the sum of squares.

    If `scaled`, vectors with a tiny or huge largest element are multiplied by a power of 2 first. The scaling changes
    no bit of results that are right without it.
    """
    if scaled:
        real = dtypes.real_dtype_of(x.dtype)
        exponent, (low, high) = int(dtypes.finfo(real).maxexp), _ordinary(real)
        largest = jnp.max(lax.abs(lax.stop_gradient(x)), axis=axis, keepdims=True, initial=0)
        up, down, one = (lax.full_like(largest, 2.0**e) for e in (9 * exponent // 16, -(5 * exponent // 8), 0))
        factor = jnp.where(largest < low, up, jnp.where(largest > high, down, one))
        out = _root_of_squares(x * lax.convert_element_type(factor, x.dtype), axis, True, False) / factor
        return out if keepdims else jnp.squeeze(out, axis)
    squares = lax.real(x * lax.conj(x)) if dtypes.is_complex(x.dtype) else x * x
    return lax.sqrt(jnp.sum(squares, axis=axis, keepdims=keepdims))


def _root_of_powers(size: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """Return the norm of a nonzero, finite order; numbers are scaled by the largest if powers would overflow."""
    largest = jnp.max(lax.stop_gradient(size), axis=axis, keepdims=True, initial=0)
    steps = jnp.abs(jnp.log2(largest) * order) * 3  # powers may use a third of the exponents; sums use the rest
    one = lax.full_like(largest, 1)
    extreme = (steps > int(dtypes.finfo(size.dtype).maxexp)) & (largest > 0) & (largest < np.inf)
    scale = jnp.where(extreme, largest, one)
    powers = jnp.sum(jnp.power(size / scale, order), axis=axis, keepdims=True)
    out = jnp.power(powers, 1 / order) * scale
    return out if keepdims else jnp.squeeze(out, axis)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Compute norms of vectors.

    Args:
        x: an array.
        axis: the vectors' axis; several axes, or all axes with None, count as one.
        keepdims: whether reduced axes stay with size 1.
        ord: a number p for `sum(|x|^p)^(1/p)`; inf or -inf for the largest or smallest absolute value; 0 for the number
            of nonzero elements.

    Returns:
        The norms, real.

    Raises:
        ValueError: `ord` is a string.
    """
    return _norm_of(_vector_norm, x, axis, keepdims, ord)


@remembered
def _vector_norm(x: Any, axis: Any, keepdims: Any, ord: Any, scaled: bool) -> Any:
    (x,) = arrays("vector_norm", x)
    keepdims = flag("vector_norm", "keepdims", keepdims)
    if isinstance(ord, str):
        raise ValueError(f"vector_norm: ord must be a number, such as 2 or corejax.numpy.inf, got {ord!r}")
    if not isinstance(ord, int | float | None):
        ord = number("vector_norm", "ord", ord, dtypes.real_dtype_of(x.dtype))
        if ord.ndim:
            raise TypeError(f"vector_norm: ord must be one number, got {ord.aval.str_short()}")
    if ord is None or ord == 2:
        return _root_of_squares(x, axis, keepdims, scaled)
    size = lax.abs(x)
    if ord == 0:
        return jnp.sum(x != 0, axis=axis, keepdims=keepdims, dtype=size.dtype)
    if ord == 1:
        return jnp.sum(size, axis=axis, keepdims=keepdims)
    if ord == np.inf:
        return jnp.max(size, axis=axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return _smallest(size, axis, keepdims)
    return _root_of_powers(size, ord, axis, keepdims)


def _smallest(sizes: Any, axis: Any, keepdims: bool) -> Any:
    return jnp.min(sizes, axis=axis, keepdims=keepdims, initial=np.inf if 0 in sizes.shape else None)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Compute norms of the matrices in the last two axes.

    Args:
        x: matrices, `[..., m, n]`.
        keepdims: whether reduced axes stay with size 1.
        ord: `"fro"` (or `"f"`): the Frobenius norm. `"nuc"`: the sum of the singular values. 2, -2: the largest and
            smallest singular value. 1, -1: the largest and smallest sum of a column's absolute values. inf, -inf: the
            same for rows.

    Returns:
        The norms, real. The largest of no numbers is 0, and the smallest is infinite.

    Raises:
        ValueError: `x` has fewer than two axes, or `ord` is none of these.
    """
    return _norm_of(_matrix_norm, x, keepdims, ord)


@remembered
def _matrix_norm(x: Any, keepdims: Any, ord: Any, scaled: bool) -> Any:
    (x,) = matrices("matrix_norm", x)
    keepdims = flag("matrix_norm", "keepdims", keepdims)
    if not isinstance(ord, str | None) and np.ndim(ord):
        raise ValueError(f"{called_function() or 'matrix_norm'}: ord must be one number or string, got {ord!r}")
    if ord is None or ord in ("f", "fro"):
        return _root_of_squares(x, (-2, -1), keepdims, scaled)
    if ord in ("nuc", 2, -2):
        values, axis = svdvals(x), -1
    elif ord in (1, -1, np.inf, -np.inf):
        values, axis = jnp.sum(lax.abs(x), axis=-2 if abs(ord) == 1 else -1), -1
    else:
        name = called_function() or "matrix_norm"
        raise ValueError(f"{name}: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    if ord == "nuc":
        out = jnp.sum(values, axis=axis)
    else:
        out = jnp.max(values, axis=axis, initial=0) if ord > 0 else _smallest(values, axis, False)
    return out[..., None, None] if keepdims else out


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute norms of vectors or matrices, as `numpy.linalg.norm` does.

    Args:
        x: an array.
        ord: as for `vector_norm` or `matrix_norm`; None for the root of the sum of squares.
        axis: one axis for vectors, two axes for matrices; None for all axes of `x`.
        keepdims: whether reduced axes stay with size 1.

    Returns:
        The norms, real.

    Raises:
        ValueError: `ord` is invalid, or `axis` stands for three axes or more.
    """
    return _norm_of(_norm, x, ord, axis, keepdims)


@remembered
def _norm(x: Any, ord: Any, axis: Any, keepdims: Any, scaled: bool) -> Any:
    (x,) = arrays("norm", x)
    keepdims = flag("norm", "keepdims", keepdims)
    if axis is None and ord is None:
        return _root_of_squares(x, None, keepdims, scaled)
    given = tuple(range(x.ndim)) if axis is None else axis
    axes = tuple(given) if isinstance(given, tuple | list) else (given,)
    if len(axes) == 1:
        return _vector_norm(x, axes[0], keepdims, 2 if ord is None else ord, scaled)
    if len(axes) != 2:
        raise ValueError(
            f"norm: axis must be one axis of vectors or two of matrices, got axis={axis!r} of {x.aval.str_short()}"
        )
    out = _matrix_norm(jnp.moveaxis(x, axes, (-2, -1)), False, "fro" if ord is None else ord, scaled)
    return jnp.expand_dims(out, tuple(a % x.ndim for a in axes)) if keepdims else out


@remembered
def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """Compute the ranks of matrices: the number of singular values above a limit.

    Args:
        M: matrices, `[..., m, n]`; vectors and numbers have the rank 1 unless they are 0.
        rtol: the limit; by default the largest singular value times the larger of m and n times the dtype's epsilon.
        hermitian: whether the matrices are Hermitian, which allows a faster algorithm.
        tol: an alias of `rtol`.

    Returns:
        The ranks, integers.

    Raises:
        ValueError: both `rtol` and `tol` are given.
    """
    if tol is not None and rtol is not None:
        raise ValueError(f"matrix_rank: tol is an alias of rtol, got both rtol={rtol!r} and tol={tol!r}")
    (x,) = arrays("matrix_rank", M)
    if x.ndim < 2:
        return jnp.any(x != 0).astype(np.int32)
    if x.ndim and flag("matrix_rank", "hermitian", hermitian) and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_rank: Hermitian matrices must be square, [..., n, n], got {x.aval.str_short()}")
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    limit = rtol if tol is None else tol
    if limit is None:
        limit = jnp.max(s, axis=-1, initial=0) * (max_dim(*x.shape[-2:]) * float(dtypes.finfo(s.dtype).eps))
    return jnp.sum(s > number("matrix_rank", "rtol", limit, s.dtype)[..., None], axis=-1)


@remembered
def cond(x: Any, p: Any = None) -> Any:
    """Compute the condition numbers of matrices: the norm times the norm of the inverse.

    Args:
        x: matrices, `[..., m, n]`, square unless `p` is 2, -2 or None.
        p: the norm, as for `matrix_norm`; None stands for 2.

    Returns:
        The condition numbers, real; infinite for singular matrices.

    Raises:
        ValueError: `x` has fewer than two axes or no elements, is not square although `p` requires it, or `p` is
            invalid.
    """
    (x,) = matrices("cond", x)
    if 0 in x.shape[-2:]:
        raise ValueError(f"cond takes matrices with elements, got {x.aval.str_short()}")
    if not isinstance(p, str | None) and np.ndim(p):
        raise ValueError(f"cond: p must be one number or string, got {p!r}")
    if p not in _MATRIX_NORMS:
        raise ValueError(f"cond: p must be 'fro', 'nuc', 1, -1, 2, -2, inf, -inf or None, got {p!r}")
    if p is None or p in (2, -2):
        s = svdvals(x)
        out = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
        if p != -2:
            return out
    else:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"cond: with p={p!r} matrices must be square, got {x.aval.str_short()}")
        out = matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
    given = jnp.any(jnp.isnan(x), axis=(-2, -1))
    return jnp.where(jnp.isnan(out) & ~given, jnp.inf, out)
