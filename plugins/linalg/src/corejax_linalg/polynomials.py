"""`roots` and `polyfit` of `corejax.numpy`, which need decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import Tracer, dtypes, remembered
from corejax_linalg._base.arguments import array, arrays, integer
from corejax_linalg.numpy_linalg.decompositions import eigvals
from corejax_linalg.numpy_linalg.equations import inv, lstsq


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """Return the zeros of a polynomial, as eigenvalues of its companion matrix.

    Args:
        p: coefficients, the highest power's first, `[n + 1]`.
        strip_zeros: whether zeros at both ends of `p` are stripped, which works only in eager mode. Zeros at the end
            are zeros of the polynomial. If False, each leading zero gives a NaN at the end of the result.

    Returns:
        The zeros, complex, in no particular order, `[n]`.

    Raises:
        ValueError: `p` is not a vector.
        ConcretizationTypeError: `p` is traced and `strip_zeros` is True.
    """
    (p,) = arrays("roots", p)
    if p.ndim != 1:
        raise ValueError(f"roots takes a vector of coefficients, got {p.aval.str_short()}")
    zeros = 0
    if strip_zeros:
        try:
            known = p.steering() if isinstance(p, Tracer) else p
            there = np.flatnonzero(np.asarray(p if known is None else known))
        except TypeError as error:
            error.add_note("roots: the shape depends on which coefficients are zero; pass strip_zeros=False")
            raise
        first, last = (int(there[0]), int(there[-1])) if there.size else (p.shape[0], p.shape[0] - 1)
        zeros = p.shape[0] - 1 - last
        p = p[first : last + 1]
    dtype = np.result_type(p.dtype, np.complex64)
    if p.shape[0] < 2:
        return jnp.zeros(zeros, dtype)
    n = p.shape[0] - 1
    if strip_zeros:
        return jnp.concatenate([_roots(p), jnp.zeros(zeros, dtype)])
    # Rotate leading zeros to the end, where each gives a root of zero; as many of the smallest roots become NaN.
    absent = jnp.argmax(p != 0)  # 0 if all coefficients are 0: then all roots are NaN
    found = _roots(jnp.roll(p, -absent))
    found = found[jnp.argsort(-jnp.abs(found))]
    return jnp.where(jnp.arange(n) < n - absent, found, jnp.asarray(complex(np.nan, np.nan), dtype))


def _roots(p: Any) -> Any:
    n = p.shape[0] - 1
    companion = jnp.concatenate([-(p[1:] / p[0])[None, :], jnp.eye(n - 1, n, dtype=p.dtype)])
    return eigvals(companion)


@remembered
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Fit a polynomial to values at points by least squares.

    Args:
        x: the points, `[m]`.
        y: the values at the points, `[m]`, or several sets of values as columns, `[m, k]`.
        deg: the degree.
        rcond: singular values below this fraction of the largest count as zero; by default m times the dtype's epsilon.
        full: whether the diagnostic results of `lstsq` are also returned.
        w: weights of the errors (not squared), `[m]`.
        cov: whether the covariances of the coefficients are also returned. They are scaled by the errors; with
            `"unscaled"` the weights are taken as inverse standard deviations.

    Returns:
        Coefficients, the highest power's first, `[deg + 1]` or `[deg + 1, k]`. With `full`,
        `(coefficients, residuals, rank, singular values, rcond)`; with `cov`, `(coefficients, covariances)`.

    Raises:
        TypeError: `deg` is not an integer.
        ValueError: `deg` is negative, the shapes do not match, or there are too few points for covariances.
    """
    deg = integer("polyfit", "deg", deg, 0)
    x, y = arrays("polyfit", x, y)
    if x.ndim != 1 or not x.shape[0] or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ValueError(
            f"polyfit takes x [m] with m > 0 and y [m] or [m, k], got {x.aval.str_short()} and {y.aval.str_short()}"
        )
    rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    powers, values = jnp.vander(x, deg + 1), y
    if w is not None:
        w = array("polyfit", w).astype(x.dtype)
        if w.shape != x.shape:
            raise ValueError(f"polyfit: w must have the shape of x, {x.shape}, got {w.aval.str_short()}")
        powers, values = powers * w[:, None], values * (w[:, None] if y.ndim == 2 else w)
    scale = jnp.sqrt(jnp.sum(jnp.real(powers * jnp.conj(powers)), axis=0))
    c, residuals, rank, s = lstsq(powers / scale, values, rcond)
    c = c / (scale[:, None] if y.ndim == 2 else scale)
    if full:
        return c, residuals, rank, s, jnp.asarray(rcond, x.dtype)
    if not cov:
        return c
    return c, _covariances(powers / scale, scale, residuals, y.ndim == 2, cov == "unscaled")


def _covariances(powers: Any, scale: Any, residuals: Any, several: bool, unscaled: bool) -> Any:
    base = inv(powers.T @ powers) / jnp.outer(scale, scale)
    points, order = powers.shape
    if unscaled:
        factor: Any = 1
    elif points <= order:
        raise ValueError(f"polyfit: {points} points are too few for covariances of {order} coefficients")
    else:
        factor = residuals / (points - order)
    return base[:, :, None] * factor if several else base * factor
