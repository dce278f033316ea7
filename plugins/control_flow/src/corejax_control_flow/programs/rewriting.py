"""Programs made of programs: arguments and outputs in another order, more equations, fewer effects.

Nothing is traced again. The old program and the new one share equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, ShapedArray, Var, memoised, stage
from corejax.extend.programs import select_list
from corejax.extend.transforms import zero_cotangent

Flags = Sequence[bool]


def either(*flags: Flags) -> list[bool]:
    """Which flags are set in any of the lists."""
    return [any(column) for column in zip(*flags, strict=True)]


def rearranged(closed: ClosedJaxpr, in_order: Sequence[int], out_order: Sequence[int]) -> ClosedJaxpr:
    """The program with its arguments and outputs in another order.

    Args:
        closed: the program.
        in_order: indices of all of its arguments.
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

    return memoised(closed, ("rearranged", in_order, out_order), make)  # type: ignore[no-any-return]


def appended(
    closed: ClosedJaxpr,
    tail: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    extra_avals: Sequence[ShapedArray] = (),
) -> ClosedJaxpr:
    """The program with more equations at its end.

    Args:
        closed: the program.
        tail: from its outputs and the extra arguments to the new outputs.
        extra_avals: types of arguments that follow the program's own.
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
    whole = Jaxpr(constvars, invars, [*old.eqns, *eqns], outvars, old.debug_info)
    return ClosedJaxpr(whole, [*closed.consts, *consts])


def with_outputs(closed: ClosedJaxpr, plan: Sequence[int | ShapedArray]) -> ClosedJaxpr:
    """The program with outputs as planned: an index is one of its outputs, an aval is zeros of that type."""
    if all(isinstance(item, int) for item in plan):
        return rearranged(closed, range(len(closed.in_avals)), plan)  # type: ignore[arg-type]

    def make() -> ClosedJaxpr:
        return appended(
            closed,
            lambda outs, _: [outs[item] if isinstance(item, int) else zero_cotangent(item) for item in plan],
        )

    return memoised(closed, ("with_outputs", tuple(plan)), make)  # type: ignore[no-any-return]


def depends(jaxpr: Jaxpr, inputs: Flags) -> list[bool]:
    """Which outputs depend on the flagged arguments, or come from an equation with effects."""
    touched: set[Any] = set(select_list(inputs, jaxpr.invars))
    for eqn in jaxpr.eqns:
        if eqn.effects or not touched.isdisjoint(eqn.invars):
            touched.update(eqn.outvars)
    return [v in touched for v in jaxpr.outvars]


# Effects that may happen twice, and where nothing should: they change no result.
HARMLESS = frozenset({"progress", "debug_check"})
DEBUG = frozenset({"debug", "ordered:debug"})  # effects that only look at values


def tells_a_debugger(programs: Sequence[ClosedJaxpr]) -> bool:
    """Whether the effects of programs are those of `debug.callback` and its kin, and harmless ones.

    Over a mapped predicate `cond` runs every branch, and `while_loop` goes on until the last element ends. A debugger
    would be told of branches that are not taken, and of what comes after the end.
    """
    effects = frozenset().union(*(p.effects for p in programs)) - HARMLESS
    return bool(effects) and effects <= DEBUG


def refuse_effects(programs: Sequence[ClosedJaxpr], message: str) -> None:
    """Refuse programs with effects that would happen where they should not.

    Args:
        programs: the programs.
        message: what to say, with `{}` in the place of the effects.

    Raises:
        NotImplementedError: there are effects that are not harmless.
    """
    effects = frozenset().union(*(p.effects for p in programs)) - HARMLESS
    if effects:
        raise NotImplementedError(message.format(", ".join(sorted(effects))))


# Primitives with effects whose result is one of their operands: its index.
passes_on: dict[Any, int] = {}


def without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without the effects that its outputs do not need.

    It is for a program that runs a second time for its outputs. An equation with effects is dropped if no output needs
    its results, or if its result is one of its operands. Effects of other equations stay.
    """
    if not closed.effects:
        return closed
    return memoised(closed, ("without effects",), lambda: _silenced(closed))  # type: ignore[no-any-return]


def _silenced(closed: ClosedJaxpr) -> ClosedJaxpr:
    old = closed.jaxpr
    env: dict[Any, Any] = {}
    eqns = []
    for eqn in old.eqns:
        operands = [env.get(v, v) for v in eqn.invars]
        if eqn.primitive in passes_on:
            env[eqn.outvars[0]] = operands[passes_on[eqn.primitive]]
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
