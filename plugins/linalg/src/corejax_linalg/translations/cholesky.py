"""XLA translations of `cholesky`."""

from __future__ import annotations

from typing import Any

from corejax.extend import xla_translations
from corejax_linalg._base import matrices as mat
from corejax_linalg.primitives.cholesky import cholesky_p
from corejax_linalg.translations._kernels import info_of, inlined, kernel, nan_where_failed, on_cpu


@on_cpu(cholesky_p)
def _by_lapack(ctx: Any, out: Any, x: Any, *, symmetrize_input: bool = False) -> Any:
    if symmetrize_input:
        x = inlined(ctx, mat.symmetrize, x)
    factor, info = kernel(ctx, "potrf", x, out=[out, info_of(out)], in_place=[(0, 0)], uplo="L")
    return inlined(ctx, mat.lower, *nan_where_failed(ctx, info, factor))


@xla_translations.register(cholesky_p)
def _by_xla(ctx: Any, in_avals: Any, in_vals: Any, *, symmetrize_input: bool = False) -> Any:
    (x,), (aval,) = in_vals, in_avals
    if symmetrize_input:
        x = inlined(ctx, mat.symmetrize, x)
    return inlined(ctx, mat.lower, ctx.op("cholesky", x, out=aval, attrs="lower = true"))
