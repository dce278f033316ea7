"""Floats of 16 bits, for which NumPy computes each step in 16 bits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes

# The narrow types for which NumPy has arithmetic, done in float32 for what takes several steps.
_THROUGH_FLOAT32 = frozenset(np.dtype(t) for t in (np.float16, dtypes.dtype("bfloat16")))


def through_float32(f: Callable[..., Any]) -> Callable[..., Any]:
    """An impl rule that computes 16-bit floats in float32 and rounds once, at the end."""

    @functools.wraps(f)
    def impl(*arrays: Any, **params: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype not in _THROUGH_FLOAT32:
            return f(*arrays, **params)
        return np.asarray(f(*(x.astype(np.float32) for x in arrays), **params)).astype(dtype)

    return impl
