"""XLA translation of `tridiagonal_solve`."""

from __future__ import annotations

from typing import Any

from corejax_linalg.primitives.tridiagonal_solve import tridiagonal_solve_p
from corejax_linalg.translations._kernels import info_of, kernel, nan_where_failed, on_cpu


@on_cpu(tridiagonal_solve_p)
def _by_lapack(ctx: Any, out: Any, *operands: Any, perturb_singular: bool) -> Any:
    if perturb_singular:
        from corejax_xla_backend.hlo import lapack_call

        return lapack_call(ctx, "tridiagonal_solve_perturbed_ffi", *operands, out=[out])[0]
    types = [*(v.aval for v in operands), info_of(out)]
    *_, x, info = kernel(ctx, "gtsv", *operands, out=types, in_place=[(i, i) for i in range(4)])
    return nan_where_failed(ctx, info, x)[0]
