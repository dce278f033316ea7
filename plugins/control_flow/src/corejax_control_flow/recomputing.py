"""Policies of `checkpoint` inside `scan` and `cond`: what their programs may keep is kept, the rest is run again."""

from __future__ import annotations

from collections.abc import Sequence

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Policy,
    ShapedArray,
    Var,
    recompute_jaxpr,
    recompute_rules,
)
from corejax_control_flow.branches.cond_rules import cond_p, joined_out_avals
from corejax_control_flow.loops.scan_rules import scan_p, stacked
from corejax_control_flow.programs.rewriting import rearranged, with_outputs


def scan_recompute(policy: Policy, eqn: JaxprEqn) -> tuple[JaxprEqn, JaxprEqn, list[Var]] | None:
    """What the body may keep is stacked, and scanned when it is run again."""
    params = eqn.params
    first, again, count = recompute_jaxpr(params["jaxpr"], policy)
    if not count:
        return None
    saved = [Var(a) for a in stacked(params["length"], first.out_avals[len(eqn.outvars) :])]
    order = [*range(count, len(again.in_avals)), *range(count)]
    again = rearranged(again, order, range(len(again.out_avals)))
    linear = (*params["linear"], *(False for _ in saved))
    return (
        eqn.replace(outvars=[*eqn.outvars, *saved], params={**params, "jaxpr": first}),
        eqn.replace(invars=[*eqn.invars, *saved], params={**params, "jaxpr": again, "linear": linear}),
        saved,
    )


def cond_recompute(policy: Policy, eqn: JaxprEqn) -> tuple[JaxprEqn, JaxprEqn, list[Var]] | None:
    """Values of one type that different branches keep share a slot, for only one branch runs."""
    branches: tuple[ClosedJaxpr, ...] = eqn.params["branches"]
    pairs = [recompute_jaxpr(b, policy) for b in branches]
    num_out = len(eqn.outvars)
    slots: list[ShapedArray] = []
    places = [_places(first.out_avals[num_out:], slots) for first, _, _ in pairs]
    if not slots:
        return None
    firsts = tuple(_with_slots(first, num_out, own, slots) for (first, _, _), own in zip(pairs, places, strict=True))
    agains = tuple(_from_slots(again, own, slots) for (_, again, _), own in zip(pairs, places, strict=True))
    saved = [Var(a) for a in joined_out_avals(firsts)[num_out:]]
    linear = (*eqn.params["linear"], *(False for _ in saved))
    return (
        eqn.replace(outvars=[*eqn.outvars, *saved], params={**eqn.params, "branches": firsts}),
        eqn.replace(invars=[*eqn.invars, *saved], params={"branches": agains, "linear": linear}),
        saved,
    )


def _places(avals: Sequence[ShapedArray], slots: list[ShapedArray]) -> list[int]:
    """A slot for each value of one branch; missing slots are added."""
    free = list(range(len(slots)))
    places = []
    for aval in avals:
        wanted = aval.strip_weak_type()
        slot = next((i for i in free if slots[i] is wanted), None)
        if slot is None:
            slot = len(slots)
            slots.append(wanted)
        else:
            free.remove(slot)
        places.append(slot)
    return places


def _with_slots(first: ClosedJaxpr, num_out: int, own: list[int], slots: list[ShapedArray]) -> ClosedJaxpr:
    """A branch that fills its own slots, and the others with zeros."""
    filled = {slot: num_out + i for i, slot in enumerate(own)}
    return with_outputs(first, [*range(num_out), *(filled.get(i, aval) for i, aval in enumerate(slots))])


def _from_slots(again: ClosedJaxpr, own: list[int], slots: list[ShapedArray]) -> ClosedJaxpr:
    """A branch that takes all slots after its operands."""
    old = again.jaxpr
    binder = dict(zip(own, old.invars, strict=False))
    taken = [binder.get(i) or Var(aval) for i, aval in enumerate(slots)]
    invars = [*old.invars[len(own) :], *taken]
    return ClosedJaxpr(Jaxpr(old.constvars, invars, old.eqns, old.outvars, old.debug_info), again.consts)


recompute_rules[scan_p] = scan_recompute
recompute_rules[cond_p] = cond_recompute
