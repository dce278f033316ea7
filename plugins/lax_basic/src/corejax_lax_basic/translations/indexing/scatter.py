"""StableHLO of scatters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.extend import ClosedJaxpr, Primitive, ShapedArray, xla_translations
from corejax.extend.types import max_dim
from corejax_lax_basic.indexing.dimension_numbers import CLIP, FILL, slice_sizes_of
from corejax_lax_basic.indexing.scatter import scatter_p
from corejax_lax_basic.indexing.scatter_apply import scatter_apply_p
from corejax_lax_basic.indexing.scatter_combining import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_sub_p,
)
from corejax_lax_basic.translations.elementwise.arithmetic import extremum
from corejax_lax_basic.translations.indexing.gather import clamped, inside, last_starts, signed_indices

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def scatter_op(
    ctx: TranslationContext,
    in_vals: Any,
    combine: Callable[..., Any],
    *,
    dimension_numbers: Any,
    mode: Any,
    **promises: bool,
) -> Any:
    """Lower to `scatter`; `combine(ctx, x, update)` returns the new element."""
    x, indices, updates = in_vals
    if updates.aval.size == 0:
        return x
    windows, inserted, index_map, batching, indices_batching = dimension_numbers
    indices = signed_indices(ctx, indices, x.aval.shape)
    sizes = slice_sizes_of(x.aval.shape, updates.aval.shape, dimension_numbers)
    if mode is CLIP and index_map:
        indices = clamped(ctx, indices, last_starts(ctx, indices, x.aval.shape, sizes, index_map))
    elif mode is FILL and any(sizes[d] != 1 for d in index_map):
        indices = _whole_windows(ctx, indices, last_starts(ctx, indices, x.aval.shape, sizes, index_map), x.aval.shape)
        promises["indices_are_sorted"] = False
    if math.prod(indices.aval.shape[:-1]) == 1:
        if ctx.module.meshes.divides and index_map and not batching:
            indices, updates, windows = _append_outside_window(ctx, indices, updates, windows, x.aval.shape)
        else:
            updates = ctx.written(x, updates)
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {list(windows)}, inserted_window_dims = {list(inserted)}, "
        f"input_batching_dims = {list(batching)}, scatter_indices_batching_dims = {list(indices_batching)}, "
        f"scatter_dims_to_operand_dims = {list(index_map)}, index_vector_dim = {indices.aval.ndim - 1}>"
    )
    flags = ", ".join(
        f"{name} = {'true' if promises[name] else 'false'}" for name in ("indices_are_sorted", "unique_indices")
    )
    scalar = ShapedArray((), x.aval.dtype)
    return ctx.op(
        "scatter",
        x,
        indices,
        updates,
        out=[x.aval],
        attrs=f"scatter_dimension_numbers = {numbers}, {flags}",
        regions=[ctx.region([scalar, scalar], combine)],
    )[0]


def _append_outside_window(
    ctx: TranslationContext, indices: Any, updates: Any, windows: Any, shape: Any
) -> tuple[Any, Any, Any]:
    """Append to a single window another one that lies outside of the operand.

    XLA turns a scatter of a single window into an update in place. If the operand is sharded, devices that do not hold
    the window clamp it and write it to their shards.
    """
    inner = tuple(updates.aval.shape[d] for d in windows)
    index = ctx.reshape(indices, (1, indices.aval.shape[-1]))
    window = ctx.reshape(updates, (1, *inner))
    outside = ctx.full(index.aval, max(shape))
    pairs = [(index, outside), (window, window)]
    both = [
        ctx.op("concatenate", a, b, out=a.aval.update(shape=(2, *a.aval.shape[1:])), attrs="dimension = 0 : i64")
        for a, b in pairs
    ]
    return *both, tuple(range(1, len(inner) + 1))


def _whole_windows(ctx: TranslationContext, indices: Any, last: Any, shape: Any) -> Any:
    """Move windows that are partly outside to positions wholly outside.

    The specification drops single elements, while XLA drops whole windows, and so does the mode.
    """
    mask = ctx.broadcast_in_dim(inside(ctx, indices, last), indices.aval.shape, tuple(range(indices.aval.ndim - 1)))
    outside = ctx.full(indices.aval, functools.reduce(max_dim, shape))
    return ctx.op("select", mask, indices, outside, out=indices.aval)


def _register(primitive: Primitive, combine: Callable[..., Any]) -> None:
    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        return scatter_op(ctx, in_vals, combine, **params)

    xla_translations.register(primitive, rule)


def _operation(name: str) -> Callable[..., Any]:
    return lambda ctx, x, y: ctx.op(name, x, y, out=x.aval)


_register(scatter_p, lambda ctx, x, update: update)
_register(scatter_add_p, _operation("add"))
_register(scatter_sub_p, _operation("subtract"))
_register(scatter_mul_p, _operation("multiply"))
_register(scatter_min_p, lambda ctx, x, y: extremum(ctx, "minimum", x, y))
_register(scatter_max_p, lambda ctx, x, y: extremum(ctx, "maximum", x, y))


@xla_translations.register(scatter_apply_p)
def scatter_apply(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, jaxpr: ClosedJaxpr, update_shape: Any, **params: Any
) -> Any:
    """Lower to a scatter that ignores its updates."""
    x, indices = in_vals
    updates = ctx.full(x.aval.update(shape=update_shape), 0)
    return scatter_op(ctx, [x, indices, updates], lambda inner, a, _: inner.inline(jaxpr, [a]), **params)
