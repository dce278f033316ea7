"""`cond`, `scan` and `while`: programs that give series beside their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    find_primitive,
    fixpoint,
    get_aval,
    inline_closed,
    memoised,
    split_list,
    stage_closed,
)
from corejax_jet.interpreter import (
    jet_jaxpr,
    jet_rules,
    joined_series,
    order_of,
    real_series,
    split_series,
)

cond_p = find_primitive("cond")
scan_p = find_primitive("scan")
while_p = find_primitive("while")


def _flags(series: Sequence[Any]) -> list[bool]:
    return [c is not None for c in series]


def cond_jet(
    primals: Any, series: Any, *, branches: tuple[ClosedJaxpr, ...], linear: Any, **params: Any
) -> tuple[Any, Any]:
    """One `cond`, whose branches all give series for what one of them gives a series for."""
    assert cond_p is not None
    order = order_of(series)
    moving = _flags(series[1:])
    outs = [jet_jaxpr(branch, moving, order)[1] for branch in branches]
    either = [any(flags) for flags in zip(*outs, strict=True)]
    programs = tuple(jet_jaxpr(branch, moving, order, either)[0] for branch in branches)
    coefficients = joined_series(series[1:])
    given = (*linear, *(False for _ in coefficients)) if isinstance(linear, tuple) else linear
    results = cond_p.bind(*primals, *coefficients, branches=programs, linear=given, **params)
    return split_series(results, either, order)


def scan_jet(
    primals: Any,
    series: Any,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    linear: tuple[bool, ...],
    **params: Any,
) -> tuple[Any, Any]:
    """One scan, which carries the coefficients behind its own carries."""
    assert scan_p is not None
    order = order_of(series)
    consts, carry, xs = split_list(_flags(series), [num_consts, num_carry])

    stays = [False] * (len(jaxpr.out_avals) - num_carry)

    def push(carry: list[bool]) -> tuple[list[bool], tuple[ClosedJaxpr, list[bool]]]:
        found = jet_jaxpr(jaxpr, [*consts, *carry, *xs], order, [*carry, *stays])
        return found[1][:num_carry], found

    carry, (program, moving) = fixpoint(push, carry)
    body = _regrouped(program, [num_consts, num_carry, len(xs)], [consts, carry, xs], moving, num_carry, order)
    groups = split_list(list(zip(primals, series, strict=True)), [num_consts, num_carry])
    operands: list[Any] = []
    for group, flags in zip(groups, (consts, carry, xs), strict=True):
        operands += [x for x, _ in group]
        operands += [
            each for (x, c), flag in zip(group, flags, strict=True) if flag for each in real_series(x, c, order)
        ]
    outs = scan_p.bind(
        *operands,
        jaxpr=body,
        num_consts=num_consts + order * sum(consts),
        num_carry=num_carry + order * sum(carry),
        linear=(False,) * len(operands),
        **params,
    )
    carry_out, rest = split_list(outs, [num_carry + order * sum(carry)])
    first, first_series = split_series(carry_out, carry, order)
    second, second_series = split_series(rest, moving[num_carry:], order)
    return [*first, *second], [*first_series, *second_series]


def _regrouped(
    program: ClosedJaxpr,
    counts: Sequence[int],
    flags: Sequence[Sequence[bool]],
    moving: Sequence[bool],
    num_carry: int,
    order: int,
) -> ClosedJaxpr:
    """A program whose groups of arguments and outputs have their coefficients behind them, each group its own."""
    sizes = [n + order * sum(f) for n, f in zip(counts, flags, strict=True)]
    avals = program.in_avals
    total = sum(counts)

    def regroup(values: Sequence[Any]) -> list[Any]:
        parts = split_list(values, sizes[:-1])
        heads = [x for part, n in zip(parts, counts, strict=True) for x in part[:n]]
        tails = [x for part, n in zip(parts, counts, strict=True) for x in part[n:]]
        return [*heads, *tails]

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(program, regroup(args))
        heads, tails = split_list(outs, [len(moving)])
        of_carry = order * sum(moving[:num_carry])
        return [*heads[:num_carry], *tails[:of_carry], *heads[num_carry:], *tails[of_carry:]]

    def make() -> ClosedJaxpr:
        heads, tails = list(avals[:total]), list(avals[total:])
        grouped: list[Any] = []
        for n, f in zip(counts, flags, strict=True):
            grouped += heads[:n]
            grouped += tails[: order * sum(f)]
            del heads[:n], tails[: order * sum(f)]
        return stage_closed(flat, grouped, program.jaxpr.debug_info)

    return memoised(program, ("jet groups", tuple(counts), tuple(map(tuple, flags)), num_carry, order), make)  # type: ignore[no-any-return]


def while_jet(
    primals: Any,
    series: Any,
    *,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
) -> tuple[Any, Any]:
    """One loop, which carries the coefficients behind its own carries; the condition sees the values alone."""
    assert while_p is not None
    order = order_of(series)
    _, consts, carry = split_list(_flags(series), [cond_nconsts, body_nconsts])

    def push(carry: list[bool]) -> tuple[list[bool], ClosedJaxpr]:
        program, moving = jet_jaxpr(body_jaxpr, [*consts, *carry], order, carry)
        return moving, program

    carry, program = fixpoint(push, carry)
    count = len(carry)
    body = _regrouped(program, [body_nconsts, count], [consts, carry], carry, count, order)
    cond_consts, body_group, carry_group = split_list(
        list(zip(primals, series, strict=True)), [cond_nconsts, body_nconsts]
    )
    coefficients = [
        each for (x, c), flag in zip(carry_group, carry, strict=True) if flag for each in real_series(x, c, order)
    ]

    def condition() -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            return inline_closed(cond_jaxpr, args[: cond_nconsts + count])

        avals = [*cond_jaxpr.in_avals, *(get_aval(c).strip_weak_type() for c in coefficients)]
        return stage_closed(flat, avals, cond_jaxpr.jaxpr.debug_info)

    outs = while_p.bind(
        *(x for x, _ in cond_consts),
        *(x for x, _ in body_group),
        *joined_series([c for _, c in body_group]),
        *(x for x, _ in carry_group),
        *coefficients,
        cond_jaxpr=memoised(cond_jaxpr, ("jet condition", tuple(carry), order), condition),
        cond_nconsts=cond_nconsts,
        body_jaxpr=body,
        body_nconsts=body_nconsts + order * sum(consts),
    )
    return split_series(outs, carry, order)


for _primitive, _rule in ((cond_p, cond_jet), (scan_p, scan_jet), (while_p, while_jet)):
    if _primitive is not None:
        jet_rules.register(_primitive, _rule)
