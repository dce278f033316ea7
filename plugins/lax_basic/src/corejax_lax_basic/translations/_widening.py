"""Conversion of types that XLA cannot sort, or sorts in another order, to types that it can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def widened(ctx: TranslationContext, x: Any) -> Any:
    """Convert integers of less than 8 bits, which XLA cannot permute, to 8-bit integers; return others unchanged."""
    dtype = x.aval.dtype
    return ctx.convert(x, SMALL_INT_BYTES[dtype]) if dtype in SMALL_INT_BYTES else x


def orderable(ctx: TranslationContext, x: Any) -> Any:
    """Convert as `widened`, and floats of at most 8 bits to float32: XLA orders some of them by their bits."""
    dtype = x.aval.dtype
    if dtypes.is_float(dtype) and dtype.itemsize == 1:
        return ctx.convert(x, np.dtype(np.float32))
    return widened(ctx, x)
