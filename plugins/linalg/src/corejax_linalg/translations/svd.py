"""XLA translation of `svd`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, abstract_eval_rules, xla_translations
from corejax_linalg.primitives.svd import driver, svd_p
from corejax_linalg.translations._kernels import info_of, kernel, nan_where_failed


@xla_translations.register(svd_p, platform="cpu")
def _by_lapack(
    ctx: Any, in_avals: Any, in_vals: Any, *, full_matrices: bool, compute_uv: bool, algorithm: Any = None
) -> Any:
    (x,) = in_vals
    types = abstract_eval_rules.lookup(svd_p)(*in_avals, full_matrices=full_matrices, compute_uv=True)
    if x.aval.size == 0:
        return _bases(ctx, types[: 3 if compute_uv else 1])
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    out = [x.aval, *types, info_of(x.aval)]
    _, s, u, vh, info = kernel(ctx, driver(algorithm, "cpu"), x, out=out, in_place=[(0, 0)], mode=mode)
    return nan_where_failed(ctx, info, *((s, u, vh) if compute_uv else (s,)))


def _bases(ctx: Any, types: list[ShapedArray]) -> list[Any]:
    """No singular values, and any bases: those of the identity."""
    s, *vectors = types
    batch = len(s.shape) - 1
    ones = [ctx.constant(np.eye(*t.shape[-2:], dtype=t.dtype)) for t in vectors]
    spread = [ctx.broadcast_in_dim(x, t.shape, (batch, batch + 1)) for x, t in zip(ones, vectors, strict=True)]
    return [ctx.full(s, 0), *spread]
