"""Operations of a program over several devices that are partitioned by what is written here, and not by XLA.

A call takes the place of the operations. When XLA's partitioner comes to it, it asks for the program of one device's
parts, and how operands and results are split for that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import JaxprEqn, ShapedArray, xla_translations
from corejax.extend.devices import TranslationContext
from corejax.extend.messages import DerivedRuleWarning, clears_cache, describe_source, warn_user
from corejax.extend.plugins import exported
from corejax_xla_backend._lowering.custom_calls import PARTITIONED, factors_rule, quoted
from corejax_xla_backend._lowering.module import MAIN
from corejax_xla_backend._lowering.sharding_rules import Factors, factors_of
from corejax_xla_backend._lowering.types import Value
from corejax_xla_backend.sharding import Sharding

_warned: set[Any] = set()  # primitives and lines
clears_cache(_warned.clear)
_BY_STRING = 2  # StableHLO's API version of calls whose `backend_config` is a string


class Split(NamedTuple):
    """How a call is done in parts.

    Attributes:
        mesh: the mesh; all of its axes have names in the parts.
        write: `(ctx, *parts of operands) -> parts of results`, values of the program of one device.
        operands, results: how they are split for that, over the program's devices.
    """

    mesh: Any
    write: Callable[..., Sequence[Value]]
    operands: Sequence[Sharding]
    results: Sequence[Sharding]


def is_over_devices(ctx: TranslationContext) -> bool:
    """Whether what is written now is partitioned by XLA: over several devices, and not each one's own."""
    module = ctx.module
    return module.meshes.like is not None and module.meshes.count > 1 and module.manual is None


def mesh_of(ctx: TranslationContext) -> Any:
    """The mesh of a program over several devices, the first that it or its arguments are about."""
    assert ctx.module.meshes.like is not None
    return ctx.module.meshes.like(np.arange(ctx.module.meshes.count)).mesh


def part_type(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """The type of one device's part."""
    return aval.update(shape=sharding.shard_shape(aval.shape))


def partitioned_call(
    ctx: TranslationContext,
    vals: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    rule: str,
    split: Callable[[Sequence[Sharding], Sequence[Sharding]], Split],
) -> list[Value]:
    """Append a call that `split` says the parts of.

    Args:
        ctx: the builder, of a program over several devices, outside of its parts that are manual.
        vals: the operands.
        out_avals: types of the results.
        rule: Shardy's attribute that tells how shardings of operands and results depend on each other; empty: they do
            not.
        split: from shardings of operands and results, as they have come to be, to how the call is done.
    """
    from corejax_xla_backend import _jaxlib

    module, source, context = ctx.module, ctx.source, type(ctx)
    avals = [v.aval for v in vals]
    like = module.meshes.like
    assert like is not None

    def partition(operands: Sequence[Any], results: Sequence[Any]) -> Any:
        made = split([like(t) for t in operands], [like(t) for t in results])
        parts = [
            [part_type(aval, s) for aval, s in zip(*side, strict=True)]
            for side in ((avals, made.operands), (out_avals, made.results))
        ]
        tiles = [
            [s.tiles(aval.ndim) for aval, s in zip(*side, strict=True)]
            for side in ((avals, made.operands), (out_avals, made.results))
        ]
        return program_of_part(context(module.of_part()), source, made, *parts), *tiles

    ranks = ([a.ndim for a in avals], [a.ndim for a in out_avals])
    partitioner = _jaxlib.CustomPartitioner(ranks, module.meshes.count, partition)
    module.partitioners.append(partitioner)
    attrs = (
        f"call_target_name = {PARTITIONED}, api_version = {_BY_STRING} : i32, "
        f"backend_config = {quoted(partitioner.key)}"
    )
    if rule:
        attrs += f", sdy.sharding_rule = {rule}"
    return ctx.op("custom_call", *vals, out=list(out_avals), attrs=attrs)  # type: ignore[no-any-return]


def program_of_part(
    ctx: TranslationContext, source: Any, split: Split, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
) -> str:
    """Return the module of one device's part, written by a context of `ModuleBuilder.of_part`.

    Raises:
        TypeError: it gives other types than the parts of the results have.
        NotImplementedError: it calls a Python function that the program around does not.
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
            "what a device does with its part calls back on the host, which has to be known before the program is "
            "partitioned"
        )
    sides = [x.aval for x in outs], out_avals
    got, wanted = ([(a.shape, a.dtype) for a in each] for each in sides)
    if got != wanted:
        shown = [", ".join(a.str_short() for a in each) for each in sides]
        raise TypeError(
            f"the program of a device's part gives ({shown[0]}), and its part of the results is ({shown[1]})"
        )
    return inner.text("part")


# -- of an equation ----------------------------------------------------------------------------------------------------


def is_split(ctx: TranslationContext, eqn: JaxprEqn) -> bool:
    """Whether an equation of operations that XLA cannot partition is to be partitioned here.

    It is not on one device; in a part of the program that is each device's own; with effects, which happen once; and
    where one device calls Python for all, because nothing says how it could be done in parts.
    """
    if not is_over_devices(ctx) or eqn.effects:
        return False
    if _factors(eqn) is not None:
        return True
    entry = xla_translations.rule_of(eqn.primitive, ctx.platform) or xla_translations.rule_of(eqn.primitive)
    if entry is not None and entry.derived is None:
        return "by" not in entry.flags
    if ctx.module.spread and any(v.aval.ndim for v in eqn.invars):
        _warn(eqn, "what is spread of its operands is gathered onto the first device, which calls impl for all")
    return False


def equation_in_parts(
    ctx: TranslationContext, eqn: JaxprEqn, rule: Callable[..., Any], operands: Sequence[Value]
) -> Sequence[Value]:
    """Append a call of an equation that is done in parts, as its rules tell how; else of whole operands."""
    avals, out_avals = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    factors = _factors(eqn)

    def write(inner: TranslationContext, *parts: Value) -> Sequence[Value]:
        out = rule(inner, [x.aval for x in parts], parts, **eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    if factors is not None:
        split = functools.partial(split_by_factors, factors, avals, out_avals, write)
        sides = zip(avals, factors.operands, strict=True), zip(out_avals, factors.results, strict=True)
        return partitioned_call(ctx, operands, out_avals, factors_rule(factors.sizes, *sides), split)
    return partitioned_call(ctx, operands, out_avals, "", functools.partial(_gathered, eqn, write))


def _factors(eqn: JaxprEqn) -> Factors | None:
    return factors_of(eqn.primitive, tuple([v.aval for v in eqn.invars]), eqn.params)


def _warn(eqn: JaxprEqn, what: str) -> None:
    """Once for each primitive and line of the program."""
    where = describe_source(eqn.source_info)
    if (eqn.primitive, where) in _warned:
        return
    warn_user(
        f"primitive {eqn.primitive.name!r}, at {where}: {what}, as nothing says that parts are computed alone. "
        "What does: a vmap rule that applies the primitive itself to the batch; ctx.custom_call(..., batch_dims=...) "
        "in its translation; corejax.experimental.custom_partitioning around it. Or translate it to StableHLO",
        DerivedRuleWarning,
    )
    _warned.add((eqn.primitive, where))


def _gathered(
    eqn: JaxprEqn, write: Callable[..., Any], operands: Sequence[Sharding], results: Sequence[Sharding]
) -> Split:
    """Every device does all of it."""
    mesh = operands[0].mesh if operands else results[0].mesh
    spread = [i for i, s in enumerate(operands) if not s.is_fully_replicated]
    if spread:
        i = spread[0]
        what = f"operand {i}, {eqn.invars[i].aval.str_short()}, is gathered onto each device, which calls its kernel"
        _warn(eqn, what)
    whole = [_over(mesh, [()] * v.aval.ndim) for v in (*eqn.invars, *eqn.outvars)]
    return Split(mesh, write, whole[: len(operands)], whole[len(operands) :])


def split_by_factors(
    factors: Factors,
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    write: Callable[..., Sequence[Value]],
    operands: Sequence[Sharding],
    results: Sequence[Sharding],
) -> Split:
    """Each factor split as the first result or operand is that has it; the same operation does the parts."""
    mesh = next(s.mesh for s in (*results, *operands))
    named = [s for s in (*results, *operands) if not s.is_fully_replicated]
    if named:
        mesh = named[0].mesh
    sizes = dict(mesh.shape_tuple)
    axes: dict[int, tuple[Any, ...]] = {}
    used: set[Any] = set()
    sides = ((results, factors.results, out_avals), (operands, factors.operands, avals))
    for shardings, numbers, types in sides:
        for sharding, own, aval in zip(shardings, numbers, types, strict=True):
            if sharding.mesh != mesh:
                continue
            for number, found in zip(own, sharding.dimension_axes(aval.ndim), strict=True):
                if number is None or not found or axes.get(number) or not used.isdisjoint(found):
                    continue
                if factors.sizes[number] % math.prod(sizes[name] for name in found) == 0:
                    axes[number] = tuple(found)
                    used.update(found)

    def placed(numbers: Sequence[int | None]) -> Sharding:
        return _over(mesh, [axes.get(n, ()) if n is not None else () for n in numbers])

    return Split(mesh, write, [placed(n) for n in factors.operands], [placed(n) for n in factors.results])


def _over(mesh: Any, dimensions: Sequence[tuple[Any, ...]]) -> Sharding:
    made: Sharding = exported("sharding.NamedSharding")(mesh, exported("sharding.PartitionSpec")(*dimensions))
    return made
