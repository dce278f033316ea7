"""Integers of less than 8 bits, which NumPy and XLA support only in part."""

from __future__ import annotations

import numpy as np

from corejax.extend import dtypes

# dtype -> dtype of the 8-bit integers that hold its numbers.
SMALL_INT_BYTES = {
    d: np.dtype(np.uint8 if dtypes.is_unsigned(d) else np.int8)
    for d in dtypes.LONG_NAMES.values()
    if dtypes.is_integer(d) and dtypes.iinfo(d).bits < 8
}
