"""Views of NumPy arrays by strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax_lax_basic._base.axes import Ints


def strided(x: Any, shape: Ints, strides: Ints, writeable: bool = True) -> np.ndarray[Any, Any]:
    """Return `np.lib.stride_tricks.as_strided` for every dtype: NumPy's fails for some floats of 8 bits."""
    view = x.view(np.uint8) if x.itemsize == 1 else x
    out: np.ndarray[Any, Any] = np.lib.stride_tricks.as_strided(view, shape, strides, writeable=writeable)
    return out.view(x.dtype)
