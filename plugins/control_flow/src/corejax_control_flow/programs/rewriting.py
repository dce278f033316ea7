"""Transformations of jaxprs: reorder arguments and outputs, append equations, remove effects.

The user's functions are not traced again: the old program and the new one share equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, ShapedArray, Var, memoised, stage
from corejax.extend.programs import select_list
from corejax.extend.transforms import zero_cotangent

Flags = Sequence[bool]


def either(*flags: Flags) -> list[bool]:
    """Return the elementwise `or` of lists of flags."""
    return [any(column) for column in zip(*flags, strict=True)]


def rearranged(closed: ClosedJaxpr, in_order: Sequence[int], out_order: Sequence[int]) -> ClosedJaxpr:
    """Reorder the arguments and outputs of a program.

    Args:
        closed: the program.
        in_order: a permutation of the indices of its arguments.
        out_order: indices of its outputs; some may be missing or repeated.
    """
    in_order, out_order = tuple(in_order), tuple(out_order)
    if in_order == tuple(range(len(closed.in_avals))) and out_order == tuple(range(len(closed.out_avals))):
        return closed

    def make() -> ClosedJaxpr:
        old = closed.jaxpr
        invars = [old.invars[i] for i in in_order]
        outvars = [old.outvars[i] for i in out_order]
        return ClosedJaxpr(Jaxpr(old.constvars, invars, old.eqns, outvars, old.debug_info), closed.consts)

    return memoised(closed, ("rearranged", in_order, out_order), make)


def appended(
    closed: ClosedJaxpr,
    tail: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    extra_avals: Sequence[ShapedArray] = (),
) -> ClosedJaxpr:
    """Append equations to a program.

    Args:
        closed: the program.
        tail: function `(outputs, extra arguments) -> new outputs`, which is traced.
        extra_avals: types of the extra arguments, which follow the program's arguments.
    """
    old = closed.jaxpr
    count = len(old.outvars)

    def flat(*args: Any) -> Sequence[Any]:
        return tail(args[:count], args[count:])

    new, consts = stage(flat, [*closed.out_avals, *extra_avals], old.debug_info)
    atoms: dict[Any, Any] = dict(zip(new.invars[:count], old.outvars, strict=True))
    eqns = [eqn.replace(invars=[atoms.get(v, v) for v in eqn.invars]) for eqn in new.eqns]
    outvars = [atoms.get(v, v) for v in new.outvars]
    constvars = [*old.constvars, *new.constvars]
    invars = [*old.invars, *new.invars[count:]]
    jaxpr = Jaxpr(constvars, invars, [*old.eqns, *eqns], outvars, old.debug_info)
    return ClosedJaxpr(jaxpr, [*closed.consts, *consts])


def with_outputs(closed: ClosedJaxpr, plan: Sequence[int | ShapedArray]) -> ClosedJaxpr:
    """Replace the outputs of a program: an index in `plan` stands for an old output, an aval for zeros of that type."""
    indices = [item for item in plan if isinstance(item, int)]
    if len(indices) == len(plan):
        return rearranged(closed, range(len(closed.in_avals)), indices)

    def make() -> ClosedJaxpr:
        return appended(
            closed,
            lambda outs, _: [outs[item] if isinstance(item, int) else zero_cotangent(item) for item in plan],
        )

    return memoised(closed, ("with_outputs", tuple(plan)), make)


def depends(jaxpr: Jaxpr, inputs: Flags) -> list[bool]:
    """Flag the outputs that depend on the flagged arguments or on an equation with effects."""
    touched: set[Any] = set(select_list(inputs, jaxpr.invars))
    for eqn in jaxpr.eqns:
        if eqn.effects or not touched.isdisjoint(eqn.invars):
            touched.update(eqn.outvars)
    return [v in touched for v in jaxpr.outvars]


# Effects that change no result: they may happen twice, or in a branch that is not taken.
HARMLESS = frozenset({"progress", "debug_check"})
DEBUG = frozenset({"debug", "ordered:debug"})  # effects of `debug.print` and `debug.callback`


def has_only_debug_effects(programs: Sequence[ClosedJaxpr]) -> bool:
    """Return whether the programs have debugging effects, and otherwise only harmless ones.

    Over a mapped predicate `cond` runs every branch, and `while_loop` continues until the last element ends. A
    debugging callback would then run for branches that are not taken and after an element's last iteration.
    """
    effects = frozenset().union(*(p.effects for p in programs)) - HARMLESS
    return bool(effects) and effects <= DEBUG


def refuse_effects(programs: Sequence[ClosedJaxpr], message: str) -> None:
    """Raise NotImplementedError if the programs have effects that are not harmless.

    Args:
        programs: the programs.
        message: text of the error, with `{}` in the place of the effects.
    """
    effects = frozenset().union(*(p.effects for p in programs)) - HARMLESS
    if effects:
        raise NotImplementedError(message.format(", ".join(sorted(effects))))


# For primitives with effects that return one of their operands and nothing else, the index of this operand.
forwarded_operand: dict[Any, int] = {}


def without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Remove the effects that a program's outputs do not need.

    This is for a program that runs a second time for its outputs. An equation with effects is dropped if no output
    needs its results, or if it forwards an operand. The effects of other equations stay.
    """
    if not closed.effects:
        return closed
    return memoised(closed, ("without effects",), lambda: _silenced(closed))


def _silenced(closed: ClosedJaxpr) -> ClosedJaxpr:
    old = closed.jaxpr
    env: dict[Any, Any] = {}
    eqns = []
    for eqn in old.eqns:
        operands = [env.get(v, v) for v in eqn.invars]
        if eqn.primitive in forwarded_operand:
            env[eqn.outvars[0]] = operands[forwarded_operand[eqn.primitive]]
            continue
        eqns.append(eqn.replace(invars=operands))
    outvars = [env.get(v, v) for v in old.outvars]
    live = {v for v in outvars if type(v) is Var}
    kept = []
    for eqn in reversed(eqns):
        if eqn.effects:
            if live.isdisjoint(eqn.outvars):
                continue
            eqn = eqn.replace(params={name: _silent(value) for name, value in eqn.params.items()})
        live.update(v for v in eqn.invars if type(v) is Var)
        kept.append(eqn)
    return ClosedJaxpr(Jaxpr(old.constvars, old.invars, kept[::-1], outvars, old.debug_info), closed.consts)


def _silent(param: Any) -> Any:
    if isinstance(param, ClosedJaxpr):
        return without_effects(param)
    return tuple(map(_silent, param)) if isinstance(param, tuple) else param
