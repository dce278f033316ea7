"""XLA translation of `tridiagonal`."""

from __future__ import annotations

from typing import Any

from corejax_linalg.primitives.tridiagonal import tridiagonal_p
from corejax_linalg.translations._kernels import info_of, kernel, on_cpu


@on_cpu(tridiagonal_p)
def _by_lapack(ctx: Any, out: Any, a: Any, *, lower: bool) -> Any:
    uplo = "L" if lower else "U"
    return kernel(ctx, "sytrd/hetrd", a, out=[*out, info_of(a.aval)], in_place=[(0, 0)], uplo=uplo)[:4]
