"""XLA translation of `eigh`."""

from __future__ import annotations

from typing import Any

from corejax_linalg._base import matrices as mat
from corejax_linalg.primitives.eigh import check_implementation, eigh_p
from corejax_linalg.translations._kernels import info_of, inlined, kernel, nan_where_failed, on_cpu


@on_cpu(eigh_p)
def _by_lapack(
    ctx: Any, out: Any, x: Any, *, lower: bool, symmetrize_input: bool = False, algorithm: Any = None
) -> Any:
    check_implementation(algorithm, "cpu")
    if symmetrize_input:
        x = inlined(ctx, mat.symmetrize, x)
    uplo = "L" if lower else "U"
    *pair, info = kernel(ctx, "syevd/heevd", x, out=[*out, info_of(x.aval)], in_place=[(0, 0)], mode="V", uplo=uplo)
    return nan_where_failed(ctx, info, *pair)
