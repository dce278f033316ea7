"""Partial evaluation of `scan`, of values and of equations, and its rule for policies of `checkpoint`.

The body is split into a known and an unknown half, and each half becomes a scan. A residual between the halves is one
of three kinds. A known constant or scanned array is passed to the unknown scan again. A residual that is the same in
every iteration is computed once, outside the loop. Only the others are stacked, as results of the known scan that the
unknown scan scans over.
"""

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
    """A body, split into a known and an unknown half.

    The unknown half takes the residuals of `hoisted` before its own constants, and the residuals of `scanned` before
    its own scanned arrays.

    Attributes:
        known: the known body; after its own results it returns residuals to stack.
        unknown: the unknown body.
        invariant: program `known constants -> residuals that are the same in every iteration`.
        unknown_carry, unknown_ys: flags of the unknown carries and stacked results.
        hoisted: the source of each loop-invariant residual: ("const", index among the known constants) or
            ("invariant", index among the outputs of `invariant`).
        scanned: the source of each other residual: ("xs", index among the known scanned arrays) or
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
    """Split the body. A carry is unknown if it is unknown in any iteration, hence the fixed point."""

    def make() -> ScanHalves:
        consts, carry, xs = split_list(unknowns, [num_consts, num_carry])
        ys = [False] * (len(jaxpr.out_avals) - num_carry)

        def split(carry: list[bool]) -> Any:
            halves = partial_eval_jaxpr(jaxpr, [*consts, *carry, *xs], [*carry, *ys])
            return halves[2][:num_carry], halves

        carry, (known, unknown, unknowns_out, num_res) = fixpoint(split, carry)
        return _with_sources(known, unknown, num_res, (consts, carry, unknowns_out[num_carry:]), hoist)

    return memoised(jaxpr, ("scan halves", tuple(unknowns), num_consts, num_carry, hoist), make)


def _with_sources(
    known: ClosedJaxpr, unknown: ClosedJaxpr, num_res: int, unknowns: tuple[list[bool], ...], hoist: bool
) -> ScanHalves:
    """Find the source of each residual, so that only residuals that differ between iterations are stacked.

    Args:
        known: the known half of the body, with `num_res` residuals as last outputs.
        unknown: the unknown half of the body, with `num_res` residuals as first arguments.
        num_res: number of residuals.
        unknowns: flags of the unknown constants, carries and stacked results.
        hoist: if False, stack invariant residuals as well.
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
    res_sources = [sources[v] for v in jaxpr.outvars[num_carry + num_ys :]]
    is_hoisted = [kind in ("const", "invariant") for kind, _ in res_sources]
    body, _ = dce_jaxpr(known, flags, True)
    invariants, _ = dce_jaxpr(without_effects(known), invariant, [i < num_consts for i in range(len(jaxpr.invars))])
    # Reorder the arguments from (residuals, constants, carries, xs) to (hoisted, constants, carries, scanned, xs).
    front, rest = split_list(range(num_res, len(unknown.in_avals)), [consts.count(True) + carry.count(True)])
    scanned_positions, hoisted_positions = partition_list(is_hoisted, range(num_res))
    order = [*hoisted_positions, *front, *scanned_positions, *rest]
    unknown = rearranged(unknown, order, range(len(unknown.out_avals)))
    scanned, hoisted = partition_list(is_hoisted, res_sources)
    return ScanHalves(body, unknown, invariants, carry, ys, hoisted, scanned)


class SplitOperands(NamedTuple):
    """Operands (constants, carries, scanned arrays) and params of the known and the unknown scan."""

    known: list[list[Any]]
    known_params: dict[str, Any]
    unknown: list[list[Any]]
    unknown_params: dict[str, Any]


def split_operands(
    halves: ScanHalves, operands: Sequence[Any], unknowns: Sequence[bool], params: dict[str, Any]
) -> SplitOperands:
    """Distribute the operands and params of a scan over its halves."""
    counts = [params["num_consts"], params["num_carry"]]
    consts, _, xs = split_list(unknowns, counts)
    flags = (consts, halves.unknown_carry, xs)
    known, unknown = map(list, zip(*map(partition_list, flags, split_list(operands, counts)), strict=True))
    linear, unknown_linear = zip(*map(partition_list, flags, split_list(params["linear"], counts)), strict=True)
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
        "linear": tuple(_in_order([False] * len(halves.hoisted), unknown_linear, [False] * len(halves.scanned))),
        "num_carry": len(unknown[1]),
        "num_consts": len(halves.hoisted) + len(unknown[0]),
    }
    return SplitOperands(known, known_params, unknown, unknown_params)


def _in_order(hoisted: Sequence[Any], unknown: Sequence[Sequence[Any]], scanned: Sequence[Any]) -> list[Any]:
    """Return the operands of the unknown scan, or flags for each of them, in order."""
    consts, carry, xs = unknown
    return [*hoisted, *consts, *carry, *scanned, *xs]


def _runs(jaxpr: ClosedJaxpr) -> bool:
    return bool(jaxpr.out_avals) or bool(jaxpr.effects)


def unknown_operands(
    halves: ScanHalves, parts: SplitOperands, invariant: Sequence[Any], ys: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return all operands of the unknown scan, and the residuals among them."""
    consts, _, xs = parts.known
    values = {"const": consts, "invariant": invariant, "xs": xs, "ys": ys}
    hoisted, scanned = ([values[kind][i] for kind, i in sources] for sources in (halves.hoisted, halves.scanned))
    return _in_order(hoisted, parts.unknown, scanned), [*hoisted, *scanned]


@partial_eval_rules.register(scan_p)
def scan_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], **params: Any) -> list[Any]:
    """Run a scan of the known half now, and record a scan of the unknown half."""
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
    """Split one equation into loop-invariant equations, a scan of the known half and a scan of the unknown half."""
    params = eqn.params
    counts = params["num_consts"], params["num_carry"]
    halves = unzip(params["jaxpr"], unknowns, *counts)
    if halves.invariant.consts:  # the surrounding jaxpr has no constvars for these values
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
    """Stack the values that the policy saves, and scan over them when the body is recomputed."""
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
