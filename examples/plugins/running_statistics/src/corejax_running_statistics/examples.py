"""Examples for `corejax verify`: applications of the primitives to the values of references."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray

_COUNT = ShapedArray((), np.dtype(np.int32))
_LOW, _HIGH = (0, -2, 0.5, -2), (9, 2, 9, 2)  # of the count, the mean, the sum of squares, and samples


def _vector(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.dtype(np.float32))


def merged(count: Any, mean: Any, squares: Any, xs: Any) -> list[Any]:
    """Merge the statistics of a batch in NumPy: from the sums of the samples and of their squares."""
    count, mean, squares, xs = (np.asarray(x, np.float64) for x in (count, mean, squares, xs))
    total = count + len(xs)
    sums, sums_of_squares = count * mean + xs.sum(0), squares + count * mean**2 + (xs**2).sum(0)
    return [total, sums / total, sums_of_squares - sums**2 / total]


def normalised(count: Any, mean: Any, squares: Any, x: Any, *, epsilon: float) -> list[Any]:
    """Normalise samples in NumPy."""
    return [(x - mean) / np.sqrt(squares / max(int(count), 1) + epsilon)]


EXAMPLES = {
    "running_statistics.update": [
        Example(
            [_COUNT, _vector(*shape), _vector(*shape), _vector(size, *shape)], low=_LOW, high=_HIGH, reference=merged
        )
        for size, shape in ((4, (3,)), (1, ()), (5, (2, 2)))
    ],
    "running_statistics.normalise": [
        Example(
            [_COUNT, _vector(3), _vector(3), _vector(*shape)],
            {"epsilon": 1e-3},
            low=_LOW,
            high=_HIGH,
            reference=normalised,
        )
        for shape in ((3,), (2, 3))
    ],
}
