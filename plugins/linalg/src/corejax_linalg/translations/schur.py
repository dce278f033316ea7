"""XLA translation of `schur`."""

from __future__ import annotations

from typing import Any

from corejax.extend import ShapedArray
from corejax_linalg.primitives.schur import schur_p
from corejax_linalg.translations._kernels import info_of, kernel, nan_where_failed, on_cpu


@on_cpu(schur_p)
def _by_lapack(ctx: Any, out: Any, x: Any, *, compute_schur_vectors: bool) -> Any:
    aval = x.aval
    values = [ShapedArray(aval.shape[:-1], aval.dtype)] * (2 if aval.dtype.kind == "f" else 1)
    types = [aval, aval, *values, info_of(aval), info_of(aval)]
    mode = "V" if compute_schur_vectors else "N"
    triangle, vectors, *_, info = kernel(ctx, "gees", x, out=types, in_place=[(0, 0)], mode=mode, sort="N")
    return nan_where_failed(ctx, info, *((triangle, vectors) if compute_schur_vectors else (triangle,)))
