"""Bessel functions of the first kind of few orders, in float64 for results that become float32.

Below 8, power series of `J_n(x) / x**n` (DLMF 10.2.2) give the two largest orders, from which the recurrence goes down.
Beyond 8, Hankel's expansions give orders 0 and 1, from which the recurrence goes up (DLMF 10.6.1). All orders follow
from two numbers for each element, behind a barrier. So the compiler does not recompute the series for each order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax_lax_basic import lax
from corejax_scipy.special._formulas import polynomial, where

START = 8.0  # the smallest argument of the expansions
_TERMS = 21
# pi as a sum of two numbers of 22 bits and the rest, so that whole multiples of the first two are exact.
_PI = (3.141592025756836, 6.278328328335192e-07, 1.2446744343793227e-13)
_SIN = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
_COS = [(-1) ** k / math.factorial(2 * k) for k in range(10)]
LARGEST = 1e8


def _scaled(square: Any, n: int) -> Any:
    """Return `J_n(x) / x**n`, given the square of `x`."""
    return polynomial(
        square, [(-0.25) ** k / (2**n * math.factorial(k) * math.factorial(n + k)) for k in range(_TERMS)]
    )


def _sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """Return sine and cosine of `x - pi/4`, for `x` up to `LARGEST`."""
    turns = lax.round((x - math.pi / 4) * (1.0 / math.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
    r = x
    for part in _PI:
        r = r - turns * part
    r = r - math.pi / 4
    half = 0.5 * turns
    sign = 1.0 - 4.0 * lax.abs(half - lax.round(half, lax.RoundingMethod.TO_NEAREST_EVEN))
    square = r * r
    return sign * r * polynomial(square, _SIN), sign * polynomial(square, _COS)


def _expanded(x: Any, order: int, hankel: Callable[[Any, int], tuple[Any, Any]]) -> Any:
    p, q = hankel(x, order)
    sine, cosine = _sine_and_cosine(x)
    if order:  # the angle is x - 3 pi/4
        sine, cosine = -cosine, sine
    return lax.sqrt((2.0 / math.pi) / x) * (p * cosine - q * sine)


def few_orders(x: Any, v: int, hankel: Callable[[Any, int], tuple[Any, Any]]) -> list[Any]:
    """Return orders 0 to `v` for `0 <= x <= LARGEST`.

    Args:
        x: float64 values.
        v: the largest order, up to 8.
        hankel: returns `P` and `Q` of Hankel's expansion of order 0 or 1, for `x >= START`.
    """
    far = x >= START
    square, large = x * x, where(far, x, START)
    seeds = [where(far, _expanded(large, 0, hankel), _scaled(square, max(v - 1, 0)))]
    if v:
        seeds.append(where(far, _expanded(large, 1, hankel), _scaled(square, v)))
    seeds = list(lax.optimization_barrier(seeds))
    down, up = seeds[::-1], list(seeds)
    for n in range(v - 1, 0, -1):
        down.append((2.0 * n) * down[-1] - square * down[-2])
    for n in range(1, v):
        up.append((2.0 * n) / large * up[n] - up[n - 1])
    power, outs = 1.0, []
    for beyond, scaled in zip(up, down[::-1], strict=True):
        outs.append(where(far, beyond, scaled * power))
        power = x * power
    return outs
