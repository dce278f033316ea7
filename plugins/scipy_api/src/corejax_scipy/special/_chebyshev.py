"""Piecewise Chebyshev series: compiled forms of functions that SciPy computes eagerly.

Coefficients are computed at first use, from values at Chebyshev points (DLMF 3.11.11), and are as accurate as those
values. One sum serves all pieces: each element selects its variable and its coefficients.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax_scipy.special._formulas import number, where

_POINTS = 80


class Piece:
    """A function on an interval, smooth in a power of the variable.

    Attributes:
        low: the lower end of the interval.
        high: the upper end; it may be infinite if the power is negative.
        power: the function is smooth in `x**power`.
        f: the function of NumPy arrays of float64.
    """

    def __init__(self, low: float, high: float, power: int, f: Callable[[Any], Any]) -> None:
        self.low, self.high, self.power, self.f = low, high, power, f
        ends = [0.0 if end == math.inf else float(end) ** power for end in (low, high)]
        self.middle, self.half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2

    def variable(self, x: Any) -> Any:
        """Return the variable of the series, in [-1, 1]."""
        u = x if abs(self.power) == 1 else x * x
        u = u * u if abs(self.power) == 4 else u
        return ((1.0 / u if self.power < 0 else u) - self.middle) / self.half

    @functools.cached_property
    def coefficients(self) -> list[float]:
        """The coefficients above the noise."""
        k = np.arange(_POINTS)
        points = np.cos(np.pi * (2 * k + 1) / (2 * _POINTS))
        with np.errstate(all="ignore"):
            values = self.f((self.middle + self.half * points) ** (1 / self.power))
        angles = [np.cos(np.pi * ((j * (2 * k + 1)) % (4 * _POINTS)) / (2 * _POINTS)) for j in range(_POINTS)]
        out = [2 / _POINTS * math.fsum(values * cosines) for cosines in angles]
        out[0] /= 2
        largest = max(map(abs, out))
        noise = max(max(map(abs, out[-15:])), 3e-17 * largest)
        return out[: 1 + max(i for i, c in enumerate(out) if abs(c) > 1.5 * noise)]

    def truncated(self, error: float) -> list[float]:
        """Return the coefficients without trailing ones that add up to less than `error` times the first one."""
        out, left = list(self.coefficients), error * abs(self.coefficients[0])
        while len(out) > 2 and abs(out[-1]) < left:
            left -= abs(out.pop())
        return out


def in_pieces(x: Any, *pieces: Piece, error: float = 0.0) -> Any:
    """Evaluate adjoining pieces at `x` (inside of them, or NaN) in float64, to a relative `error`."""
    variable = pieces[-1].variable(x)
    before = [x < piece.high for piece in pieces[:-1]]
    for piece, here in zip(pieces[-2::-1], before[::-1], strict=True):
        variable = where(here, piece.variable(x), variable)
    rows = [piece.truncated(error) for piece in pieces]
    length = max(map(len, rows))
    rows = [row + [0.0] * (length - len(row)) for row in rows]

    def coefficient(i: int) -> Any:
        out = number(rows[-1][i])
        for row, here in zip(rows[-2::-1], before[::-1], strict=True):
            out = where(here, row[i], out)
        return out

    twice, last, out = variable + variable, variable * 0.0, variable * 0.0
    for i in range(length - 1, 0, -1):  # Clenshaw's recurrence (DLMF 3.11.15)
        out, last = twice * out - last + coefficient(i), out
    return variable * out - last + coefficient(0)


def powers(piece: Piece, error: float) -> list[float]:
    """Return the coefficients of the series by powers of its variable; the conversion itself loses about 1e-9."""
    return [float(c) for c in np.polynomial.chebyshev.cheb2poly(piece.truncated(error))]
