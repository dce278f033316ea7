"""Intervals and points in them, for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax
from corejax.interval_bounds import Interval


def box(rng: np.random.Generator, shape: tuple[int, ...], low: float, high: float, dtype: Any = np.float32) -> Interval:
    """An interval of random ends; some elements are points, some touch the ends of the range."""
    a, b = np.sort(rng.uniform(low, high, (2, *shape)), axis=0)
    kind = rng.integers(0, 5, shape)
    b = np.where(kind == 0, a, b)
    a = np.where(kind == 1, low, a)
    b = np.where(kind == 2, high, b)
    a, b = np.asarray(a).astype(dtype), np.asarray(b).astype(dtype)
    return Interval(a, np.maximum(a, b))


def points(rng: np.random.Generator, interval: Interval, count: int) -> list[np.ndarray]:
    """Numbers inside: the ends, the middle, and at random."""
    lower, upper = np.asarray(interval.lower), np.asarray(interval.upper)
    if lower.dtype == np.bool_:
        found = [lower, upper, *(np.where(rng.random(lower.shape) < 0.5, lower, upper) for _ in range(count))]
    else:
        fractions = [0.0, 1.0, 0.5, *(rng.random(lower.shape) for _ in range(count))]
        wide_lower, wide_upper = lower.astype(np.float64), upper.astype(np.float64)
        inside = [wide_lower + f * (wide_upper - wide_lower) for f in fractions]
        if np.issubdtype(lower.dtype, np.integer):
            inside = [np.round(x) for x in inside]
        found = [np.clip(x.astype(lower.dtype), lower, upper) for x in inside]
        corner = np.where(rng.random(lower.shape) < 0.5, lower, upper)
        found.append(corner)
    return [np.asarray(x, lower.dtype) for x in found]


def check_inside(interval: Interval, values: Any, what: str = "") -> None:
    """Whether values are within bounds, strictly as numbers of any precision compare."""
    lower, upper, values = np.asarray(interval.lower), np.asarray(interval.upper), np.asarray(values)
    assert lower.shape == values.shape, (lower.shape, values.shape)
    if lower.dtype != np.bool_:
        lower, upper, values = (x.astype(np.float64) for x in (lower, upper, values))
        unknown = np.isnan(lower) & np.isnan(upper)
    else:
        unknown = np.zeros(lower.shape, bool)
    outside = ~(unknown | ((lower <= values) & (values <= upper)))
    assert not outside.any(), f"{what}: {values[outside][:3]} outside [{lower[outside][:3]}, {upper[outside][:3]}]"


def known_fraction(interval: Interval) -> float:
    """How many of the bounds say anything: tests that only see NaN or infinities would prove nothing."""
    bounds = [np.asarray(b) for b in (interval.lower, interval.upper)]
    if bounds[0].dtype == np.bool_ or not bounds[0].size:
        return 1.0
    return float(np.mean(np.isfinite(bounds[0].astype(np.float64)) & np.isfinite(bounds[1].astype(np.float64))))


def in_double(fun: Any, arguments: Any) -> Any:
    """What the function gives in double precision: as good as exact beside single precision."""
    with corejax.config.override(default_dtype_bits=64):
        widened = [np.asarray(x, np.float64) if np.asarray(x).dtype == np.float32 else x for x in arguments]
        return fun(*widened)
