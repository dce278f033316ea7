"""Translation of `remat2`: its program, behind a barrier in the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, xla_translations
from corejax_control_flow.checkpoint.checkpoint_rules import remat_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(remat_p)
def remat_translation(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    differentiated: bool,
    policy: Any,
    prevent_cse: bool,
) -> list[Any]:
    """Inline the program, in the backward pass behind a barrier, so that XLA cannot merge it with the forward pass."""
    outs: list[Any]
    if not (differentiated and prevent_cse and in_vals):
        outs = ctx.inline(jaxpr, in_vals)
        return outs
    fenced = ctx.op("optimization_barrier", *in_vals, out=[v.aval for v in in_vals])
    sources = [v for v in ctx.parts(fenced) if v.aval.size and v.aval.dtype.name in _WORDS]
    if ctx.platform != "cpu" or not sources or not jaxpr.out_avals:
        outs = ctx.inline(jaxpr, fenced)
        return outs
    regions = [
        ctx.region((), lambda inner: inner.inline(jaxpr, fenced)),
        ctx.region((), lambda inner: [inner.full(a, 0) for a in jaxpr.out_avals]),
    ]
    index = _opaque_zero(ctx, sources[0], sources[-1])
    outs = ctx.op("case", index, out=jaxpr.out_avals, regions=regions)
    return outs


_WORDS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}
_WORDS |= {"complex64": "int32", "complex128": "int64", "bool": "int32"}
_WORDS |= {f"{sign}int{bits}": f"int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_INDEX = ShapedArray((), np.dtype(np.int32))


def _opaque_zero(ctx: TranslationContext, x: Any, ct: Any) -> Any:
    """Return the last bit of n (n + 1), which is 0, where n is the sum of bits of `x` and of `ct`.

    XLA for CPUs drops barriers before it schedules the operations. It would then schedule the recomputation as early as
    possible, which needs more memory than no checkpoint at all. A branch cannot start before its index is computed, and
    XLA cannot fold this index if `x` or `ct` is not a constant.
    """
    n = ctx.op("add", _bits(ctx, x), _bits(ctx, ct), out=_INDEX)
    one = ctx.constant(np.ones((), np.int32))
    product = ctx.op("multiply", n, ctx.op("add", n, one, out=_INDEX), out=_INDEX)
    return ctx.op("and", product, one, out=_INDEX)


def _bits(ctx: TranslationContext, x: Any) -> Any:
    """Return bits of the first element, as i32."""
    shape, dtype = x.aval.shape, x.aval.dtype
    if shape:
        start, ones = ctx.i64([0] * len(shape)), ctx.i64([1] * len(shape))
        attrs = f"start_indices = {start}, limit_indices = {ones}, strides = {ones}"
        x = ctx.reshape(ctx.op("slice", x, out=ShapedArray((1,) * len(shape), dtype), attrs=attrs), ())
    if dtype.kind == "c":
        x = ctx.op("real", x, out=ShapedArray((), np.empty(0, dtype).real.dtype))
    if dtype.kind not in "biu":
        x = ctx.op("bitcast_convert", x, out=ShapedArray((), np.dtype(_WORDS[dtype.name])))
    return ctx.convert(x, _INDEX.dtype)
