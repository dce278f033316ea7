"""The scaled Bessel function of order 0 by Chebyshev series, in the variables of Cephes (Moshier 1989).

Coefficients are computed on first use, from values at Chebyshev's points (DLMF 3.11.11).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any


def _i0e(x: float) -> float:
    """Return `exp(-x) I0(x)` by its power series (DLMF 10.25.2) or, from 50 on, its asymptotic one (DLMF 10.40.1)."""
    if x < 50:
        ratios = ((x / 2 / k) ** 2 for k in range(1, 120))
        terms = itertools.accumulate(ratios, lambda a, b: a * b, initial=1.0)
        return math.exp(-x) * math.fsum(terms)
    ratios = ((2 * k - 1) ** 2 / (8 * k * x) for k in range(1, 30))
    terms = itertools.accumulate(ratios, lambda a, b: a * b, initial=1.0)
    return math.fsum(terms) / math.sqrt(2 * math.pi * x)


def _series(f: Callable[[float], float], count: int) -> list[float]:
    """Return the Chebyshev coefficients of `f` on [-1, 1], the first one halved."""

    def cos(j: int, k: int) -> float:  # the cosine of j times the k-th angle, with an exact reduction
        return math.cos(math.pi * (j * (2 * k + 1) % (4 * count)) / (2 * count))

    values = [f(cos(1, k)) for k in range(count)]
    out = [2 / count * math.fsum(v * cos(j, k) for k, v in enumerate(values)) for j in range(count)]
    return [out[0] / 2, *out[1:]]


@functools.cache
def _coefficients(epsilon: float) -> tuple[list[float], list[float]]:
    """Return coefficients of `i0e(x)` in `x/4 - 1` up to 8, and of `sqrt(x) i0e(x)` in `16/x - 1` from 8 on.

    Coefficients that are negligible for a relative error of `epsilon` are left out.
    """
    near = _series(lambda u: _i0e(4 * (u + 1)), 40)
    far = _series(lambda u: _i0e(16 / (u + 1)) * math.sqrt(16 / (u + 1)), 40)
    last = [max(i for i, c in enumerate(row) if abs(c) > epsilon / 32) for row in (near, far)]
    return near[: last[0] + 1], far[: last[1] + 1]


def _sum(u: Any, coefficients: list[float]) -> Any:
    """Sum a Chebyshev series by Clenshaw's recurrence (DLMF 3.11.15)."""
    twice, last, out = u + u, u * 0.0, u * 0.0
    for c in coefficients[:0:-1]:
        out, last = twice * out - last + c, out
    return u * out - last + coefficients[0]


def bessel_i0e(ops: Any, x: Any, epsilon: float) -> Any:
    """Compute `exp(-|x|) I0(x)` to the accuracy of a dtype with `epsilon`."""
    x = ops.abs(x)
    near, far = _coefficients(epsilon)
    close = x <= 8.0
    inside, outside = ops.where(close, x, 8.0), ops.where(close, 8.0, x)
    by_inverse = _sum(16.0 / outside - 1.0, far) / ops.sqrt(outside)
    return ops.where(x == x, ops.where(close, _sum(inside * 0.25 - 1.0, near), by_inverse), x)
