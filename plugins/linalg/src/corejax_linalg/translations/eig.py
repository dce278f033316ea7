"""XLA translation of `eig`."""

from __future__ import annotations

from typing import Any

from corejax.extend import ShapedArray
from corejax_lax_basic import lax
from corejax_linalg._base.types import complex_of
from corejax_linalg.primitives.eig import check_implementation, eig_p
from corejax_linalg.translations._kernels import info_of, inlined, kernel, nan_where_failed, on_cpu


@on_cpu(eig_p)
def _by_lapack(
    ctx: Any,
    out: Any,
    x: Any,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    implementation: Any = None,
    **params: Any,
) -> Any:
    check_implementation(implementation, "cpu")
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
