"""Examples for `corejax verify`, with references that do not use the SciPy functions under test."""

from __future__ import annotations

import numpy as np
import scipy.special

from corejax.extend import Example, ShapedArray


def _erfcx(x: np.ndarray) -> np.ndarray:
    """Compute erfcx(x) = w(ix) by the Faddeeva function."""
    wide = np.complex128(1j) * x.astype(np.float64)
    return scipy.special.wofz(wide).real.astype(x.dtype)


def _lambertw(x: np.ndarray) -> np.ndarray:
    """Solve w exp(w) = x by Newton's method."""
    wide = x.astype(np.float64)
    w = np.log1p(np.maximum(wide, -0.36))
    for _ in range(60):
        w = w - (w * np.exp(w) - wide) / (np.exp(w) * (w + 1))
    return w.astype(x.dtype)


def _array(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.float32)


EXAMPLES = {
    "special_functions.erfcx": [
        Example([_array()], low=-1.5, high=2.0, reference=_erfcx),
        Example([_array(2, 3)], low=-2.0, high=3.0, reference=_erfcx),
        Example([_array(4)], low=3.5, high=30.0, reference=_erfcx),  # across the two formulas of the translation
    ],
    # Away from -1/e, where the derivative is infinite.
    "special_functions.lambertw": [
        Example([_array()], low=0.25, high=3.0, reference=_lambertw),
        Example([_array(2, 3)], low=-0.3, high=0.5, reference=_lambertw),
        Example([_array(4)], low=3.0, high=50.0, reference=_lambertw),
    ],
}
