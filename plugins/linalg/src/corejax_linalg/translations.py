"""XLA translations of the primitives.

On CPUs they call the LAPACK kernels of jaxlib. On other platforms, `cholesky` and `triangular_solve` are operations of
StableHLO. The other primitives have no translation there, so compiled programs call them back on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, abstract_eval_rules, xla_translations
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.kernels import info_of, inlined, kernel, nan_where_failed, on_cpu
from corejax_linalg._base.types import LAPACK, complex_of
from corejax_linalg.primitives import eig, eigh, svd
from corejax_linalg.primitives.cholesky import cholesky_p
from corejax_linalg.primitives.householder import householder_product_p, ormqr_p
from corejax_linalg.primitives.lu import lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from corejax_linalg.primitives.qr import geqp3_p, geqrf_p, qr_p
from corejax_linalg.primitives.reductions import hessenberg_p, schur_p, tridiagonal_p
from corejax_linalg.primitives.triangular_solve import triangular_solve_p
from corejax_linalg.primitives.tridiagonal_solve import tridiagonal_solve_p
from corejax_linalg.primitives.updates import cholesky_update_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@on_cpu(cholesky_p)
def _cholesky(ctx: TranslationContext, out: Any, x: Any, *, symmetrize_input: bool = False) -> Any:
    if symmetrize_input:
        x = inlined(ctx, mat.symmetrize, x)
    factor, info = kernel(ctx, "potrf", x, out=[out, info_of(out)], in_place=[(0, 0)], uplo="L")
    return inlined(ctx, mat.lower, *nan_where_failed(ctx, info, factor))


@xla_translations.register(cholesky_p)
def _cholesky_by_xla(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, symmetrize_input: bool = False) -> Any:
    (x,), (aval,) = in_vals, in_avals
    if symmetrize_input:
        x = inlined(ctx, mat.symmetrize, x)
    return inlined(ctx, mat.lower, ctx.op("cholesky", x, out=aval, attrs="lower = true"))


@on_cpu(triangular_solve_p)
def _triangular_solve(ctx: TranslationContext, out: Any, a: Any, b: Any, **params: Any) -> Any:
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
def _triangular_solve_by_xla(ctx: TranslationContext, in_avals: Any, in_vals: Any, **params: Any) -> Any:
    a, b = in_vals
    conjugate, transpose = params["conjugate_a"], params["transpose_a"]
    if conjugate and not transpose:
        a = inlined(ctx, mat.conj, a)
    word = ("ADJOINT" if conjugate else "TRANSPOSE") if transpose else "NO_TRANSPOSE"
    flags = ", ".join(f"{name} = {str(params[name]).lower()}" for name in ("left_side", "lower", "unit_diagonal"))
    return ctx.op(
        "triangular_solve", a, b, out=in_avals[1], attrs=f"{flags}, transpose_a = #stablehlo<transpose {word}>"
    )


@on_cpu(tridiagonal_solve_p)
def _tridiagonal_solve(ctx: TranslationContext, out: Any, *operands: Any, perturb_singular: bool) -> Any:
    if perturb_singular:
        from corejax_xla_backend.hlo import lapack_call

        return lapack_call(ctx, "tridiagonal_solve_perturbed_ffi", *operands, out=[out])[0]
    types = [*(v.aval for v in operands), info_of(out)]
    *_, x, info = kernel(ctx, "gtsv", *operands, out=types, in_place=[(i, i) for i in range(4)])
    return nan_where_failed(ctx, info, x)[0]


@xla_translations.register(lu_p, platform="cpu")
def _lu(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    factors, pivots, _ = abstract_eval_rules.lookup(lu_p)(x.aval)
    rows = x.aval.shape[-2]
    if x.aval.size != 0:  # `info` is ignored: U of a singular matrix has a zero on its diagonal
        out, counted, _ = kernel(ctx, "getrf", x, out=[factors, pivots, info_of(x.aval)], in_place=[(0, 0)])
        swaps = ctx.op("subtract", counted, ctx.full(pivots, np.int32(1)), out=pivots)  # LAPACK counts from 1
    else:
        out, swaps = x, ctx.full(pivots, 0)
    return [out, swaps, inlined(ctx, lambda p: lu_pivots_to_permutation(p, rows), swaps)]


@on_cpu(geqrf_p)
def _geqrf(ctx: TranslationContext, out: Any, a: Any) -> Any:
    return kernel(ctx, "geqrf", a, out=out, in_place=[(0, 0)])


@on_cpu(geqp3_p)
def _geqp3(ctx: TranslationContext, out: Any, a: Any) -> Any:
    free = ctx.full(out[1], 0)  # zeros: no column is fixed to the front
    packed, order, taus = kernel(ctx, "geqp3", a, free, out=out, in_place=[(0, 0), (1, 1)])
    return [packed, ctx.op("subtract", order, ctx.full(out[1], np.int32(1)), out=out[1]), taus]


@xla_translations.register(householder_product_p, platform="cpu")
def _householder_product(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (a, _), (out, taus) = in_vals, in_avals
    if out.size == 0:
        return a
    if taus.size == 0:  # no reflectors
        return ctx.broadcast_in_dim(
            ctx.constant(np.eye(*out.shape[-2:], dtype=out.dtype)), out.shape, (out.ndim - 2, out.ndim - 1)
        )
    return kernel(ctx, "orgqr/ungqr", *in_vals, out=[out], in_place=[(0, 0)])[0]


@xla_translations.register(ormqr_p, platform="cpu")
def _ormqr(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, left: bool, transpose: bool) -> Any:
    c = in_vals[2]
    if c.aval.size == 0 or in_avals[1].size == 0:
        return c
    return kernel(ctx, "ormqr/unmqr", *in_vals, out=[c.aval], in_place=[(2, 0)], left=left, transpose=transpose)[0]


@on_cpu(eig.eig_p)
def _eig(
    ctx: TranslationContext,
    out: Any,
    x: Any,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    implementation: Any = None,
    **params: Any,
) -> Any:
    eig.check_implementation(implementation, "cpu")
    aval = x.aval
    is_real = aval.dtype.kind == "f"
    vectors = ShapedArray(aval.shape, complex_of(aval.dtype))
    values = ShapedArray(aval.shape[:-1], aval.dtype)
    wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
    modes = dict(zip(("compute_left", "compute_right"), ("V" if w else "N" for w in wanted), strict=True))
    types = [*[values] * (2 if is_real else 1), vectors, vectors, info_of(aval)]
    *w, left, right, info = kernel(ctx, "geev", x, out=types, **modes)
    w = inlined(ctx, lax.complex, *w) if is_real else w[0]
    chosen = [v for v, is_wanted in zip((left, right), wanted, strict=True) if is_wanted]
    return nan_where_failed(ctx, info, w, *chosen)


@on_cpu(eigh.eigh_p)
def _eigh(
    ctx: TranslationContext, out: Any, x: Any, *, lower: bool, symmetrize_input: bool = False, algorithm: Any = None
) -> Any:
    eigh.check_implementation(algorithm, "cpu")
    if symmetrize_input:
        x = inlined(ctx, mat.symmetrize, x)
    uplo = "L" if lower else "U"
    *pair, info = kernel(ctx, "syevd/heevd", x, out=[*out, info_of(x.aval)], in_place=[(0, 0)], mode="V", uplo=uplo)
    return nan_where_failed(ctx, info, *pair)


@xla_translations.register(svd.svd_p, platform="cpu")
def _svd(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    full_matrices: bool,
    compute_uv: bool,
    algorithm: Any = None,
) -> Any:
    (x,) = in_vals
    types = abstract_eval_rules.lookup(svd.svd_p)(*in_avals, full_matrices=full_matrices, compute_uv=True)
    if x.aval.size == 0:
        return _bases(ctx, types[: 3 if compute_uv else 1])
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    out = [x.aval, *types, info_of(x.aval)]
    _, s, u, vh, info = kernel(ctx, svd.driver(algorithm, "cpu"), x, out=out, in_place=[(0, 0)], mode=mode)
    return nan_where_failed(ctx, info, *((s, u, vh) if compute_uv else (s,)))


def _bases(ctx: TranslationContext, types: list[ShapedArray]) -> list[Any]:
    """Return results for empty matrices: zeros for the singular values, and the identity as an arbitrary basis."""
    s, *vectors = types
    batch = len(s.shape) - 1
    ones = [ctx.constant(np.eye(*t.shape[-2:], dtype=t.dtype)) for t in vectors]
    bases = [ctx.broadcast_in_dim(x, t.shape, (batch, batch + 1)) for x, t in zip(ones, vectors, strict=True)]
    return [ctx.full(s, 0), *bases]


@on_cpu(schur_p)
def _schur(ctx: TranslationContext, out: Any, x: Any, *, compute_schur_vectors: bool) -> Any:
    aval = x.aval
    values = [ShapedArray(aval.shape[:-1], aval.dtype)] * (2 if aval.dtype.kind == "f" else 1)
    types = [aval, aval, *values, info_of(aval), info_of(aval)]
    mode = "V" if compute_schur_vectors else "N"
    triangle, vectors, *_, info = kernel(ctx, "gees", x, out=types, in_place=[(0, 0)], mode=mode, sort="N")
    return nan_where_failed(ctx, info, *((triangle, vectors) if compute_schur_vectors else (triangle,)))


@on_cpu(hessenberg_p)
def _hessenberg(ctx: TranslationContext, out: Any, a: Any) -> Any:
    last = np.int32(a.aval.shape[-1])
    return kernel(ctx, "gehrd", a, out=[*out, info_of(a.aval)], in_place=[(0, 0)], low=np.int32(1), high=last)[:2]


@on_cpu(tridiagonal_p)
def _tridiagonal(ctx: TranslationContext, out: Any, a: Any, *, lower: bool) -> Any:
    uplo = "L" if lower else "U"
    return kernel(ctx, "sytrd/hetrd", a, out=[*out, info_of(a.aval)], in_place=[(0, 0)], uplo=uplo)[:4]


# These primitives also have impl rules of their own, so their decompositions must be registered as translations.
for _primitive in (lu_pivots_to_permutation_p, qr_p, cholesky_update_p):
    xla_translations.register(_primitive, by="decomposition")
