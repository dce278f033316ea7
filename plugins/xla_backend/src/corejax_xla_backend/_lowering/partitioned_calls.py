"""Calls of a program over several devices that corejax partitions in place of XLA.

XLA cannot partition calls of kernels or of Python. Such operations are replaced by a custom call with a partitioner.
When XLA's partitioner reaches the call, it asks the partitioner for the program that one device runs on its parts, and
for the shardings of the operands and results.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import JaxprEqn, ShapedArray, xla_translations
from corejax.extend.messages import DerivedRuleWarning, clears_cache, describe_source, warn_user
from corejax.extend.plugins import exported
from corejax_xla_backend._lowering.custom_calls import PARTITIONED, factors_rule, quoted
from corejax_xla_backend._lowering.function import Function
from corejax_xla_backend._lowering.module import MAIN, ModuleBuilder
from corejax_xla_backend._lowering.sharding_rules import Factors, factors_of
from corejax_xla_backend._lowering.types import Value
from corejax_xla_backend.sharding import Sharding

_warned: set[Any] = set()  # pairs of a primitive and a user's line
clears_cache(_warned.clear)
_BY_STRING = 2  # StableHLO's API version of calls with a string as `backend_config`


class Split(NamedTuple):
    """A partitioned call.

    Attributes:
        mesh: the mesh; all of its axes are in scope in the program of one device.
        write: `(ctx, *parts of operands) -> parts of results`, values of the program of one device.
        operands, results: shardings of the operands and results over the program's devices.
    """

    mesh: Any
    write: Callable[..., Sequence[Value]]
    operands: Sequence[Sharding]
    results: Sequence[Sharding]


def is_over_devices(ctx: Any) -> bool:
    """Return whether XLA partitions the next operations: over several devices, outside manual regions."""
    module: ModuleBuilder = ctx.module
    return module.meshes.like is not None and module.meshes.count > 1 and module.manual is None


def mesh_of(ctx: Any) -> Any:
    """Return the mesh of a program over several devices: the first in the program or its arguments."""
    module: ModuleBuilder = ctx.module
    assert module.meshes.like is not None
    return module.meshes.like(np.arange(module.meshes.count)).mesh


def part_type(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """Return the type of one device's part."""
    return aval.update(shape=sharding.shard_shape(aval.shape))


def partitioned_call(
    ctx: Function,
    vals: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    rule: str,
    split: Callable[[Sequence[Sharding], Sequence[Sharding]], Split],
) -> list[Value]:
    """Append a call that `split` partitions.

    Args:
        ctx: the builder, of a program over several devices, outside manual regions.
        vals: the operands.
        out_avals: types of the results.
        rule: Shardy's attribute for how shardings of operands and results depend on each other; empty if they do not.
        split: function from the shardings that the compiler chose for operands and results to the `Split`.
    """
    from corejax_xla_backend import _jaxlib

    module, source, context = ctx.module, ctx.source, type(ctx)
    avals = [v.aval for v in vals]
    like = module.meshes.like
    assert like is not None

    def partition(operands: Sequence[Any], results: Sequence[Any]) -> Any:
        chosen = split([like(t) for t in operands], [like(t) for t in results])
        parts = [
            [part_type(aval, s) for aval, s in zip(*side, strict=True)]
            for side in ((avals, chosen.operands), (out_avals, chosen.results))
        ]
        tiles = [
            [s.tiles(aval.ndim) for aval, s in zip(*side, strict=True)]
            for side in ((avals, chosen.operands), (out_avals, chosen.results))
        ]
        return program_of_part(context(module.part_builder()), source, chosen, *parts), *tiles

    ranks = ([a.ndim for a in avals], [a.ndim for a in out_avals])
    partitioner = _jaxlib.CustomPartitioner(ranks, module.meshes.count, partition)
    module.partitioners.append(partitioner)
    attrs = (
        f"call_target_name = {PARTITIONED}, api_version = {_BY_STRING} : i32, "
        f"backend_config = {quoted(partitioner.key)}"
    )
    if rule:
        attrs += f", sdy.sharding_rule = {rule}"
    results: list[Any] = ctx.op("custom_call", *vals, out=list(out_avals), attrs=attrs)
    return results


def program_of_part(
    ctx: Function, source: Any, split: Split, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
) -> str:
    """Return the text of the module for one device's part; `ctx` builds in a `ModuleBuilder.part_builder`.

    Raises:
        TypeError: `split.write` returns other types than the parts of the results have.
        NotImplementedError: the part calls a Python function that the enclosing program does not call.
    """
    inner = ctx.module
    inner.enter(split.mesh, tuple(name for name, _ in split.mesh.shape_tuple))
    known = len(inner.callbacks)
    ctx.source = source
    args = [ctx.argument(f"%arg{i}", aval) for i, aval in enumerate(avals)]
    outs = split.write(ctx, *args)
    inner.add_function("public", MAIN, args, ctx.lines, outs)
    if len(inner.callbacks) > known:
        del inner.callbacks[known:]
        raise NotImplementedError(
            "the program of a device's part calls back on the host; callbacks must be known before the program is "
            "partitioned"
        )
    sides = [x.aval for x in outs], out_avals
    got, wanted = ([(a.shape, a.dtype) for a in each] for each in sides)
    if got != wanted:
        shown = [", ".join(a.str_short() for a in each) for each in sides]
        raise TypeError(
            f"the program of a device's part returns ({shown[0]}), but its part of the results is ({shown[1]})"
        )
    return inner.text("part")


# -- partitioning of equations -----------------------------------------------------------------------------------------


def should_partition(ctx: Function, eqn: JaxprEqn) -> bool:
    """Return whether to partition an equation with operations that XLA cannot partition.

    An equation is not partitioned on one device, in a manual region, or if it has effects, which must happen once.
    If no rule says how to partition a callback, one device calls Python for all.
    """
    if not is_over_devices(ctx) or eqn.effects:
        return False
    if _factors(eqn) is not None:
        return True
    entry = xla_translations.rule_of(eqn.primitive, ctx.platform) or xla_translations.rule_of(eqn.primitive)
    if entry is not None and entry.derived is None:
        return "by" not in entry.flags
    if ctx.module.is_sharded and any(v.aval.ndim for v in eqn.invars):
        _warn(eqn, "its sharded operands are gathered onto the first device, which calls impl for all")
    return False


def partition_equation(
    ctx: Function, eqn: JaxprEqn, rule: Callable[..., Any], operands: Sequence[Value]
) -> Sequence[Value]:
    """Append a partitioned call of an equation; each device computes all of it if no rule says how to split it."""
    avals, out_avals = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    factors = _factors(eqn)

    def write(inner: Function, *parts: Value) -> Sequence[Value]:
        out = rule(inner, [x.aval for x in parts], parts, **eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    if factors is not None:
        split = functools.partial(split_by_factors, factors, avals, out_avals, write)
        sides = zip(avals, factors.operands, strict=True), zip(out_avals, factors.results, strict=True)
        return partitioned_call(ctx, operands, out_avals, factors_rule(factors.sizes, *sides), split)
    return partitioned_call(ctx, operands, out_avals, "", functools.partial(_replicated_split, eqn, write))


def _factors(eqn: JaxprEqn) -> Factors | None:
    """Return the dimensions of an equation that may be split together, or None."""
    return factors_of(eqn.primitive, tuple([v.aval for v in eqn.invars]), eqn.params)


def _warn(eqn: JaxprEqn, what: str) -> None:
    """Warn once for each primitive and line of the program."""
    where = describe_source(eqn.source_info)
    if (eqn.primitive, where) in _warned:
        return
    warn_user(
        f"primitive {eqn.primitive.name!r}, at {where}: {what}, because no rule says that parts can be computed "
        "independently. Such rules are: a vmap rule that applies the primitive itself to the batch; "
        "ctx.custom_call(..., batch_dims=...) in its translation; corejax.experimental.custom_partitioning around it. "
        "Or translate it to StableHLO",
        DerivedRuleWarning,
    )
    _warned.add((eqn.primitive, where))


def _replicated_split(
    eqn: JaxprEqn, write: Callable[..., Any], operands: Sequence[Sharding], results: Sequence[Sharding]
) -> Split:
    """Return the split in which every device computes all of an equation; warn if an operand is sharded."""
    mesh = operands[0].mesh if operands else results[0].mesh
    sharded = [i for i, s in enumerate(operands) if not s.is_fully_replicated]
    if sharded:
        i = sharded[0]
        what = f"operand {i}, {eqn.invars[i].aval.str_short()}, is gathered onto each device, which calls its kernel"
        _warn(eqn, what)
    replicated = [_named_sharding(mesh, [()] * v.aval.ndim) for v in (*eqn.invars, *eqn.outvars)]
    return Split(mesh, write, replicated[: len(operands)], replicated[len(operands) :])


def split_by_factors(
    factors: Factors,
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    write: Callable[..., Sequence[Value]],
    operands: Sequence[Sharding],
    results: Sequence[Sharding],
) -> Split:
    """Return the split in which each factor takes the axes of the first result or operand that splits it.

    The same operation computes the parts. An axis is used once, and only for a factor of a size that it divides.
    """
    mesh = next(s.mesh for s in (*results, *operands))
    sharded = [s for s in (*results, *operands) if not s.is_fully_replicated]
    if sharded:
        mesh = sharded[0].mesh
    sizes = dict(mesh.shape_tuple)
    axes: dict[int, tuple[Any, ...]] = {}
    used: set[Any] = set()
    sides = ((results, factors.results, out_avals), (operands, factors.operands, avals))
    for shardings, numbers, types in sides:
        for sharding, dim_factors, aval in zip(shardings, numbers, types, strict=True):
            if sharding.mesh != mesh:
                continue
            for number, names in zip(dim_factors, sharding.dimension_axes(aval.ndim), strict=True):
                if number is None or not names or axes.get(number) or not used.isdisjoint(names):
                    continue
                if factors.sizes[number] % math.prod(sizes[name] for name in names) == 0:
                    axes[number] = tuple(names)
                    used.update(names)

    def sharding_of(numbers: Sequence[int | None]) -> Sharding:
        return _named_sharding(mesh, [axes.get(n, ()) if n is not None else () for n in numbers])

    return Split(mesh, write, [sharding_of(n) for n in factors.operands], [sharding_of(n) for n in factors.results])


def _named_sharding(mesh: Any, dimensions: Sequence[tuple[Any, ...]]) -> Sharding:
    """Return a `NamedSharding` over a mesh from the axes of each dimension."""
    sharding: Sharding = exported("sharding.NamedSharding")(mesh, exported("sharding.PartitionSpec")(*dimensions))
    return sharding
