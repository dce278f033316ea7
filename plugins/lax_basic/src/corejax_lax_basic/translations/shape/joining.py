"""StableHLO of `concatenate`, `split`, `unstack` and `stack`: slices and concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.shape.joining import concatenate_p, split_p, stack_p, unstack_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(concatenate_p)
def concatenate(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, dimension: int) -> Any:
    """Lower to `concatenate`."""
    out = concatenate_p.abstract(tuple(in_avals), {"dimension": dimension})[0]
    dtype = out.dtype
    if dtype.name in ("int2", "uint2"):  # XLA of jaxlib 0.10 ends the process for these dtypes
        in_vals, out = [ctx.convert(x, np.dtype(np.int8)) for x in in_vals], out.update(dtype=np.dtype(np.int8))
    joined = ctx.op("concatenate", *in_vals, out=out, attrs=f"dimension = {dimension} : i64")
    return ctx.convert(joined, dtype)


def _parts(ctx: TranslationContext, x: Any, sizes: Sequence[int], axis: int) -> list[Any]:
    starts, limits = [0] * len(x.aval.shape), list(x.aval.shape)
    limits[axis] = 0
    outs = []
    for size in sizes:
        starts[axis], limits[axis] = limits[axis], limits[axis] + size
        outs.append(ctx.slice(x, tuple(starts), tuple(limits), None))
    return outs


@xla_translations.register(split_p)
def split(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, sizes: Any, axis: int) -> Any:
    """Lower to a slice for each part."""
    return _parts(ctx, in_vals[0], sizes, axis)


@xla_translations.register(unstack_p)
def unstack(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis: int) -> Any:
    """Lower to a slice for each index, without the axis."""
    (x,) = in_vals
    shape = (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :])
    return [ctx.reshape(part, shape) for part in _parts(ctx, x, [1] * x.aval.shape[axis], axis)]


@xla_translations.register(stack_p)
def stack(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis: int) -> Any:
    """Lower to `concatenate` of operands with an axis of size 1."""
    shape = in_vals[0].aval.shape
    parts = [ctx.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in in_vals]
    out = ShapedArray((*shape[:axis], len(parts), *shape[axis:]), in_avals[0].dtype)
    return ctx.op("concatenate", *parts, out=out, attrs=f"dimension = {axis} : i64")
