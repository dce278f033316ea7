"""XLA translations of `triangular_solve`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import xla_translations
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.types import LAPACK
from corejax_linalg.primitives.triangular_solve import triangular_solve_p
from corejax_linalg.translations._kernels import inlined, kernel, on_cpu


@on_cpu(triangular_solve_p)
def _by_lapack(ctx: Any, out: Any, a: Any, b: Any, **params: Any) -> Any:
    if out.dtype not in LAPACK:
        a, b = (ctx.convert(x, np.float32) for x in (a, b))
    conjugate, transpose = params["conjugate_a"], params["transpose_a"]
    if conjugate and not transpose:
        a = inlined(ctx, mat.conj, a)
    (x,) = kernel(
        ctx,
        "trsm",
        a,
        b,
        out=[b.aval],
        in_place=[(1, 0)],
        side="L" if params["left_side"] else "R",
        uplo="L" if params["lower"] else "U",
        trans_x=("C" if conjugate else "T") if transpose else "N",
        diag="U" if params["unit_diagonal"] else "N",
    )
    return x if out.dtype in LAPACK else ctx.convert(x, out.dtype)


@xla_translations.register(triangular_solve_p)
def _by_xla(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
    a, b = in_vals
    conjugate, transpose = params["conjugate_a"], params["transpose_a"]
    if conjugate and not transpose:
        a = inlined(ctx, mat.conj, a)
    word = ("ADJOINT" if conjugate else "TRANSPOSE") if transpose else "NO_TRANSPOSE"
    flags = ", ".join(f"{name} = {str(params[name]).lower()}" for name in ("left_side", "lower", "unit_diagonal"))
    return ctx.op(
        "triangular_solve", a, b, out=in_avals[1], attrs=f"{flags}, transpose_a = #stablehlo<transpose {word}>"
    )
