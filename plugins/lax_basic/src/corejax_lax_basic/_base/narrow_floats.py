"""Floats of 16 and fewer bits, for which NumPy converts each element and rounds after each step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes

# Operations of several steps compute these in float32.
NARROW_FLOATS = frozenset(d for d in dtypes.LONG_NAMES.values() if dtypes.is_float(d) and d.itemsize < 4)


def through_float32(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an impl rule, so that it computes floats of 16 and fewer bits in float32 and rounds once, at the end."""

    @functools.wraps(f)
    def impl(*arrays: Any, **params: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype not in NARROW_FLOATS:
            return f(*arrays, **params)
        return np.asarray(f(*[x.astype(np.float32) for x in arrays], **params)).astype(dtype)

    return impl
