"""Examples for `corejax verify`."""

from __future__ import annotations

import numpy as np

from corejax.extend import Example, ShapedArray


def reference(d: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute the product by its definition, with the full matrix."""
    m, n = x.shape[-1], d.shape[-1] - x.shape[-1] + 1
    matrix = d[..., np.arange(n)[:, None] - np.arange(m) + m - 1]
    wide = np.result_type(d.dtype, np.float64)
    return np.einsum("...ij,...j->...i", matrix.astype(wide), x.astype(wide)).astype(d.dtype)


def _example(d: tuple[int, ...], x: tuple[int, ...]) -> Example:
    # Errors of an FFT are relative to the largest entry, and grow with the logarithm of the length.
    operands = [ShapedArray(d, np.float32), ShapedArray(x, np.float32)]
    return Example(operands, reference=reference, tolerance=2.0)


EXAMPLES = {
    "toeplitz.matvec": [
        _example((4,), (2,)),
        _example((7,), (3,)),
        _example((1,), (1,)),
        _example((3,), (3,)),
        _example((2, 4), (1, 2)),
        _example((1, 4), (2, 3)),
        _example((0, 4), (1, 2)),
    ]
}
