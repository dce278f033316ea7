"""Gamma numbers on the host, by NumPy, for few elements and Threefry keys; they equal those of `random_gamma`.

Each element has a separate key and a separate rejection loop. The loops run together: each iteration processes all
elements that are not yet accepted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax_random.distributions.on_host import normal_of, unit_of, width_of
from corejax_random.generators.lanes import keys_of


def gamma_on_host(keys: Any, a: Any, *, log_space: bool) -> Any:
    """Draw a number for each element, by the method of `random_gamma`.

    Args:
        keys: words of a key for each element, `u32[n,2]`.
        a: the shape parameters, `f[n]`.
        log_space: whether to return logarithms.
    """
    dtype = a.dtype
    large = a >= 1
    boosted = np.count_nonzero(large) < a.size
    d = (np.where(large, a, a + dtype.type(1)) if boosted else a) - dtype.type(1 / 3)
    c = dtype.type(1 / 3) / np.sqrt(d)
    lanes = keys_of(a.size)
    pair = lanes.of(keys)
    key, *last = lanes.split(2, (0, 1), pair, pair) if boosted else lanes.split(2, (0,), pair)
    v, *bits = _accepted_cubes(key, c, d, last)
    if not boosted:
        return np.log(d) + np.log(v) + dtype.type(0) if log_space else d * v
    u = unit_of(bits[0], dtype)
    if log_space:
        logs = np.log1p(-u)
        return np.log(d) + np.log(v) + np.where(large | (logs == 0), dtype.type(0), logs * (1 / a))
    return d * v * np.where(large, dtype.type(1), np.power(1 - u, 1 / a))


def _accepted_cubes(key: Any, c: Any, d: Any, more: list[Any]) -> list[Any]:
    """Return, for each element, the first accepted cube of 1 + c x, x normal; and bits of the keys in `more`."""
    refused, *results = _attempt(key, c, d, more)
    finite = np.isfinite(d)
    if np.count_nonzero(finite) < d.size:  # for other elements the test accepts the initial value of the loop
        results[0][~finite] = 1
        refused &= finite
    remaining = np.flatnonzero(refused) if np.count_nonzero(refused) else ()
    if len(remaining):
        keys = keys_of(d.size).words(key)
        while len(remaining):
            lanes = keys_of(len(remaining))
            [key] = lanes.split(3, (0,), lanes.of(keys[refused]))
            c, d, keys = c[refused], d[refused], lanes.words(key)
            refused, results[0][remaining] = _attempt(key, c, d, [])
            remaining = remaining[refused]
    return results


def _attempt(key: Any, c: Any, d: Any, more: list[Any]) -> list[Any]:
    """Return flags of the rejected elements, the cubes of all elements, and bits of the keys in `more`."""
    dtype, lanes = d.dtype, keys_of(d.size)
    width = width_of(dtype)
    first, second = lanes.split(3, (1, 2), key, key)
    [normal] = lanes.split(2, (1,), first)
    x_bits, u_bits, *bits = lanes.bits(width, normal, second, *more)
    x = normal_of(x_bits, dtype)
    v = 1 + x * c
    negative = v <= 0
    if np.count_nonzero(negative):
        _draw_positive(negative, lanes.words(first), x, v, c)
    cubes = v * v * v
    return [_rejected(x * x, cubes, unit_of(u_bits, dtype), d), cubes, *bits]


def _rejected(square: Any, v: Any, u: Any, d: Any) -> Any:
    close = u >= 1 - d.dtype.type(0.0331) * (square * square)
    if not np.count_nonzero(close):
        return close
    return close & (np.log(u) >= square * d.dtype.type(0.5) + d * (1 - v + np.log(v)))


def _draw_positive(negative: Any, keys: Any, x: Any, v: Any, c: Any) -> None:
    """Redraw x for the flagged elements until v = 1 + c x is positive, in place."""
    remaining = np.flatnonzero(negative)
    keys = keys[remaining]
    while remaining.size:
        lanes = keys_of(remaining.size)
        [pair] = lanes.split(2, (0,), lanes.of(keys))
        [normal] = lanes.split(2, (1,), pair)
        [bits] = lanes.bits(width_of(c.dtype), normal)
        x[remaining] = drawn = normal_of(bits, c.dtype)
        v[remaining] = shifted = 1 + drawn * c[remaining]
        again = shifted <= 0
        remaining, keys = remaining[again], lanes.words(pair)[again]
