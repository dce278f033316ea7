"""Few gamma numbers on the host, by NumPy: those of `random_gamma`, all elements at once; for keys of Threefry's."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax_random.distributions.on_host import normal_of, unit_of, width_of
from corejax_random.generators.threefry import random_bits_on_host, split_on_host


def gamma_on_host(keys: Any, a: Any, *, log_space: bool) -> Any:
    """A number for each element; `random_gamma` says how.

    Args:
        keys: words of a key for each, `u32[n,2]`.
        a: the shape parameters, `f[n]`.
        log_space: whether logarithms are wanted.
    """
    dtype = a.dtype
    large = a >= 1
    d = np.where(large, a, a + dtype.type(1)) - dtype.type(1 / 3)
    c = dtype.type(1 / 3) / np.sqrt(d)
    both = split_on_host(keys, (2,))
    v = _accepted_cubes(both[:, 0], c, d)
    u = _uniform(both[:, 1], dtype)
    if log_space:
        logs = np.log1p(-u)
        return np.log(d) + np.log(v) + np.where(large | (logs == 0), dtype.type(0), logs * (1 / a))
    return d * v * np.where(large, dtype.type(1), np.power(1 - u, 1 / a))


def _uniform(keys: Any, dtype: Any) -> Any:
    return unit_of(random_bits_on_host(keys, width_of(dtype), ()), dtype)


def _accepted_cubes(keys: Any, c: Any, d: Any) -> Any:
    """Of each element the first cube of 1 + c x, x normal, that the test accepts."""
    dtype = d.dtype
    out = np.ones_like(d)
    left = np.flatnonzero(_rejected(dtype.type(0), dtype.type(1), dtype.type(2), d))  # not those that are NaN
    keys, c, d = keys[left], c[left], d[left]
    while left.size:
        three = split_on_host(keys, (3,))
        x, v = _positive(three[:, 1], c)
        out[left] = cubes = v * v * v
        again = _rejected(x * x, cubes, _uniform(three[:, 2], dtype), d)
        left, keys, c, d = left[again], three[again, 0], c[again], d[again]
    return out


def _rejected(square: Any, v: Any, u: Any, d: Any) -> Any:
    close = u >= 1 - d.dtype.type(0.0331) * (square * square)
    return close & (np.log(u) >= square * d.dtype.type(0.5) + d * (1 - v + np.log(v)))


def _positive(keys: Any, c: Any) -> tuple[Any, Any]:
    """Of each element the first normal number x for which 1 + c x is positive, and that."""
    x, v = np.empty_like(c), np.empty_like(c)
    left = np.arange(c.size)
    while left.size:
        both = split_on_host(keys, (2,))
        x[left] = drawn = normal_of(random_bits_on_host(both[:, 1], width_of(c.dtype), ()), c.dtype)
        v[left] = found = 1 + drawn * c[left]
        again = found <= 0
        left, keys = left[again], both[again, 0]
    return x, v
