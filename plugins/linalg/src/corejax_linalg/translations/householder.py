"""XLA translations of `householder_product` and `ormqr`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import xla_translations
from corejax_linalg.primitives.householder import householder_product_p, ormqr_p
from corejax_linalg.translations._kernels import kernel


@xla_translations.register(householder_product_p, platform="cpu")
def _product(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    (a, _), (out, taus) = in_vals, in_avals
    if out.size == 0:
        return a
    if taus.size == 0:  # no reflectors
        return ctx.broadcast_in_dim(
            ctx.constant(np.eye(*out.shape[-2:], dtype=out.dtype)), out.shape, (out.ndim - 2, out.ndim - 1)
        )
    return kernel(ctx, "orgqr/ungqr", *in_vals, out=[out], in_place=[(0, 0)])[0]


@xla_translations.register(ormqr_p, platform="cpu")
def _ormqr(ctx: Any, in_avals: Any, in_vals: Any, *, left: bool, transpose: bool) -> Any:
    c = in_vals[2]
    if c.aval.size == 0 or in_avals[1].size == 0:
        return c
    return kernel(ctx, "ormqr/unmqr", *in_vals, out=[c.aval], in_place=[(2, 0)], left=left, transpose=transpose)[0]
