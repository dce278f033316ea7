"""Special matrices that are built from vectors or from a size."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax.extend.devices import check_memory
from corejax.extend.types import SymbolicDim, max_dim, min_dim
from corejax_lax_basic import lax
from corejax_linalg._base.arguments import array, arrays, choice, flag, integer, size

# -- of vectors ----------------------------------------------------------------------------------------------------


def _vectors(name: str, x: Any, least: int = 0) -> Any:
    """Convert an argument to vectors, `[..., n]`; a number becomes a vector of one element.

    Raises:
        ValueError: the vectors have fewer elements than `least`.
    """
    x = jnp.atleast_1d(array(name, x))
    if least and x.shape[-1] < least:
        raise ValueError(f"{name} takes vectors of {least} elements or more, got {x.aval.str_short()}")
    return x


def _picked(values: Any, places: Any) -> Any:
    """Index the last axis of vectors by a matrix of positions."""
    return jnp.zeros((*values.shape[:-1], *places.shape), values.dtype) if places.size == 0 else values[..., places]


def _range(m: Any, n: Any) -> tuple[Any, Any]:
    rows, columns = (jnp.arange(k) if isinstance(k, SymbolicDim) else np.arange(k) for k in (m, n))
    return rows[:, None], columns[None, :]


@remembered
def block_diag(*arrs: Any) -> Any:
    """Return a block-diagonal matrix.

    Args:
        *arrs: the blocks; a vector counts as a row, and a number as a matrix of one element.

    Raises:
        ValueError: an argument has more than two axes.
    """
    xs = arrays("block_diag", *(arrs or (jnp.zeros((1, 0)),)), inexact=False)
    for i, x in enumerate(xs):
        if x.ndim > 2:
            raise ValueError(f"block_diag takes matrices, got {x.aval.str_short()} at position {i}")
    xs = [jnp.atleast_2d(x) for x in xs]
    width, before, rows = sum(x.shape[1] for x in xs), 0, []
    for x in xs:
        rows.append(jnp.pad(x, ((0, 0), (before, width - before - x.shape[1]))))
        before += x.shape[1]
    return jnp.concatenate(rows)


@remembered
def toeplitz(c: Any, r: Any = None) -> Any:
    """Return matrices with constant diagonals.

    Args:
        c: first columns, `[..., m]`.
        r: first rows, `[..., n]`; the first element is ignored. By default the conjugate of `c`.

    Returns:
        Matrices `[..., m, n]`.
    """
    c = _vectors("toeplitz", c)
    r = (jnp.conj(c) if dtypes.is_complex(c.dtype) else c) if r is None else _vectors("toeplitz", r)
    c, r = _one_batch(c, r)
    m, n = c.shape[-1], r.shape[-1]
    values = jnp.concatenate([jnp.flip(c, -1), r[..., 1:]], axis=-1)
    rows, columns = _range(m, n)
    return _picked(values, (m - 1) - rows + columns)


@remembered
def hankel(c: Any, r: Any = None) -> Any:
    """Return matrices with constant antidiagonals.

    Args:
        c: first columns, `[..., m]`.
        r: last rows, `[..., n]`; the first element is ignored. By default zeros.

    Returns:
        Matrices `[..., m, n]`.

    Raises:
        ValueError: an argument is a number.
    """
    c = array("hankel", c)
    r = jnp.zeros_like(c) if r is None else array("hankel", r)
    if not c.ndim or not r.ndim:
        raise ValueError(f"hankel takes vectors, got {c.aval.str_short()} and {r.aval.str_short()}")
    c, r = _one_batch(c, r)
    values = jnp.concatenate([c, r[..., 1:]], axis=-1)
    rows, columns = _range(c.shape[-1], r.shape[-1])
    return _picked(values, rows + columns)


def _one_batch(c: Any, r: Any) -> list[Any]:
    c, r = arrays("toeplitz", c, r, inexact=False)
    batch = lax.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    return [jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (c, r)]


@remembered
def circulant(c: Any) -> Any:
    """Return matrices with the first column `c`, `[..., n]`, where each further column is rotated by one place."""
    c = _vectors("circulant", c)
    n = c.shape[-1]
    rows, columns = _range(n, n)
    return _picked(c, (rows - columns) % max_dim(n, 1))


@remembered
def companion(a: Any) -> Any:
    """Return companion matrices, which have the zeros of polynomials as eigenvalues.

    Args:
        a: coefficients, the highest power's first, `[..., n + 1]`.

    Raises:
        ValueError: there are fewer than two coefficients.
    """
    (a,) = arrays("companion", _vectors("companion", a, 2))
    n = a.shape[-1] - 1
    rest = jnp.broadcast_to(jnp.eye(n, k=-1, dtype=a.dtype)[1:], (*a.shape[:-1], n - 1, n))
    return jnp.concatenate([-(a[..., 1:] / a[..., :1])[..., None, :], rest], axis=-2)


@remembered
def leslie(f: Any, s: Any) -> Any:
    """Return Leslie matrices of population growth.

    Args:
        f: fecundities, the first row, `[..., n]`.
        s: survival rates, the diagonal below the main one, `[..., n - 1]`.

    Raises:
        ValueError: `f` has fewer than two elements, or the sizes do not match.
    """
    f, s = arrays("leslie", _vectors("leslie", f, 2), _vectors("leslie", s), inexact=False)
    n = f.shape[-1]
    if s.shape[-1] != n - 1:
        raise ValueError(
            f"leslie takes f [..., n] and s [..., n - 1], got {f.aval.str_short()} and {s.aval.str_short()}"
        )
    batch = lax.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    below = jnp.broadcast_to(s[..., :, None] * jnp.eye(n - 1, n, dtype=s.dtype), (*batch, n - 1, n))
    return jnp.concatenate([jnp.broadcast_to(f[..., None, :], (*batch, 1, n)), below], axis=-2)


@remembered
def fiedler(a: Any) -> Any:
    """Return the absolute differences of all pairs of a vector's elements, `[..., n, n]`."""
    a = _vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@remembered
def fiedler_companion(a: Any) -> Any:
    """Return pentadiagonal companion matrices, which have the zeros of polynomials as eigenvalues.

    M. Fiedler, "A note on companion matrices" (2003).

    Args:
        a: coefficients, the highest power's first, `[..., n + 1]`.

    Raises:
        ValueError: there are no coefficients.
    """
    (a,) = arrays("fiedler_companion", _vectors("fiedler_companion", a, 1))
    n = a.shape[-1] - 1
    places, ones = np.zeros((n, n), int), np.zeros((n, n))
    for i in range(n):
        if i % 2 == 0:
            for j, place in ((i + 1, i + 2), (i - 1, i + 1)):
                if 0 <= j < n and place <= n:
                    places[i, j] = place
            if i + 2 < n:
                ones[i, i + 2] = 1
        elif i >= 2:
            ones[i, i - 2] = 1
    if n:
        places[0, 0] = 1
    if n > 1:
        ones[1, 0] = 1
    monic = a / a[..., :1]
    return jnp.where(places > 0, -_picked(monic, places), jnp.asarray(ones, a.dtype))


@remembered
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """Return the matrix that convolves a vector of `n` elements with `a` by a product.

    Args:
        a: vectors, `[..., m]`.
        n: the number of columns.
        mode: as for `numpy.convolve`: `"full"`, `"valid"` or `"same"`.

    Returns:
        Matrices `[..., k, n]`.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is not positive, `a` is a number or has no elements, or `mode` is invalid.
    """
    n = size("convolution_matrix", "n", n, 1)
    choice("convolution_matrix", "mode", mode, ("full", "valid", "same"))
    a = array("convolution_matrix", a)
    if not a.ndim or a.shape[-1] == 0:
        raise ValueError(f"convolution_matrix takes vectors with elements, got {a.aval.str_short()}")
    m = a.shape[-1]
    overlap = min_dim(m, n) - 1
    first = {"full": 0, "valid": overlap, "same": overlap // 2}[mode]
    last = m + n - 1 - {"full": 0, "valid": overlap, "same": overlap - overlap // 2}[mode]
    rows, columns = _range(last - first, n)
    places = rows + first - columns
    inside = (places >= 0) & (places < m)
    return jnp.where(inside, _picked(a, places.clip(0, m - 1)), jnp.zeros((), a.dtype))


# -- of a size -----------------------------------------------------------------------------------------------------


def _by_scipy(name: str, n: Any, *args: Any, dtype: Any = None) -> Any:
    check_memory(8 * n * n, f"{name}: the matrix of n={n}")
    made = getattr(importlib.import_module("scipy.linalg"), name)(n, *args)
    return jnp.asarray(made, dtypes.default_float_dtype() if dtype is None else dtype)


_EXACT = 34  # the number of rows of Pascal's triangle that fit into int64


@remembered
def hilbert(n: int) -> Any:
    """Return the Hilbert matrix, `1 / (i + j + 1)`.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is negative.
    """
    return _by_scipy("hilbert", integer("hilbert", "n", n, 0))


@remembered
def invhilbert(n: int) -> Any:
    """Return the inverse of the Hilbert matrix.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is negative.
    """
    return _by_scipy("invhilbert", integer("invhilbert", "n", n, 0))


@remembered
def pascal(n: int, kind: str | None = None) -> Any:
    """Return Pascal's triangle as a `"symmetric"`, `"lower"` or `"upper"` triangular matrix, in float32.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is negative, or `kind` is invalid.
    """
    choice("pascal", "kind", kind, (None, "symmetric", "lower", "upper"))
    n = integer("pascal", "n", n, 0)
    return _by_scipy("pascal", n, kind or "symmetric", n <= _EXACT, dtype=np.float32)


@remembered
def invpascal(n: int, kind: str | None = None) -> Any:
    """Return the inverse of the Pascal matrix.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is negative, or `kind` is invalid.
    """
    choice("invpascal", "kind", kind, (None, "symmetric", "lower", "upper"))
    n = integer("invpascal", "n", n, 0)
    return _by_scipy("invpascal", n, kind or "symmetric", n <= _EXACT)


@remembered
def helmert(n: int, full: bool = False) -> Any:
    """Return the Helmert matrix of orthonormal contrasts, `[n - 1, n]`, or with `full` also its first row.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is not positive.
    """
    return _by_scipy("helmert", integer("helmert", "n", n, 1), flag("helmert", "full", full))


def hadamard(n: int, dtype: Any = int) -> Any:
    """Return Sylvester's Hadamard matrix, with ones and minus ones in orthogonal rows.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is not a power of 2.
    """
    n = integer("hadamard", "n", n, 1)
    if n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, got {n}")
    return _by_scipy("hadamard", n, dtype=dtypes.canonicalize_dtype(dtype))


@remembered
def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """Return the matrix of the discrete Fourier transform.

    Args:
        n: the size.
        scale: `"sqrtn"` or `"n"` to divide by the square root of n or by n; None for no scaling.
        dtype: a complex dtype.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is negative, `scale` is invalid, or the dtype is not complex.
    """
    choice("dft", "scale", scale, (None, "sqrtn", "n"))
    wanted = dtypes.default_complex_dtype() if dtype is None else dtypes.canonicalize_dtype(dtype)
    if not dtypes.is_complex(wanted):
        raise ValueError(f"dft: dtype must be complex, got {wanted}")
    return _by_scipy("dft", integer("dft", "n", n, 0), scale, dtype=wanted)
