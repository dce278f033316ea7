"""XLA translations of `lu` and of `lu_pivots_to_permutation`, which is its decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import abstract_eval_rules, xla_translations
from corejax_linalg.primitives.lu import lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from corejax_linalg.translations._kernels import info_of, inlined, kernel


@xla_translations.register(lu_p, platform="cpu")
def _by_lapack(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    factors, pivots, _ = abstract_eval_rules.lookup(lu_p)(x.aval)
    rows = x.aval.shape[-2]
    if x.aval.size != 0:  # of singular matrices U has a zero on its diagonal
        out, counted, _ = kernel(ctx, "getrf", x, out=[factors, pivots, info_of(x.aval)], in_place=[(0, 0)])
        swaps = ctx.op("subtract", counted, ctx.full(pivots, np.int32(1)), out=pivots)  # LAPACK counts from 1
    else:
        out, swaps = x, ctx.full(pivots, 0)
    return [out, swaps, inlined(ctx, lambda p: lu_pivots_to_permutation(p, rows), swaps)]


xla_translations.register(lu_pivots_to_permutation_p, by="decomposition")
