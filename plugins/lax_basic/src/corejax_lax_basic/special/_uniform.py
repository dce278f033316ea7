"""Temme's expansion of the incomplete gamma functions, uniform in `x` for large `a` (DLMF 8.12).

    Q(a, x) = erfc(eta sqrt(a/2)) / 2 + exp(-a eta**2 / 2) / sqrt(2 pi a) * sum(c[k](eta) / a**k)

where `eta**2 / 2 = mu - log(1 + mu)`, `mu = (x - a) / a`, and `eta` has the sign of `mu`. It is used for `a >= 30` and
`|mu| < 0.3`, where `|eta| < 0.34`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from corejax_lax_basic.special._series import log1p_less, polynomial, stirling_rest

if TYPE_CHECKING:
    from fractions import Fraction

LEAST, WIDTH = 30.0, 0.3
_TERMS, _POWERS, _LARGEST = 11, 20, 0.34


def _mu(count: int) -> list[Fraction]:
    """Return coefficients of `mu` by powers of `eta`, from `mu mu' = eta (1 + mu)`."""
    from fractions import Fraction  # imported here because it takes longer than the rest of the module

    m = [Fraction(0), Fraction(1)]
    for i in range(2, count):
        m.append((m[i - 1] - sum(m[j] * (i + 1 - j) * m[i + 1 - j] for j in range(2, i))) / (i + 1))
    return m


@functools.cache
def coefficients(epsilon: float) -> list[list[float]]:
    """Return Taylor coefficients of `c[0]`, `c[1]`, ..., without negligible ones (DLMF 8.12.10 and 8.12.11)."""
    from fractions import Fraction

    count = _POWERS + 2 * _TERMS + 3
    m = _mu(count + 2)
    inverse = [Fraction(1)]  # eta / mu
    for i in range(1, count):
        inverse.append(-sum((m[j + 1] * inverse[i - j] for j in range(1, i + 1)), Fraction(0)))
    c = inverse[1:]
    rows, stirling = [c], Fraction(1)
    for k in range(1, _TERMS):
        stirling *= -(2 * k + 1)
        g = stirling * m[2 * k + 1]
        c = [(i + 2) * c[i + 2] + g * inverse[i + 1] for i in range(len(c) - 2)]
        rows.append(c)
    relevant = [_without_negligible([float(v) for v in row], epsilon * LEAST**k / 256) for k, row in enumerate(rows)]
    return [row for row in relevant if row]


def _without_negligible(row: list[float], least: float) -> list[float]:
    return row[: 1 + max((i for i, v in enumerate(row) if abs(v) * _LARGEST**i > least), default=-1)]


def _eta(ops: Any, a: Any, x: Any) -> tuple[Any, Any]:
    mu = (x - a) / a
    eta = ops.sqrt(-2.0 * log1p_less(ops, mu, x / a))
    return mu, ops.where(mu < 0.0, 0.0 - eta, eta)


def tails(ops: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Compute `P(a, x)` and `Q(a, x)`."""
    _, eta = _eta(ops, a, x)
    total = polynomial(1.0 / a, [polynomial(eta, row) for row in coefficients(ops.epsilon)])
    rest = ops.exp(-0.5 * a * eta * eta) / ops.sqrt(2.0 * math.pi * a) * total
    z = eta * ops.sqrt(0.5 * a)
    both = 0.5 * ops.erfc(0.0 - z) - rest, 0.5 * ops.erfc(z) + rest
    return tuple(ops.where(tail < 0.0, 0.0, tail) for tail in both)


def derivative(ops: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Compute the derivative of `P` by `a` as a factor of moderate size and `exp(-a eta**2 / 2) / sqrt(2 pi a)`.

    The derivative of `eta` is `-mu / (a eta)`.
    """
    mu, eta = _eta(ops, a, x)
    rows, inverse = coefficients(ops.epsilon), 1.0 / a
    values = [polynomial(eta, row) for row in rows]
    slopes = [polynomial(eta, [i * v for i, v in enumerate(row)][1:] or [0.0]) for row in rows]
    total, by_eta = polynomial(inverse, values), polynomial(inverse, slopes)
    by_a = inverse * inverse * polynomial(inverse, [v * -float(k) for k, v in enumerate(values)][1:])
    ratio = ops.where(eta == 0.0, 1.0, mu / ops.where(eta == 0.0, 1.0, eta))
    size = total * (ops.log1p(mu) - 0.5 * inverse) + by_a - by_eta * ratio * inverse
    return 0.5 * eta - ratio - size, ops.exp(-0.5 * a * eta * eta) / ops.sqrt(2.0 * math.pi * a)


def over_density(ops: Any, a: Any, x: Any) -> Any:
    """Compute `derivative` over the density `x**(a-1) exp(-x) / gamma(a)`."""
    return derivative(ops, a, x)[0] * (x / a) * ops.exp(stirling_rest(a))
