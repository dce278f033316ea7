"""StableHLO of `iota`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.creation.iota import iota_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(iota_p)
def iota(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, dtype: Any, shape: Any, dimension: int) -> Any:
    """Lower to `iota`."""
    return ctx.op("iota", out=ShapedArray(shape, np.dtype(dtype)), attrs=f"iota_dimension = {dimension} : i64")
