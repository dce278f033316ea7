"""Examples for `corejax verify`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray


def reference(a: np.ndarray, x: np.ndarray, *, reverse: bool) -> np.ndarray:
    """Compute h by its explicit formula: h[t] is the sum over s <= t of x[s] a[s + 1] ... a[t]."""
    wide: Any = np.result_type(x.dtype, np.float64)
    a, y = (v.astype(wide)[..., ::-1] if reverse else v.astype(wide) for v in (a, x))
    h = np.zeros_like(y)
    for t in range(y.shape[-1]):
        for s in range(t + 1):
            h[..., t] += y[..., s] * np.prod(a[..., s + 1 : t + 1], axis=-1)
    return (h[..., ::-1] if reverse else h).astype(x.dtype)


def _example(*shape: int, reverse: bool) -> Example:
    aval = ShapedArray(shape, np.float32)
    return Example([aval, aval], {"reverse": reverse}, low=-1.2, high=1.2, reference=reference)


EXAMPLES = {
    "linear_recurrence.linear_recurrence": [
        _example(3, reverse=False),
        _example(2, reverse=True),
        _example(2, 5, reverse=False),
        _example(2, 5, reverse=True),
        _example(1, reverse=False),
        _example(0, reverse=True),
        _example(0, 3, reverse=False),
    ]
}
