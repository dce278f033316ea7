"""StableHLO of `iota`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.creation.iota import iota_p


@xla_translations.register(iota_p)
def iota(ctx: Any, in_avals: Any, in_vals: Any, *, dtype: Any, shape: Any, dimension: int) -> Any:
    """Lower to `iota`."""
    return ctx.op("iota", out=ShapedArray(shape, np.dtype(dtype)), attrs=f"iota_dimension = {dimension} : i64")
