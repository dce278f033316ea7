"""`scan` taken apart: partial evaluation of both kinds, and transposition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Var,
    add_tangents,
    dce_jaxpr,
    fixpoint,
    inline_closed,
    inline_equations,
    is_undef_primal,
    memoised,
    merge_lists,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
    select_list,
    split_list,
    spread_list,
    tangent_aval,
    transpose_jaxpr,
    transpose_rules,
    zero_cotangent,
)
from corejax_control_flow.programs import appended, depends, rearranged, without_effects
from corejax_control_flow.scan_rules import scan_p, stacked

# -- partial evaluation --------------------------------------------------------------------------------------


class _Halves(NamedTuple):
    """A body unzipped.

    The unknown half's constants are `hoisted`, then the unknown ones; its scanned arrays are `scanned`, then
    the unknown ones.

    Attributes:
        known: the known body; after its own results it gives residuals to stack.
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


def _unzip(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], num_consts: int, num_carry: int, *, hoist: bool = True
) -> _Halves:
    """Split the body; a carry is unknown if it becomes so in any iteration."""

    def make() -> _Halves:
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
) -> _Halves:
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
    return _Halves(body, unknown, apart, carry, ys, hoisted, scanned)


class _Parts(NamedTuple):
    """Operands and params of the two scans that a scan is split into."""

    known_consts: list[Any]
    known_carry: list[Any]
    known_xs: list[Any]
    known_params: dict[str, Any]
    unknown_consts: list[Any]
    unknown_carry: list[Any]
    unknown_xs: list[Any]
    unknown_params: dict[str, Any]


def _parts(halves: _Halves, operands: Sequence[Any], unknowns: Sequence[bool], params: dict[str, Any]) -> _Parts:
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    consts, carry, xs = split_list(operands, [num_consts, num_carry])
    linear = split_list(params["linear"], [num_consts, num_carry])
    u_consts, _, u_xs = split_list(unknowns, [num_consts, num_carry])
    flags = (u_consts, halves.unknown_carry, u_xs)
    known, unknown = zip(*map(partition_list, flags, (consts, carry, xs)), strict=True)
    known_linear, groups = zip(*map(partition_list, flags, linear), strict=True)
    unknown_linear = [
        *(False for _ in halves.hoisted),
        *groups[0],
        *groups[1],
        *(False for _ in halves.scanned),
        *groups[2],
    ]
    known_params = {
        **params,
        "jaxpr": halves.known,
        "linear": tuple(itertools.chain(*known_linear)),
        "num_carry": len(known[1]),
        "num_consts": len(known[0]),
    }
    unknown_params = {
        **params,
        "jaxpr": halves.unknown,
        "linear": tuple(unknown_linear),
        "num_carry": len(unknown[1]),
        "num_consts": len(halves.hoisted) + len(unknown[0]),
    }
    return _Parts(*known, known_params, *unknown, unknown_params)


def _runs(jaxpr: ClosedJaxpr) -> bool:
    return bool(jaxpr.out_avals) or bool(jaxpr.effects)


def _residual_values(
    halves: _Halves, parts: _Parts, invariant: Sequence[Any], ys: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    where = {"const": parts.known_consts, "invariant": invariant, "xs": parts.known_xs, "ys": ys}
    return [where[kind][i] for kind, i in halves.hoisted], [where[kind][i] for kind, i in halves.scanned]


@partial_eval_rules.register(scan_p)
def scan_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], **params: Any) -> list[Any]:
    """Scan the known half now, record a scan of the unknown half."""
    unknowns = [trace.is_unknown(x) for x in args]
    halves = _unzip(params["jaxpr"], unknowns, params["num_consts"], params["num_carry"])
    parts = _parts(halves, args, unknowns, params)
    outs: list[Any] = []
    if _runs(halves.known):
        outs = scan_p.bind(*parts.known_consts, *parts.known_carry, *parts.known_xs, **parts.known_params)
    carry_out, ys = split_list(outs, [len(parts.known_carry)])
    invariant = inline_closed(halves.invariant, parts.known_consts) if halves.invariant.out_avals else []
    hoisted, scanned = _residual_values(halves, parts, invariant, ys)
    recorded: list[Any] = []
    if _runs(halves.unknown):
        operands = [*hoisted, *parts.unknown_consts, *parts.unknown_carry, *scanned, *parts.unknown_xs]
        recorded = trace.record(scan_p, operands, parts.unknown_params)
    known_outs = [*carry_out, *ys[: halves.unknown_ys.count(False)]]
    return merge_lists([*halves.unknown_carry, *halves.unknown_ys], known_outs, recorded)


@partial_eval_jaxpr_rules.register(scan_p)
def scan_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation: what is the same in every iteration, a scan of each half."""
    params = eqn.params
    counts = params["num_consts"], params["num_carry"]
    halves = _unzip(params["jaxpr"], unknowns, *counts)
    if halves.invariant.consts:  # the program that the equation is in has no binders for them
        halves = _unzip(params["jaxpr"], unknowns, *counts, hoist=False)
    parts = _parts(halves, eqn.invars, unknowns, params)
    unknowns_out = [*halves.unknown_carry, *halves.unknown_ys]
    known_out, unknown_out = partition_list(unknowns_out, eqn.outvars)
    num_carry = len(parts.known_carry)
    extra = [Var(a) for a in stacked(params["length"], halves.known.out_avals[len(known_out) :])]
    before, invariant = inline_equations(halves.invariant, parts.known_consts)
    hoisted, scanned = _residual_values(halves, parts, invariant, [*known_out[num_carry:], *extra])
    known_eqn = eqn.replace(
        invars=[*parts.known_consts, *parts.known_carry, *parts.known_xs],
        outvars=[*known_out, *extra],
        params=parts.known_params,
    )
    unknown_eqn = eqn.replace(
        invars=[*hoisted, *parts.unknown_consts, *parts.unknown_carry, *scanned, *parts.unknown_xs],
        outvars=unknown_out,
        params=parts.unknown_params,
    )
    return (
        [*before, *([known_eqn] if _runs(halves.known) else [])],
        unknown_eqn if _runs(halves.unknown) else None,
        unknowns_out,
        [*hoisted, *scanned],
    )


# -- transposition -------------------------------------------------------------------------------------------


@transpose_rules.register(scan_p, symbolic_zeros=True)
def scan_transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    """A scan of the transposed body from the other end; carries without linear operands are run first."""
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    undef = [is_undef_primal(x) for x in operands]
    consts, carry, xs = split_list(undef, [num_consts, num_carry])
    carry, _ = fixpoint(lambda c: (depends(jaxpr.jaxpr, [*consts, *c, *xs])[:num_carry], None), carry)
    if all(carry):
        return _pull(cts, operands, undef, params)
    halves = _unzip(jaxpr, undef, num_consts, num_carry)
    parts = _parts(halves, operands, undef, params)
    outs = scan_p.bind(*parts.known_consts, *parts.known_carry, *parts.known_xs, **parts.known_params)
    invariant = inline_closed(halves.invariant, parts.known_consts)
    hoisted, scanned = _residual_values(halves, parts, invariant, outs[len(parts.known_carry) :])
    linear = [*hoisted, *parts.unknown_consts, *parts.unknown_carry, *scanned, *parts.unknown_xs]
    unknown_cts = select_list([*halves.unknown_carry, *halves.unknown_ys], cts)
    pulled = _pull(unknown_cts, linear, [is_undef_primal(x) for x in linear], parts.unknown_params)
    sizes = (len(hoisted), len(parts.unknown_consts), len(parts.unknown_carry), len(scanned))
    _, ct_consts, ct_carry, _, ct_xs = split_list(pulled, sizes)
    unknown = [*consts, *halves.unknown_carry, *xs]
    return spread_list(unknown, [*ct_consts, *ct_carry, *ct_xs])


class _Transposed(NamedTuple):
    """A transposed body and which cotangents there are.

    The body is `(residuals, ct carries, sums, ct ys, scanned residuals) -> (ct carries, sums, ct xs)`, where
    the sums are those of the constants' cotangents.

    Attributes:
        body: the program.
        carry: which carries have cotangents, in any iteration.
        consts, xs: which linear constants and scanned arrays get cotangents.
    """

    body: ClosedJaxpr
    carry: list[bool]
    consts: list[bool]
    xs: list[bool]


def _transposed(
    jaxpr: ClosedJaxpr, linear: Sequence[bool], num_consts: int, num_carry: int, nonzero_cts: Sequence[bool]
) -> _Transposed:
    def make() -> _Transposed:
        carry, ys = split_list(nonzero_cts, [num_carry])
        consts_linear, _, xs_linear = split_list(linear, [num_consts, num_carry])

        def pull(carry: list[bool]) -> Any:
            pulled, own = transpose_jaxpr(jaxpr, linear, [*carry, *ys])
            consts, own_carry, xs = split_list(own, [sum(consts_linear), num_carry])
            return own_carry, (pulled, consts, own_carry, xs)

        carry, (pulled, consts, own_carry, xs) = fixpoint(pull, carry)
        avals = [tangent_aval(a) for a in jaxpr.in_avals]
        const_avals, carry_avals, _ = split_list(avals, [num_consts, num_carry])
        sum_avals = select_list(consts, select_list(consts_linear, const_avals))

        def tail(outs: Sequence[Any], sums: Sequence[Any]) -> list[Any]:
            ct_consts, ct_carry, ct_xs = split_list(outs, [sum(consts), sum(own_carry)])
            pulled_carry = spread_list(own_carry, ct_carry)
            carries = [
                zero_cotangent(a) if ct is None else ct
                for ct, a, nz in zip(pulled_carry, carry_avals, carry, strict=True)
                if nz
            ]
            return [*carries, *map(add_tangents, sums, ct_consts), *ct_xs]

        body = appended(pulled, tail, sum_avals)
        sizes = (consts_linear.count(False), xs_linear.count(False), sum(carry), sum(ys))
        res_consts, res_xs, ct_carry, ct_ys, sums = split_list(range(len(body.in_avals)), sizes)
        order = [*res_consts, *ct_carry, *sums, *ct_ys, *res_xs]
        return _Transposed(rearranged(body, order, range(len(body.out_avals))), carry, consts, xs)

    key = ("scan transposed", tuple(linear), num_consts, num_carry, tuple(nonzero_cts))
    return memoised(jaxpr, key, make)  # type: ignore[no-any-return]


def _pull(cts: Sequence[Any], operands: Sequence[Any], undef: Sequence[bool], params: dict[str, Any]) -> list[Any]:
    """Transpose a scan all of whose carries are linear; an initial carry that is known gets none."""
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    consts, init, xs = split_list(undef, [num_consts, num_carry])
    linear = [*consts, *(True for _ in init), *xs]
    t = _transposed(jaxpr, linear, num_consts, num_carry, [ct is not None for ct in cts])
    const_operands, _, x_operands = split_list(operands, [num_consts, num_carry])
    res_consts, res_xs = partition_list(consts, const_operands)[0], partition_list(xs, x_operands)[0]
    const_avals, carry_avals, _ = split_list(jaxpr.in_avals, [num_consts, num_carry])
    ct_carry, ct_ys = split_list(cts, [num_carry])
    ct_carry = [
        zero_cotangent(a) if ct is None else ct for ct, a, nz in zip(ct_carry, carry_avals, t.carry, strict=True) if nz
    ]
    sums = [zero_cotangent(a) for a in select_list(t.consts, select_list(consts, const_avals))]
    ct_ys = [ct for ct in ct_ys if ct is not None]
    flags = [False] * len(res_consts) + [True] * (len(ct_carry) + len(sums) + len(ct_ys)) + [False] * len(res_xs)
    new_params = {
        **params,
        "jaxpr": t.body,
        "linear": tuple(flags),
        "num_carry": len(ct_carry) + len(sums),
        "num_consts": len(res_consts),
        "reverse": not params["reverse"],
    }
    outs = scan_p.bind(*res_consts, *ct_carry, *sums, *ct_ys, *res_xs, **new_params)
    out_carry, out_consts, out_xs = split_list(outs, [len(ct_carry), len(sums)])
    ct_init = spread_list(t.carry, out_carry)
    ct_consts = spread_list(t.consts, out_consts)
    ct_xs = spread_list(t.xs, out_xs)
    return [
        *spread_list(consts, ct_consts),
        *(ct if u else None for ct, u in zip(ct_init, init, strict=True)),
        *spread_list(xs, ct_xs),
    ]
