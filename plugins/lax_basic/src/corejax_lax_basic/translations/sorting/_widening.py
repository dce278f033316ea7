"""Types that XLA does not order as it orders others, as types that it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes


def widened(ctx: Any, x: Any) -> Any:
    """Integers of less than 8 bits as 8-bit ones, which XLA cannot permute; others as they are."""
    dtype = x.aval.dtype
    if not dtypes.is_integer(dtype) or dtypes.iinfo(dtype).bits >= 8:
        return x
    return ctx.convert(x, np.dtype(np.uint8 if dtypes.is_unsigned(dtype) else np.int8))


def orderable(ctx: Any, x: Any) -> Any:
    """As `widened`, and floats of at most 8 bits as float32, of which some are else ordered by their bits."""
    dtype = x.aval.dtype
    if dtypes.is_float(dtype) and dtype.itemsize == 1:
        return ctx.convert(x, np.dtype(np.float32))
    return widened(ctx, x)
