"""Window functions: vectors that taper to (nearly) zero at both ends, for weighting samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, like, static_int


def _steps(name: str, M: Any) -> Any:
    """Return 0 to `M - 1` in the default floating dtype, and the number of points.

    Raises:
        TypeError: the number of points is not an integer.
        ConcretizationTypeError: the number of points is traced.
    """
    try:
        size = static_int(name, M, "M")
    except TypeError as error:
        raise TypeError(f"{name}: the number of points is an integer, got {M!r}\n{error}") from None
    return lax.iota(dtypes.default_float_dtype(), max(size, 0)), size


def _cosines(name: str, label: str, *weights: float) -> Callable[[int], Any]:
    """Return a window `weights[0] - weights[1] cos(2 pi n / (M - 1)) + weights[2] cos(4 pi n / (M - 1))`."""

    def window(M: int) -> Any:
        n, size = _steps(name, M)
        if size <= 1:
            return lax.full(n.shape, 1, n.dtype)
        out = like(n, weights[0])
        for k, weight in enumerate(weights[1:], 1):
            wave = lax.cos(lax.mul(n, like(n, 2 * k * math.pi / (size - 1))))
            out = lax.add(lax.mul(wave, like(n, -weight if k % 2 else weight)), out)
        return out

    lax.named(window, name, f"Return the {label} window of `M` points.")
    return window


blackman = _cosines("blackman", "Blackman", 0.42, 0.5, 0.08)
hamming = _cosines("hamming", "Hamming", 0.54, 0.46)
hanning = _cosines("hanning", "Hann", 0.5, 0.5)


def bartlett(M: int) -> Any:
    """Return the Bartlett (triangular) window of `M` points, which is zero at the ends."""
    n, size = _steps("bartlett", M)
    if size <= 1:
        return lax.full(n.shape, 1, n.dtype)
    centred = lax.abs(lax.sub(lax.mul(n, like(n, 2)), like(n, size - 1)))
    return lax.sub(like(n, 1), lax.div(centred, like(n, size - 1)))


def kaiser(M: int, beta: Any) -> Any:
    """Return the Kaiser window of `M` points, `i0(beta sqrt(1 - t**2)) / i0(beta)` for `t` from -1 to 1.

    Args:
        M: number of points.
        beta: the shape parameter, a scalar; a larger one gives a narrower window.

    Raises:
        TypeError: `beta` is complex.
        ValueError: `beta` is not a scalar.
    """
    n, size = _steps("kaiser", M)
    beta = array_argument("kaiser", beta, 1)
    if dtypes.is_complex(beta.dtype):
        raise TypeError(f"kaiser: beta is a real number, got {beta.aval.str_short()}")
    beta = lax.convert_element_type(beta, n.dtype)
    if beta.ndim:
        raise ValueError(f"kaiser: beta is a scalar, got {beta.aval.str_short()}")
    if size <= 1:
        return lax.full(n.shape, 1, n.dtype)
    half = like(n, (size - 1) / 2)
    t = lax.div(lax.sub(n, half), half)
    beta = lax.abs(beta)
    inner = lax.mul(lax.sqrt(lax.sub(like(n, 1), lax.mul(t, t))), beta)
    # The exponentially scaled functions do not overflow.
    ratio = lax.div(lax.bessel_i0e(inner), lax.bessel_i0e(beta))
    return lax.mul(ratio, lax.exp(lax.sub(inner, beta)))
