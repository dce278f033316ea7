"""The primitive `shard_map` and its rules: a program of blocks, applied for each element of some axes of a mesh.

    shard_map : whole arrays -> whole arrays        given a program from blocks to blocks

A transformation of `shard_map` is the `shard_map` of the transformed program, which is transformed with the mapped axes
in scope. Residuals of partial evaluation have no spec of the user's, and may differ from element to element. So their
blocks are stacked along an additional first axis, which is split over the axes along which they may differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    Array,
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    as_array,
    axis_of_rule,
    batch_jaxpr,
    config,
    dce_jaxpr,
    find_primitive,
    get_aval,
    host_value,
    impl_rules,
    inline_closed,
    is_undef_primal,
    jaxpr_as_fun,
    jvp_jaxpr,
    jvp_rules,
    memoised,
    merge_lists,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
    spread_list,
    stage_closed,
    transpose_jaxpr,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.devices import checks_values
from corejax.extend.messages import run_within
from corejax.extend.plugins import exported
from corejax.extend.programs import dce_rules, select_list
from corejax.extend.transforms import named_axes
from corejax_lax_basic import lax
from corejax_parallel.collectives.reductions import of_parts, psum_p
from corejax_parallel.contexts import axes_of_body
from corejax_parallel.mapping.blocks import names_in, over_blocks, whole_type, with_dimension
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.types.refinement import with_sharding

Specs = tuple[PartitionSpec, ...]

shard_map_p = Primitive(
    "shard_map",
    multiple_results=True,
    tags=("higher_order", "binds_axes"),
    doc="Apply a program to blocks of arrays. Params: jaxpr, mesh, in_specs, out_specs, axis_name (the mapped axes).",
)


def sizes_of(mesh: Any, axis_name: Sequence[Any]) -> dict[Any, int]:
    """Return the sizes of the mapped axes, in the order of the mesh."""
    return {name: size for name, size in mesh.shape_tuple if name in axis_name}


def _stacked_specs(known: ClosedJaxpr, num_res: int, axis_name: tuple[Any, ...]) -> tuple[PartitionSpec, ...]:
    """Return the specs of residuals, which are stacked along the axes along which they may differ.

    If no type has manual axes, types are not tracked, and each residual may differ along all axes.
    """
    typed = any(aval.vma for aval in known.in_avals)
    residuals = known.out_avals[len(known.out_avals) - num_res :]
    return tuple(
        [PartitionSpec(tuple([n for n in axis_name if n in aval.vma]) if typed else axis_name) for aval in residuals]
    )


def _transformed(
    jaxpr: ClosedJaxpr, mesh: Any, mapped: Sequence[Any], transform: Any, *args: Any, **kwargs: Any
) -> Any:
    """Return `transform(jaxpr, ...)`, run with the mapped axes in scope, which users' derivative rules may use."""
    axes = named_axes(axes_of_body(mesh, sizes_of(mesh, mapped)))
    return run_within((axes,), transform, jaxpr, *args, **kwargs)


@abstract_eval_rules.register(shard_map_p)
def _type(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: Any, in_specs: Specs, out_specs: Specs, axis_name: tuple[Any, ...]
) -> list[ShapedArray]:
    sizes = sizes_of(mesh, axis_name)
    for i, (aval, spec, wanted) in enumerate(zip(avals, in_specs, jaxpr.in_avals, strict=True)):
        whole = whole_type(wanted, spec, sizes)
        if aval.shape != whole.shape or aval.dtype != whole.dtype:
            raise TypeError(f"shard_map: operand {i} is {aval.str_short()}, its blocks are of {whole.str_short()}")
    return [_out_type(aval, spec, mesh, axis_name) for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)]


def _out_type(aval: ShapedArray, spec: PartitionSpec, mesh: Any, axis_name: tuple[Any, ...]) -> ShapedArray:
    """Return the type of a whole result, with its explicit sharding if all Explicit axes are mapped over."""
    whole = whole_type(aval, spec, sizes_of(mesh, axis_name))
    explicit = mesh.explicit_axes
    if not explicit or not set(explicit) <= set(axis_name):
        return with_sharding(whole, None)
    return with_sharding(whole, NamedSharding(mesh, spec).explicit_part(whole.ndim))


def runs_piecewise() -> bool:
    """Return whether to run the body operation by operation: under `disable_jit`, or to search for a NaN."""
    return bool(config.disable_jit) or checks_values()


@impl_rules.register(shard_map_p, device=True)
def _impl(*args: Array, jaxpr: ClosedJaxpr, **params: Any) -> list[Array]:
    """Run a compiled program, cached with `jaxpr`; run on the host if `runs_piecewise`, or if there are no devices."""
    if runs_piecewise() or not (params["mesh"].device_tuple or any(len(x.devices()) > 1 for x in args)):
        return _on_host(args, jaxpr, **params)
    return by_program(shard_map_p, args, "shard_map", jaxpr, "jaxpr", params)


def by_program(
    primitive: Primitive, args: Sequence[Any], name: str, jaxpr: ClosedJaxpr, param: str, params: dict[str, Any]
) -> list[Array]:
    """Apply a primitive by a call of a compiled program; `jaxpr` is the parameter `param`, `params` are the others."""
    avals = [get_aval(x) for x in args]

    def flat(*operands: Any) -> Any:
        return primitive.bind(*operands, **{param: jaxpr}, **params)

    key = (primitive.name, *(params[k] for k in sorted(params)), tuple(avals))
    program = memoised(jaxpr, key, lambda: stage_closed(flat, avals, jaxpr.jaxpr.debug_info))
    xla_call_p = find_primitive("xla_call")
    assert xla_call_p is not None
    outs: list[Array] = xla_call_p.bind(*args, call_jaxpr=program, name=name, backend=None)
    return outs


def _on_host(
    args: Sequence[Array],
    jaxpr: ClosedJaxpr,
    mesh: Any,
    in_specs: Specs,
    out_specs: Specs,
    axis_name: tuple[Any, ...],
) -> list[Array]:
    """Compute all blocks at once on the host, and put the results on the devices by their specs."""
    whole = [as_array(host_value(x)) for x in args]
    outs = over_blocks(jaxpr_as_fun(jaxpr), sizes_of(mesh, axis_name), in_specs, out_specs, whole)
    if not mesh.device_tuple:
        return outs
    put = exported("device_put")
    return [put(x, NamedSharding(mesh, spec)) for x, spec in zip(outs, out_specs, strict=True)]


@jvp_rules.register(shard_map_p, symbolic_zeros=True)
def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> Any:
    nonzeros = [t is not None for t in tangents]
    pushed, nonzeros_out = _transformed(jaxpr, params["mesh"], params["axis_name"], jvp_jaxpr, nonzeros)
    outs = shard_map_p.bind(
        *primals,
        *select_list(nonzeros, tangents),
        jaxpr=pushed,
        in_specs=(*in_specs, *select_list(nonzeros, in_specs)),
        out_specs=(*out_specs, *select_list(nonzeros_out, out_specs)),
        **params,
    )
    count = len(nonzeros_out)
    return outs[:count], spread_list(nonzeros_out, outs[count:])


@vmap_rules.register(shard_map_p)
def _vmap(
    axis_size: int,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    *,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> Any:
    sizes = sizes_of(params["mesh"], params["axis_name"])
    names, count = _split_over(axis_size, sizes, (*in_specs, *out_specs), jaxpr.jaxpr.axis_names)
    if names:  # each block has a part of the batch only, so its name must not be used
        _refuse_name(jaxpr, names)
    named = {"axis_name": None} if names else {}
    batched, dims_out = _transformed(
        jaxpr, params["mesh"], params["axis_name"], batch_jaxpr, axis_size // count, dims, **named
    )
    outs = shard_map_p.bind(
        *vals,
        jaxpr=batched,
        in_specs=tuple([with_dimension(s, d, names) for s, d in zip(in_specs, dims, strict=True)]),
        out_specs=tuple([with_dimension(s, d, names) for s, d in zip(out_specs, dims_out, strict=True)]),
        **params,
    )
    return outs, dims_out


def _refuse_name(jaxpr: ClosedJaxpr, names: tuple[Any, ...]) -> None:
    name = axis_of_rule().name
    if name in jaxpr.jaxpr.axis_names:
        raise ValueError(
            f"vmap of a shard_map: its function uses the mapped axis {name!r}, but spmd_axis_name splits that over "
            f"{names}, so that no block has all of it; leave spmd_axis_name out, or use the axis outside of "
            "the shard_map"
        )


def _split_over(
    axis_size: int, sizes: dict[Any, int], specs: Sequence[PartitionSpec], used: frozenset[Any]
) -> tuple[tuple[Any, ...], int]:
    """Return the mapped axes that split the batch (`vmap(spmd_axis_name=)`), and into how many parts.

    An axis that the function uses does not split the batch: a sum along it would add up elements of the batch. The
    transposed function uses the axes that specs do not name.
    """
    names = tuple([name for name in axis_of_rule().spmd if name in sizes])
    for spec in specs:
        for name in names:
            if name in names_in(spec):
                raise ValueError(
                    f"vmap of a shard_map: spmd_axis_name has the axis {name!r}, which {spec} names already, but an "
                    "axis can split only one dimension; leave it out of one of them"
                )
    names = tuple([name for name in names if name not in used])
    count = math.prod([sizes[name] for name in names])
    if axis_size % count:
        raise ValueError(
            f"vmap of a shard_map: spmd_axis_name splits the mapped axis over {names} into {count} parts, but its "
            f"size {axis_size} is not a multiple of {count}"
        )
    return names, count


# -- partial evaluation ------------------------------------------------------------------------------------------


def _stacking(known: ClosedJaxpr, num_res: int) -> ClosedJaxpr:
    """Return the known half with a first axis of size 1 added to its residuals, which are its last results."""

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(known, args)
        first = len(outs) - num_res
        return [*outs[:first], *[lax.expand_dims(x, (0,)) for x in outs[first:]]]

    return memoised(known, ("stacking", num_res), lambda: stage_closed(flat, known.in_avals, known.jaxpr.debug_info))


def _unstacking(unknown: ClosedJaxpr, num_res: int) -> ClosedJaxpr:
    """Return the unknown half for residuals, its first arguments, with the additional axis."""

    def flat(*args: Any) -> list[Any]:
        return inline_closed(unknown, [*[lax.squeeze(x, (0,)) for x in args[:num_res]], *args[num_res:]])

    avals = [a.update(shape=(1, *a.shape)) if i < num_res else a for i, a in enumerate(unknown.in_avals)]
    return memoised(unknown, ("unstacking", num_res), lambda: stage_closed(flat, avals, unknown.jaxpr.debug_info))


class _Halves:
    """The known and the unknown half of a `shard_map` in partial evaluation.

    Attributes:
        known: parameters of the known half, which returns the residuals last.
        unknown: parameters of the unknown half, which takes the residuals first.
        unknowns_out: for each result, whether the unknown half computes it.
        num_res: number of residuals.
    """

    def __init__(self, unknowns: Sequence[bool], params: dict[str, Any]) -> None:
        known, unknown, self.unknowns_out, self.num_res = _transformed(
            params["jaxpr"], params["mesh"], params["axis_name"], partial_eval_jaxpr, unknowns
        )
        known_in, unknown_in = partition_list(unknowns, params["in_specs"])
        known_out, unknown_out = partition_list(self.unknowns_out, params["out_specs"])
        residual = _stacked_specs(known, self.num_res, params["axis_name"])
        self.known = {
            **params,
            "jaxpr": _stacking(known, self.num_res),
            "in_specs": tuple(known_in),
            "out_specs": (*known_out, *residual),
        }
        self.unknown = {
            **params,
            "jaxpr": _unstacking(unknown, self.num_res),
            "in_specs": (*residual, *unknown_in),
            "out_specs": tuple(unknown_out),
        }


@partial_eval_rules.register(shard_map_p)
def _partial_eval(trace: Any, args: Sequence[Any], **params: Any) -> list[Any]:
    unknowns = [trace.is_unknown(x) for x in args]
    halves = _Halves(unknowns, params)
    known_args, unknown_args = partition_list(unknowns, args)
    runs = halves.known["out_specs"] or halves.known["jaxpr"].jaxpr.effects
    outs = shard_map_p.bind(*known_args, **halves.known) if runs else []
    first = len(outs) - halves.num_res
    recorded = []
    if halves.unknown["out_specs"] or halves.unknown["jaxpr"].jaxpr.effects:
        recorded = trace.record(shard_map_p, [*outs[first:], *unknown_args], halves.unknown)
    return merge_lists(halves.unknowns_out, outs[:first], recorded)


@partial_eval_jaxpr_rules.register(shard_map_p)
def _partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    halves = _Halves(unknowns, eqn.params)
    known_in, unknown_in = partition_list(unknowns, eqn.invars)
    known_out, unknown_out = partition_list(halves.unknowns_out, eqn.outvars)
    mesh, names = eqn.params["mesh"], eqn.params["axis_name"]
    results = zip(halves.known["jaxpr"].out_avals, halves.known["out_specs"], strict=True)
    residuals = [Var(_out_type(aval, spec, mesh, names)) for aval, spec in list(results)[len(known_out) :]]
    known = eqn.replace(invars=known_in, outvars=[*known_out, *residuals], params=halves.known)
    unknown = eqn.replace(invars=[*residuals, *unknown_in], outvars=unknown_out, params=halves.unknown)
    return (
        known if known.outvars or known.effects else None,
        unknown if unknown.outvars or unknown.effects else None,
        halves.unknowns_out,
        residuals,
    )


# -- transposition -----------------------------------------------------------------------------------------------


def _transposed(
    jaxpr: ClosedJaxpr, linear: Sequence[bool], nonzero: Sequence[bool], absent_in: Any, absent_out: Any
) -> tuple[ClosedJaxpr, list[bool]]:
    """Transpose the program of blocks.

    A result that is the same along an axis is a single value of several elements, so each element gets its share of the
    cotangent. The cotangent of an operand that is the same for all elements of an axis is the sum of their cotangents.

    Args:
        jaxpr: the program.
        linear: whether each argument is linear.
        nonzero: whether each result has a cotangent.
        absent_in: for each linear argument, the axes that its spec does not name.
        absent_out: for each result with a cotangent, the number of elements that share it.
    """

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        transposed, nonzeros_out = transpose_jaxpr(jaxpr, linear, nonzero)
        num_res = len(transposed.in_avals) - len(absent_out)
        summed = select_list(nonzeros_out, absent_in)

        def flat(*args: Any) -> list[Any]:
            cts = [_share(x, n) for x, n in zip(args[num_res:], absent_out, strict=True)]
            outs = inline_closed(transposed, [*args[:num_res], *cts])
            return [_summed(x, names) for x, names in zip(outs, summed, strict=True)]

        return stage_closed(flat, transposed.in_avals, jaxpr.jaxpr.debug_info), nonzeros_out

    key = ("shard_map transpose", tuple(linear), tuple(nonzero), tuple(absent_in), tuple(absent_out))
    return memoised(jaxpr, key, make)


def _share(ct: Any, count: int) -> Any:
    return ct if count == 1 else of_parts(lambda part: lax.div(part, lax.full_like(part, count)), ct)


def _summed(ct: Any, names: tuple[Any, ...]) -> Any:
    return of_parts(lambda part: psum_p.bind(part, axis_name=names, axis_index_groups=None), ct) if names else ct


@transpose_rules.register(shard_map_p, symbolic_zeros=True)
def _transpose(
    cts: Sequence[Any],
    *operands: Any,
    jaxpr: ClosedJaxpr,
    mesh: Any,
    in_specs: Specs,
    out_specs: Specs,
    axis_name: tuple[Any, ...],
) -> list[Any]:
    sizes = sizes_of(mesh, axis_name)
    linear = [is_undef_primal(x) for x in operands]
    nonzero = [ct is not None for ct in cts]
    res_specs, linear_specs = partition_list(linear, in_specs)
    ct_specs = select_list(nonzero, out_specs)
    absent_in = [tuple([n for n in sizes if n not in names_in(spec)]) for spec in linear_specs]
    absent_out = [math.prod([n for name, n in sizes.items() if name not in names_in(spec)]) for spec in ct_specs]
    transposed, nonzeros_out = _transformed(jaxpr, mesh, axis_name, _transposed, linear, nonzero, absent_in, absent_out)
    outs = shard_map_p.bind(
        *[x for x in operands if not is_undef_primal(x)],
        *[ct for ct in cts if ct is not None],
        jaxpr=transposed,
        mesh=mesh,
        in_specs=(*res_specs, *ct_specs),
        out_specs=tuple(select_list(nonzeros_out, linear_specs)),
        axis_name=axis_name,
    )
    return spread_list(linear, spread_list(nonzeros_out, outs))


@dce_rules.register(shard_map_p)
def _dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    smaller, used = dce_jaxpr(eqn.params["jaxpr"], used_outputs)
    params = {
        **eqn.params,
        "jaxpr": smaller,
        "in_specs": tuple(select_list(used, eqn.params["in_specs"])),
        "out_specs": tuple(select_list(used_outputs, eqn.params["out_specs"])),
    }
    return used, eqn.replace(
        invars=select_list(used, eqn.invars), outvars=select_list(used_outputs, eqn.outvars), params=params
    )
