"""`scan` split in two: partial evaluation of both kinds, and what policies of `checkpoint` keep of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Var,
    dce_jaxpr,
    fixpoint,
    inline_closed,
    inline_equations,
    memoised,
    merge_lists,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
    split_list,
)
from corejax.extend.programs import Policy, recompute_rules
from corejax_control_flow.loops.scan_rules import scan_p, stacked
from corejax_control_flow.programs.recomputation import RECOMPUTATION
from corejax_control_flow.programs.rewriting import depends, rearranged, without_effects


class ScanHalves(NamedTuple):
    """A body, split in two.

    The unknown half takes residuals: those of `hoisted` before its own constants, those of `scanned` before its own
    scanned arrays.

    Attributes:
        known: the known body; after its own results it returns residuals to stack.
        unknown: the unknown body.
        invariant: `known constants -> residuals that are the same in every iteration`.
        unknown_carry, unknown_ys: which carries and stacked results are unknown.
        hoisted: where each constant residual comes from: ("const", index among the known constants) or
            ("invariant", index among the outputs of `invariant`).
        scanned: where each stacked residual comes from: ("xs", index among the known scanned arrays) or
            ("ys", index among the known body's stacked results).
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    invariant: ClosedJaxpr
    unknown_carry: list[bool]
    unknown_ys: list[bool]
    hoisted: list[tuple[str, int]]
    scanned: list[tuple[str, int]]


def unzip(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], num_consts: int, num_carry: int, *, hoist: bool = True
) -> ScanHalves:
    """Split the body. A carry is unknown if it becomes so in any iteration."""

    def make() -> ScanHalves:
        consts, carry, xs = split_list(unknowns, [num_consts, num_carry])
        ys = [False] * (len(jaxpr.out_avals) - num_carry)

        def split(carry: list[bool]) -> Any:
            halves = partial_eval_jaxpr(jaxpr, [*consts, *carry, *xs], [*carry, *ys])
            return halves[2][:num_carry], halves

        carry, (known, unknown, unknowns_out, num_res) = fixpoint(split, carry)
        return _with_sources(known, unknown, num_res, (consts, carry, unknowns_out[num_carry:]), hoist)

    return memoised(jaxpr, ("scan halves", tuple(unknowns), num_consts, num_carry, hoist), make)  # type: ignore[no-any-return]


def _with_sources(
    known: ClosedJaxpr, unknown: ClosedJaxpr, num_res: int, unknowns: tuple[list[bool], ...], hoist: bool
) -> ScanHalves:
    """Find where each residual comes from, so that only those that differ between iterations are stacked.

    `unknowns` says which constants, carries and stacked results are unknown.
    """
    consts, carry, ys = unknowns
    num_consts, num_carry, num_ys = consts.count(False), carry.count(False), ys.count(False)
    jaxpr = known.jaxpr
    const_vars, _, x_vars = split_list(jaxpr.invars, [num_consts, num_carry])
    sources: dict[Any, tuple[str, int]] = {v: ("const", i) for i, v in enumerate(const_vars)}
    sources.update((v, ("xs", i)) for i, v in enumerate(x_vars))
    for i, v in enumerate(jaxpr.outvars[num_carry : num_carry + num_ys]):
        if type(v) is Var:
            sources.setdefault(v, ("ys", i))
    flags = [True] * (num_carry + num_ys) + [False] * num_res
    varying = depends(jaxpr, [i >= num_consts for i in range(len(jaxpr.invars))])
    invariant = [False] * len(flags)
    for i in range(num_carry + num_ys, len(flags)):
        v = jaxpr.outvars[i]
        if v not in sources:
            if varying[i] or not hoist:
                sources[v] = ("ys", num_ys + sum(flags[num_carry + num_ys :]))
                flags[i] = True
            else:
                sources[v] = ("invariant", sum(invariant))
                invariant[i] = True
    of_residuals = [sources[v] for v in jaxpr.outvars[num_carry + num_ys :]]
    once = [kind in ("const", "invariant") for kind, _ in of_residuals]
    body, _ = dce_jaxpr(known, flags, True)
    apart, _ = dce_jaxpr(without_effects(known), invariant, [i < num_consts for i in range(len(jaxpr.invars))])
    # From (residuals, constants, carries, xs) to (hoisted, constants, carries, scanned, xs).
    front, rest = split_list(range(num_res, len(unknown.in_avals)), [consts.count(True) + carry.count(True)])
    stacked_ones, hoisted_ones = partition_list(once, range(num_res))
    order = [*hoisted_ones, *front, *stacked_ones, *rest]
    unknown = rearranged(unknown, order, range(len(unknown.out_avals)))
    scanned, hoisted = partition_list(once, of_residuals)
    return ScanHalves(body, unknown, apart, carry, ys, hoisted, scanned)


class SplitOperands(NamedTuple):
    """Operands (constants, carries, scanned arrays) and params of the two scans that a scan is split into."""

    known: list[list[Any]]
    known_params: dict[str, Any]
    unknown: list[list[Any]]
    unknown_params: dict[str, Any]


def split_operands(
    halves: ScanHalves, operands: Sequence[Any], unknowns: Sequence[bool], params: dict[str, Any]
) -> SplitOperands:
    counts = [params["num_consts"], params["num_carry"]]
    consts, _, xs = split_list(unknowns, counts)
    flags = (consts, halves.unknown_carry, xs)
    known, unknown = map(list, zip(*map(partition_list, flags, split_list(operands, counts)), strict=True))
    linear, later = zip(*map(partition_list, flags, split_list(params["linear"], counts)), strict=True)
    known_params = {
        **params,
        "jaxpr": halves.known,
        "linear": tuple(itertools.chain(*linear)),
        "num_carry": len(known[1]),
        "num_consts": len(known[0]),
    }
    unknown_params = {
        **params,
        "jaxpr": halves.unknown,
        "linear": tuple(_in_order([False] * len(halves.hoisted), later, [False] * len(halves.scanned))),
        "num_carry": len(unknown[1]),
        "num_consts": len(halves.hoisted) + len(unknown[0]),
    }
    return SplitOperands(known, known_params, unknown, unknown_params)


def _in_order(hoisted: Sequence[Any], unknown: Sequence[Sequence[Any]], scanned: Sequence[Any]) -> list[Any]:
    """Operands of the unknown half, or what is said of each."""
    consts, carry, xs = unknown
    return [*hoisted, *consts, *carry, *scanned, *xs]


def _runs(jaxpr: ClosedJaxpr) -> bool:
    return bool(jaxpr.out_avals) or bool(jaxpr.effects)


def unknown_operands(
    halves: ScanHalves, parts: SplitOperands, invariant: Sequence[Any], ys: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """All operands of the unknown half, and those of them that are residuals."""
    consts, _, xs = parts.known
    where = {"const": consts, "invariant": invariant, "xs": xs, "ys": ys}
    hoisted, scanned = ([where[kind][i] for kind, i in each] for each in (halves.hoisted, halves.scanned))
    return _in_order(hoisted, parts.unknown, scanned), [*hoisted, *scanned]


@partial_eval_rules.register(scan_p)
def scan_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], **params: Any) -> list[Any]:
    """Scan the known half now, record a scan of the unknown half."""
    unknowns = [trace.is_unknown(x) for x in args]
    halves = unzip(params["jaxpr"], unknowns, params["num_consts"], params["num_carry"])
    parts = split_operands(halves, args, unknowns, params)
    outs: list[Any] = []
    if _runs(halves.known):
        outs = scan_p.bind(*itertools.chain(*parts.known), **parts.known_params)
    carry_out, ys = split_list(outs, [len(parts.known[1])])
    invariant = inline_closed(halves.invariant, parts.known[0]) if halves.invariant.out_avals else []
    recorded: list[Any] = []
    if _runs(halves.unknown):
        operands, _ = unknown_operands(halves, parts, invariant, ys)
        recorded = trace.record(scan_p, operands, parts.unknown_params)
    known_outs = [*carry_out, *ys[: halves.unknown_ys.count(False)]]
    return merge_lists([*halves.unknown_carry, *halves.unknown_ys], known_outs, recorded)


@partial_eval_jaxpr_rules.register(scan_p)
def scan_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation into those that run once, a scan of the known half, and a scan of the unknown half."""
    params = eqn.params
    counts = params["num_consts"], params["num_carry"]
    halves = unzip(params["jaxpr"], unknowns, *counts)
    if halves.invariant.consts:  # the program that the equation is in has no binders for them
        halves = unzip(params["jaxpr"], unknowns, *counts, hoist=False)
    parts = split_operands(halves, eqn.invars, unknowns, params)
    unknowns_out = [*halves.unknown_carry, *halves.unknown_ys]
    known_out, unknown_out = partition_list(unknowns_out, eqn.outvars)
    extra = [Var(a) for a in stacked(params["length"], halves.known.out_avals[len(known_out) :])]
    before, invariant = inline_equations(halves.invariant, parts.known[0])
    ys = [*known_out[len(parts.known[1]) :], *extra]
    operands, residuals = unknown_operands(halves, parts, invariant, ys)
    known_in = [*itertools.chain(*parts.known)]
    known_eqn = eqn.replace(invars=known_in, outvars=[*known_out, *extra], params=parts.known_params)
    unknown_eqn = eqn.replace(invars=operands, outvars=unknown_out, params=parts.unknown_params)
    return (
        [*before, *([known_eqn] if _runs(halves.known) else [])],
        unknown_eqn if _runs(halves.unknown) else None,
        unknowns_out,
        residuals,
    )


# -- policies of `checkpoint` ---------------------------------------------------------------------------------


def scan_recompute(policy: Policy, eqn: JaxprEqn) -> tuple[JaxprEqn, JaxprEqn, list[Var]] | None:
    """Values that the policy keeps are stacked, and scanned when the body runs again."""
    params = eqn.params
    first, again, count = RECOMPUTATION.programs(params["jaxpr"], policy)
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


recompute_rules[scan_p] = scan_recompute
