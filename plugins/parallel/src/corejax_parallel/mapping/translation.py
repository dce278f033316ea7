"""`shard_map` in StableHLO: Shardy's `manual_computation`. On one device without a mesh: all blocks at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, jaxpr_as_fun, memoised, stage_closed, xla_translations
from corejax_parallel.mapping.blocks import over_blocks, whole_type
from corejax_parallel.mapping.pmap import as_shard_map, xla_pmap_p
from corejax_parallel.mapping.primitive import Specs, shard_map_p, sizes_of
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec


@xla_translations.register(shard_map_p)
def _translation(
    ctx: Any,
    in_avals: Sequence[ShapedArray],
    in_vals: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    mesh: Any,
    in_specs: Specs,
    out_specs: Specs,
    axis_name: tuple[Any, ...],
) -> list[Any]:
    if _elsewhere(ctx, mesh, axis_name):
        program = whole_program(jaxpr, mesh, in_specs, out_specs, axis_name, in_avals)
        return ctx.inline(program, in_vals)  # type: ignore[no-any-return]
    sizes = sizes_of(mesh, axis_name)
    out = [whole_type(aval, spec, sizes) for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)]
    texts = [
        [ctx.sharding_text(NamedSharding(mesh, spec), aval.ndim) for spec, aval in zip(specs, avals, strict=True)]
        for specs, avals in ((in_specs, in_avals), (out_specs, out))
    ]
    body = functools.partial(_body, jaxpr)
    if not out:  # XLA inlines what has no results, and what it does has no sharding then
        texts[1] = [ctx.sharding_text(NamedSharding(mesh, PartitionSpec()), 0)]
        out, body = [_NOTHING], _and_nothing(body)
    results = ctx.manual_computation(mesh, axis_name, in_vals, *texts, out, jaxpr.in_avals, body)
    return list(results)[: len(jaxpr.out_avals)]


_NOTHING = ShapedArray((), np.dtype(np.bool_))


def _and_nothing(body: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def with_result(ctx: Any, *blocks: Any) -> list[Any]:
        return [*body(ctx, *blocks), ctx.constant(np.False_)]

    return with_result


@xla_translations.register(xla_pmap_p)
def _pmap_translation(
    ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, call_jaxpr: ClosedJaxpr, **params: Any
) -> list[Any]:
    def flat(*args: Any) -> list[Any]:
        return as_shard_map(*args, call_jaxpr=call_jaxpr, **params)

    key = ("pmap as shard_map", *(params[k] for k in sorted(params)), tuple(in_avals))
    return ctx.inline(memoised(call_jaxpr, key, lambda: stage_closed(flat, in_avals)), in_vals)  # type: ignore[no-any-return]


def _elsewhere(ctx: Any, mesh: Any, axis_name: tuple[Any, ...]) -> bool:
    """Whether its mesh is not the program's: of other devices, or inside of one element of another mesh."""
    around = ctx.module.manual
    if around is not None:
        return around[0].shape_tuple != mesh.shape_tuple or not set(axis_name).isdisjoint(around[1])
    return mesh.size == 1 or ctx.module.meshes.count not in (1, mesh.size)  # XLA partitions for several


def _body(jaxpr: ClosedJaxpr, ctx: Any, *blocks: Any) -> list[Any]:
    return ctx.inline(jaxpr, blocks)  # type: ignore[no-any-return]


def whole_program(
    jaxpr: ClosedJaxpr,
    mesh: Any,
    in_specs: Specs,
    out_specs: Specs,
    axis_name: tuple[Any, ...],
    in_avals: Sequence[ShapedArray],
) -> ClosedJaxpr:
    """The same as a program of whole arrays on one device."""

    def flat(*args: Any) -> list[Any]:
        return over_blocks(jaxpr_as_fun(jaxpr), sizes_of(mesh, axis_name), in_specs, out_specs, args)

    key = ("whole", mesh, in_specs, out_specs, axis_name, tuple(in_avals))
    return memoised(jaxpr, key, lambda: stage_closed(flat, in_avals, jaxpr.jaxpr.debug_info))
