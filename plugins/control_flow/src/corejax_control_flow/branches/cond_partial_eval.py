"""Partial evaluation of `cond`, of values and of equations, and its rule for policies of `checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    PartialEvalTrace,
    ShapedArray,
    Var,
    memoised,
    merge_lists,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
)
from corejax.extend.programs import Policy, recompute_rules
from corejax_control_flow.branches.cond_rules import Branches, Linear, cond_p, joined_out_avals
from corejax_control_flow.programs.recomputation import RECOMPUTATION
from corejax_control_flow.programs.rewriting import either, with_outputs


class _Halves(NamedTuple):
    """Branches, each split into a known and an unknown half.

    The residuals of the branches differ, but all known halves must return the same types. So the residuals are
    returned in slots. Only one branch runs, hence residuals of one type in different branches share a slot, and a
    branch that has no residual for a slot fills it with zeros. An operand that is a residual takes no slot: the
    unknown branches receive it again.

    Attributes:
        known: branches `known operands -> (known outputs, slots)`.
        unknown: branches `(slots, forwarded operands, unknown operands) -> unknown outputs`.
        unknowns_out: flags of the unknown outputs.
        forwarded: indices of the known operands that are passed to the unknown branches.
        slots: number of slots for residuals.
    """

    known: Branches
    unknown: Branches
    unknowns_out: list[bool]
    forwarded: list[int]
    slots: int


def _unzip(branches: Branches, unknowns: Sequence[bool]) -> _Halves:
    """Split every branch so that all known halves return the same types."""

    def make() -> _Halves:
        none = [False] * len(branches[0].out_avals)
        unknowns_out = either(none, *(partial_eval_jaxpr(b, unknowns, none)[2] for b in branches))
        halves = [partial_eval_jaxpr(b, unknowns, unknowns_out) for b in branches]
        num_known = unknowns_out.count(False)
        forwarded: dict[int, None] = {}
        slots: list[ShapedArray] = []
        sources = []  # for each branch and residual: ("operand", its index) or ("slot", its index)
        for known, *_ in halves:
            sources.append(_residual_sources(known.jaxpr, num_known, forwarded, slots))
        order = sorted(forwarded)
        pairs = zip(halves, sources, strict=True)
        made = [_joined_halves(k, u, num_known, source, order, slots) for (k, u, *_), source in pairs]
        return _Halves(tuple(k for k, _ in made), tuple(u for _, u in made), unknowns_out, order, len(slots))

    return memoised(branches[0], ("cond halves", branches, tuple(unknowns)), make)


def _residual_sources(
    known: Jaxpr, num_known: int, forwarded: dict[int, None], slots: list[ShapedArray]
) -> list[tuple[str, int]]:
    """Return the operand or slot of each residual of a branch; extends `forwarded` and `slots` as needed."""
    position = {v: i for i, v in enumerate(known.invars)}
    residuals = known.outvars[num_known:]
    places = iter(_places([v.aval for v in residuals if v not in position], slots))
    sources = []
    for v in residuals:
        if v in position:
            forwarded[position[v]] = None
            sources.append(("operand", position[v]))
        else:
            sources.append(("slot", next(places)))
    return sources


def _places(avals: Sequence[ShapedArray], slots: list[ShapedArray]) -> list[int]:
    """Assign a distinct slot to each residual of one branch; extends `slots` as needed."""
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


def _with_slots(branch: ClosedJaxpr, num_out: int, filled: dict[int, int], slots: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Return a branch that returns all slots after its first outputs.

    Args:
        branch: program that returns results, followed by residuals.
        num_out: number of results.
        filled: for a slot of this branch, the index of the output that fills it; other slots are zeros.
        slots: types of all slots.
    """
    return with_outputs(branch, [*range(num_out), *(filled.get(i, aval) for i, aval in enumerate(slots))])


def _joined_halves(
    known: ClosedJaxpr,
    unknown: ClosedJaxpr,
    num_known: int,
    sources: list[Any],
    forwarded: list[int],
    slots: list[Any],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Give the halves of one branch the slots and forwarded operands of all branches."""
    num_res = len(sources)
    filled = {place: num_known + i for i, (kind, place) in enumerate(sources) if kind == "slot"}
    old = unknown.jaxpr
    binder = dict(zip(sources, old.invars[:num_res], strict=True))
    taken = [binder.get(("slot", i)) or Var(aval) for i, aval in enumerate(slots)]
    passed = [binder.get(("operand", i)) or Var(known.in_avals[i]) for i in forwarded]
    invars = [*taken, *passed, *old.invars[num_res:]]
    joined = Jaxpr(old.constvars, invars, old.eqns, old.outvars, old.debug_info)
    return _with_slots(known, num_known, filled, slots), ClosedJaxpr(joined, unknown.consts)


def _runs(branches: Branches) -> bool:
    return bool(branches[0].out_avals) or any(b.effects for b in branches)


@partial_eval_rules.register(cond_p)
def cond_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], *, branches: Branches, linear: Linear) -> list[Any]:
    """Run the known halves now if the index is known, and record the rest; record everything if it is not."""
    index, *operands = args
    if trace.is_unknown(index):
        return trace.record(cond_p, args, {"branches": branches, "linear": linear})
    unknowns = [trace.is_unknown(x) for x in operands]
    halves = _unzip(branches, unknowns)
    known, later = partition_list(unknowns, operands)
    linear_known, linear_later = partition_list(unknowns, linear)
    outs: list[Any] = []
    if _runs(halves.known):
        outs = cond_p.bind(index, *known, branches=halves.known, linear=tuple(linear_known))
    num_known = len(outs) - halves.slots
    residuals = [*outs[num_known:], *(known[i] for i in halves.forwarded)]
    flags = (*(False for _ in residuals), *linear_later)
    recorded: list[Any] = []
    if _runs(halves.unknown):
        params: dict[str, object] = {"branches": halves.unknown, "linear": flags}
        recorded = trace.record(cond_p, [index, *residuals, *later], params)
    return merge_lists(halves.unknowns_out, outs[:num_known], recorded)


@partial_eval_jaxpr_rules.register(cond_p)
def cond_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation into a conditional between the known halves and one between the unknown halves."""
    if unknowns[0]:
        return None, eqn, [True] * len(eqn.outvars), []
    index, *operands = eqn.invars
    branches, linear = eqn.params["branches"], eqn.params["linear"]
    halves = _unzip(branches, unknowns[1:])
    known, later = partition_list(unknowns[1:], operands)
    linear_known, linear_later = partition_list(unknowns[1:], linear)
    known_out, unknown_out = partition_list(halves.unknowns_out, eqn.outvars)
    slots = [Var(a) for a in joined_out_avals(halves.known)[len(known_out) :]]
    residuals = [*slots, *(known[i] for i in halves.forwarded)]
    known_eqn = eqn.replace(
        invars=[index, *known],
        outvars=[*known_out, *slots],
        params={"branches": halves.known, "linear": tuple(linear_known)},
    )
    unknown_eqn = eqn.replace(
        invars=[index, *residuals, *later],
        outvars=unknown_out,
        params={
            "branches": halves.unknown,
            "linear": (*(False for _ in residuals), *linear_later),
        },
    )
    return (
        known_eqn if _runs(halves.known) else None,
        unknown_eqn if _runs(halves.unknown) else None,
        halves.unknowns_out,
        residuals,
    )


# -- policies of `checkpoint` ---------------------------------------------------------------------------------


def cond_recompute(policy: Policy, eqn: JaxprEqn) -> tuple[JaxprEqn, JaxprEqn, list[Var]] | None:
    """Return the values that the policy saves in slots, and pass the slots to the branches that recompute."""
    branches: tuple[ClosedJaxpr, ...] = eqn.params["branches"]
    pairs = [RECOMPUTATION.programs(b, policy) for b in branches]
    num_out = len(eqn.outvars)
    slots: list[ShapedArray] = []
    places = [_places(first.out_avals[num_out:], slots) for first, _, _ in pairs]
    if not slots:
        return None
    firsts = tuple(
        _with_slots(first, num_out, {slot: num_out + i for i, slot in enumerate(own)}, slots)
        for (first, _, _), own in zip(pairs, places, strict=True)
    )
    agains = tuple(_from_slots(again, own, slots) for (_, again, _), own in zip(pairs, places, strict=True))
    saved = [Var(a) for a in joined_out_avals(firsts)[num_out:]]
    linear = (*eqn.params["linear"], *(False for _ in saved))
    return (
        eqn.replace(outvars=[*eqn.outvars, *saved], params={**eqn.params, "branches": firsts}),
        eqn.replace(invars=[*eqn.invars, *saved], params={"branches": agains, "linear": linear}),
        saved,
    )


def _from_slots(again: ClosedJaxpr, own: list[int], slots: list[ShapedArray]) -> ClosedJaxpr:
    """Return a branch that takes all slots after its operands."""
    old = again.jaxpr
    binder = dict(zip(own, old.invars, strict=False))
    taken = [binder.get(i) or Var(aval) for i, aval in enumerate(slots)]
    invars = [*old.invars[len(own) :], *taken]
    return ClosedJaxpr(Jaxpr(old.constvars, invars, old.eqns, old.outvars, old.debug_info), again.consts)


recompute_rules[cond_p] = cond_recompute
