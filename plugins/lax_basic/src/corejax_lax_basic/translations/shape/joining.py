"""StableHLO of concatenation."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import xla_translations
from corejax_lax_basic.shape.joining import concatenate_p


@xla_translations.register(concatenate_p)
def concatenate(ctx: Any, in_avals: Any, in_vals: Any, *, dimension: int) -> Any:
    """`concatenate`."""
    out = concatenate_p.abstract(tuple(in_avals), {"dimension": dimension})[0]
    dtype = out.dtype
    if dtype.name in ("int2", "uint2"):  # XLA of jaxlib 0.10 ends the process
        in_vals, out = [ctx.convert(x, np.dtype(np.int8)) for x in in_vals], out.update(dtype=np.dtype(np.int8))
    joined = ctx.op("concatenate", *in_vals, out=out, attrs=f"dimension = {dimension} : i64")
    return ctx.convert(joined, dtype)
