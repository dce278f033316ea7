"""Translations to StableHLO of collectives between the devices of a mesh, and of mapped and partitioned functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    dtypes,
    jaxpr_as_fun,
    memoised,
    stage_closed,
    xla_translations,
)
from corejax.extend.transforms import unbound_axis
from corejax_parallel.collectives._axes import Groups
from corejax_parallel.collectives.exchanges import Pairs, axis_index_p, ppermute_p
from corejax_parallel.collectives.gathers import all_gather_invariant_p, all_gather_p, all_to_all_p, reduce_scatter_p
from corejax_parallel.collectives.reductions import pmax_p, pmin_p, psum_p
from corejax_parallel.collectives.varying import pvary_p
from corejax_parallel.mapping.blocks import over_blocks, specs_of_parts, whole_type
from corejax_parallel.mapping.pmap import as_shard_map, xla_pmap_p
from corejax_parallel.mapping.primitive import Specs, shard_map_p, sizes_of
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.partitioning.custom_partitioning import custom_partitioning_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _mesh(ctx: TranslationContext, what: str, names: Sequence[Any]) -> Any:
    """Return the mesh of the enclosing `shard_map`.

    Raises:
        NameError: an axis is not bound there, or there is no enclosing `shard_map`.
    """
    manual = ctx.module.manual
    bound = () if manual is None else manual[1]
    for name in names:
        if name not in bound:
            raise unbound_axis(name, what, bound)
    return manual[0]


def device_groups(
    ctx: TranslationContext, what: str, names: Sequence[Any], groups: Groups = None
) -> np.ndarray[Any, Any]:
    """Return the devices' numbers in the program, a row for each group of devices that differ along `names` only.

    The devices in a row are ordered by the axes in the order of `names`.
    """
    mesh = _mesh(ctx, what, names)
    numbers: np.ndarray[Any, Any] = ctx.module.meshes.numbers(mesh).reshape(mesh.axis_sizes)
    along = [mesh.axis_names.index(name) for name in names]
    rest = [i for i in range(numbers.ndim) if i not in along]
    count = int(np.prod([mesh.axis_sizes[i] for i in along], dtype=np.int64))
    rows = numbers.transpose(rest + along).reshape(-1, count)
    if groups is None:
        return rows
    return np.concatenate([rows[:, list(group)] for group in groups])


def _text(rows: np.ndarray[Any, Any]) -> str:
    listed = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in rows.tolist())
    return f"dense<[{listed}]> : tensor<{rows.shape[0]}x{rows.shape[1]}xi64>"


def _channel(ctx: TranslationContext) -> str:
    return f"channel_handle = #stablehlo.channel_handle<handle = {ctx.module.new_channel()}, type = 1>"


def _group_attributes(ctx: TranslationContext, rows: np.ndarray[Any, Any], ids: bool = True) -> str:
    return f"replica_groups = {_text(rows)}, {_channel(ctx)}" + (", use_global_device_ids" if ids else "")


_BITS = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}


def _transfer_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which elements are transferred: bytes for narrower integers.

    XLA has no collectives for integers narrower than a byte. Converting back keeps their lowest bits.
    """
    return np.dtype(_BITS.get(dtype.name, dtype))


def _reduction_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which elements are combined: float32 for narrow floats, as XLA loses some NaNs of these."""
    return np.dtype(np.float32) if dtype.name.startswith(("float8_", "float6_", "float4_")) else _transfer_dtype(dtype)


def _in_dtype(choose: Callable[[Any], Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that converts operands to the dtype that `choose` returns, and results back."""

    @functools.wraps(rule)
    def wide(ctx: TranslationContext, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        narrow = in_avals[0].dtype
        dtype = choose(narrow)
        if dtype == narrow:
            return rule(ctx, in_avals, in_vals, **params)
        out = rule(ctx, [in_avals[0].update(dtype=dtype)], [ctx.convert(in_vals[0], dtype)], **params)
        return ctx.convert(out, narrow)

    return wide


def _combining(primitive: Primitive, operation: str) -> None:
    @xla_translations.register(primitive)
    @functools.partial(_in_dtype, _reduction_dtype)
    def _all_reduce(
        ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis_name: tuple[Any, ...], axis_index_groups: Groups
    ) -> Any:
        (x,), (aval,) = in_vals, in_avals
        rows = device_groups(ctx, primitive.name, axis_name, axis_index_groups)
        region = _combiner(ctx, operation, aval)
        return ctx.op("all_reduce", x, out=aval, attrs=_group_attributes(ctx, rows), regions=[region])


def _combiner(ctx: TranslationContext, operation: str, aval: ShapedArray) -> str:
    scalar = ShapedArray((), aval.dtype)
    text: str = ctx.region([scalar, scalar], lambda inner, a, b: inner.op(operation, a, b, out=scalar))
    return text


_combining(psum_p, "add")
_combining(pmax_p, "maximum")
_combining(pmin_p, "minimum")


@xla_translations.register(all_gather_invariant_p)
@xla_translations.register(all_gather_p)
@functools.partial(_in_dtype, _transfer_dtype)
def _all_gather(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    axis_name: Any,
    axis_index_groups: Groups,
    axis: int,
    size: int,
    tiled: bool,
) -> Any:
    (x,), (aval,) = in_vals, in_avals
    rows = device_groups(ctx, "all_gather", (axis_name,), axis_index_groups)
    shape = list(aval.shape)
    if not tiled:
        shape.insert(axis, 1)
        x = ctx.reshape(x, shape)
    shape[axis] *= size
    if 0 in shape:  # StableHLO does not allow empty results
        return ctx.full(aval.update(shape=tuple(shape)), 0)
    attrs = f"all_gather_dim = {axis} : i64, {_group_attributes(ctx, rows)}"
    return ctx.op("all_gather", x, out=aval.update(shape=tuple(shape)), attrs=attrs)


@xla_translations.register(reduce_scatter_p)
@functools.partial(_in_dtype, _reduction_dtype)
def _reduce_scatter(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    axis_name: Any,
    axis_index_groups: Groups,
    axis: int,
    size: int,
    tiled: bool,
) -> Any:
    (x,), (aval,) = in_vals, in_avals
    rows = device_groups(ctx, "psum_scatter", (axis_name,), axis_index_groups)
    shape = list(aval.shape)
    shape[axis] //= size
    if 0 in shape:  # XLA does not allow empty results
        return ctx.full(aval.update(shape=tuple(shape if tiled else [*shape[:axis], *shape[axis + 1 :]])), 0)
    attrs = f"scatter_dimension = {axis} : i64, {_group_attributes(ctx, rows)}"
    out = ctx.op(
        "reduce_scatter", x, out=aval.update(shape=tuple(shape)), attrs=attrs, regions=[_combiner(ctx, "add", aval)]
    )
    return out if tiled else ctx.reshape(out, [*shape[:axis], *shape[axis + 1 :]])


@xla_translations.register(all_to_all_p)
@functools.partial(_in_dtype, _transfer_dtype)
def _all_to_all(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis_name: Any, axis_index_groups: Groups, axis: int
) -> Any:
    rows = device_groups(ctx, "all_to_all", (axis_name,), axis_index_groups)
    attrs = (
        f"split_dimension = {axis} : i64, concat_dimension = {axis} : i64, split_count = {rows.shape[1]} : i64, "
        f"{_group_attributes(ctx, rows, ids=False)}"
    )
    return ctx.op("all_to_all", *in_vals, out=in_avals[0], attrs=attrs)


@xla_translations.register(pvary_p)
def _pvary(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis_name: tuple[Any, ...]) -> Any:
    return in_vals[0]


@xla_translations.register(ppermute_p)
@functools.partial(_in_dtype, lambda dtype: np.dtype(np.uint8) if dtypes.is_bool(dtype) else dtype)
def _ppermute(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, axis_name: tuple[Any, ...], perm: Pairs) -> Any:
    rows = device_groups(ctx, "ppermute", axis_name)
    pairs = np.asarray([[row[s], row[t]] for row in rows for s, t in perm], dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        return ctx.full(in_avals[0], 0)
    attrs = f"source_target_pairs = {_text(pairs)}, {_channel(ctx)}"
    return ctx.op("collective_permute", *in_vals, out=in_avals[0], attrs=attrs)


@xla_translations.register(axis_index_p)
def _axis_index(ctx: Any, in_avals: Any, in_vals: Any, *, axis_name: Any) -> Any:
    """Compute the index from the device's number in the program.

    If the compiler partitions over other axes, the number is computed in a nested computation that is manual over these
    axes, so that it differs between all devices. The index is a digit of the number if the devices are in order;
    otherwise it is looked up in a table.
    """
    mesh = _mesh(ctx, "axis_index", (axis_name,))
    scalar = ShapedArray((), np.dtype(np.uint32))
    free = tuple([name for name in mesh.axis_names if name not in ctx.module.manual[1]])

    def number(inner: Any) -> Any:
        return inner.op("partition_id", out=scalar)

    if free:
        text = f"<{ctx.mesh_symbol(mesh)}, []>"
        device = ctx.manual_computation(mesh, free, [], [], [text], [scalar], [], number)[0]
    else:
        device = number(ctx)
    indices = np.empty(mesh.size, dtype=np.int32)  # the index along the axis, by the device's number in the program
    grid = np.indices(mesh.axis_sizes)[mesh.axis_names.index(axis_name)]
    indices[ctx.module.meshes.numbers(mesh)] = grid.reshape(-1)
    count = mesh.axis_sizes[mesh.axis_names.index(axis_name)]
    stride = int(np.argmax(indices != indices[0])) or 1  # the number of consecutive devices with the same index
    if np.array_equal(indices, np.arange(mesh.size) // stride % count):
        return ctx.convert(_digit(ctx, device, stride, count, mesh.size), np.int32)
    table = ctx.constant(indices)
    start = ctx.convert(device, np.int32)
    index = ctx.op(
        "dynamic_slice", table, start, out=ShapedArray((1,), np.dtype(np.int32)), attrs=f"slice_sizes = {ctx.i64([1])}"
    )
    return ctx.reshape(index, ())


def _digit(ctx: TranslationContext, number: Any, stride: int, count: int, total: int) -> Any:
    """Emit `number // stride % count`, for a number less than `total`."""
    if stride > 1:
        number = ctx.op("divide", number, ctx.full(number.aval, stride), out=number.aval)
    if stride * count < total:
        number = ctx.op("remainder", number, ctx.full(number.aval, count), out=number.aval)
    return number


@xla_translations.register(shard_map_p)
def _shard_map(
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
    if _is_off_mesh(ctx, mesh, axis_name):
        program = whole_program(jaxpr, mesh, in_specs, out_specs, axis_name, in_avals)
        whole: list[Any] = ctx.inline(program, in_vals)
        return whole
    sizes = sizes_of(mesh, axis_name)
    out = [whole_type(aval, spec, sizes) for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)]
    sides = (in_specs, in_avals, jaxpr.in_avals), (out_specs, out, jaxpr.out_avals)
    texts = [
        [ctx.sharding_text(NamedSharding(mesh, spec), ndim) for ndim, spec in specs_of_parts(*side, sizes)]
        for side in sides
    ]
    body: Callable[..., list[Any]] = functools.partial(_body, jaxpr)
    if not out:  # XLA inlines computations without results, and their operations would lose the sharding
        texts[1] = [ctx.sharding_text(NamedSharding(mesh, PartitionSpec()), 0)]
        out, body = [_DUMMY], _with_dummy_result(body)
    results = ctx.manual_computation(mesh, axis_name, in_vals, *texts, out, jaxpr.in_avals, body)
    return list(results)[: len(jaxpr.out_avals)]


_DUMMY = ShapedArray((), np.dtype(np.bool_))


def _with_dummy_result(body: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def with_result(ctx: TranslationContext, *blocks: Any) -> list[Any]:
        return [*body(ctx, *blocks), ctx.constant(np.False_)]

    return with_result


@xla_translations.register(xla_pmap_p)
def _pmap_translation(
    ctx: TranslationContext,
    in_avals: Sequence[ShapedArray],
    in_vals: Sequence[Any],
    *,
    call_jaxpr: ClosedJaxpr,
    **params: Any,
) -> list[Any]:
    def flat(*args: Any) -> list[Any]:
        return as_shard_map(*args, call_jaxpr=call_jaxpr, **params)

    key = ("pmap as shard_map", *(params[k] for k in sorted(params)), tuple(in_avals))
    outs: list[Any] = ctx.inline(memoised(call_jaxpr, key, lambda: stage_closed(flat, in_avals)), in_vals)
    return outs


def _is_off_mesh(ctx: TranslationContext, mesh: Any, axis_name: tuple[Any, ...]) -> bool:
    """Return whether the program is not over the mesh: over other devices, or inside one element of another mesh."""
    manual = ctx.module.manual
    if manual is not None:
        return manual[0].shape_tuple != mesh.shape_tuple or not set(axis_name).isdisjoint(manual[1])
    return mesh.size == 1 or ctx.module.meshes.count not in (1, mesh.size)  # XLA partitions for several devices only


def _body(jaxpr: ClosedJaxpr, ctx: TranslationContext, *blocks: Any) -> list[Any]:
    outs: list[Any] = ctx.inline(jaxpr, blocks)
    return outs


def whole_program(
    jaxpr: ClosedJaxpr,
    mesh: Any,
    in_specs: Specs,
    out_specs: Specs,
    axis_name: tuple[Any, ...],
    in_avals: Sequence[ShapedArray],
) -> ClosedJaxpr:
    """Return a program of whole arrays that computes the `shard_map` on one device."""

    def flat(*args: Any) -> list[Any]:
        return over_blocks(jaxpr_as_fun(jaxpr), sizes_of(mesh, axis_name), in_specs, out_specs, args)

    key = ("whole", mesh, in_specs, out_specs, axis_name, tuple(in_avals))
    return memoised(jaxpr, key, lambda: stage_closed(flat, in_avals, jaxpr.jaxpr.debug_info))


@xla_translations.register(custom_partitioning_p)
def _partitioned(
    ctx: TranslationContext,
    in_avals: Sequence[ShapedArray],
    in_vals: Sequence[Any],
    *,
    call: ClosedJaxpr,
    partitioning: Any,
) -> list[Any]:
    from corejax_xla_backend import hlo

    if not hlo.is_over_devices(ctx):
        outs: list[Any] = ctx.inline(call, in_vals)
        return outs
    avals, out_avals = call.in_avals, call.out_avals

    def split(operands: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        mesh, program, placed_in, placed_out = partitioning.split(avals, out_avals, operands, results)
        return mesh, functools.partial(_body, program), placed_in, placed_out

    rule = partitioning.rule(hlo.mesh_of(ctx), avals, out_avals)
    return hlo.partitioned_call(ctx, in_vals, out_avals, rule, split)
