"""Types that XLA does not order as it orders others, as types that it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES


def widened(ctx: Any, x: Any) -> Any:
    """Integers of less than 8 bits as 8-bit ones, which XLA cannot permute; others as they are."""
    dtype = x.aval.dtype
    return ctx.convert(x, SMALL_INT_BYTES[dtype]) if dtype in SMALL_INT_BYTES else x


def orderable(ctx: Any, x: Any) -> Any:
    """As `widened`, and floats of at most 8 bits as float32, of which some are else ordered by their bits."""
    dtype = x.aval.dtype
    if dtypes.is_float(dtype) and dtype.itemsize == 1:
        return ctx.convert(x, np.dtype(np.float32))
    return widened(ctx, x)
