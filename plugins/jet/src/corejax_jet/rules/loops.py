"""Jet rules of `cond`, `scan`, `while` and functions with a JVP rule: their programs propagate series as well."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Primitive, fixpoint, inline_closed, memoised, split_list, stage_closed
from corejax_jet.interpreter import (
    by_nested_jvp,
    for_primitive,
    jet_jaxpr,
    joined_series,
    order_of,
    real_series,
    split_series,
)


def _flags(series: Sequence[Any]) -> list[bool]:
    return [c is not None for c in series]


def cond_jet(
    primitive: Primitive, primals: Any, series: Any, *, branches: tuple[ClosedJaxpr, ...], linear: Any, **params: Any
) -> tuple[Any, Any]:
    """Bind one `cond`; all branches return a series for each output for which one of them has a series."""
    order = order_of(series)
    moving = _flags(series[1:])
    outs = [jet_jaxpr(branch, moving, order)[1] for branch in branches]
    either = [any(flags) for flags in zip(*outs, strict=True)]
    programs = tuple(jet_jaxpr(branch, moving, order, either)[0] for branch in branches)
    coefficients = joined_series(series[1:])
    all_linear = (*linear, *(False for _ in coefficients)) if isinstance(linear, tuple) else linear
    results = primitive.bind(*primals, *coefficients, branches=programs, linear=all_linear, **params)
    return split_series(results, either, order)


def scan_jet(
    primitive: Primitive,
    primals: Any,
    series: Any,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    linear: tuple[bool, ...],
    **params: Any,
) -> tuple[Any, Any]:
    """Bind one scan; the coefficients of the carries are carried behind them."""
    order = order_of(series)
    consts, carry, xs = split_list(_flags(series), [num_consts, num_carry])

    stays = [False] * (len(jaxpr.out_avals) - num_carry)

    def push(carry: list[bool]) -> tuple[list[bool], tuple[ClosedJaxpr, list[bool]]]:
        staged = jet_jaxpr(jaxpr, [*consts, *carry, *xs], order, [*carry, *stays])
        return staged[1][:num_carry], staged

    carry, (program, moving) = fixpoint(push, carry)
    flags = [*consts, *carry, *xs]
    in_order, out_order = _grouped(flags, [num_consts, num_carry], order), _grouped(moving, [num_carry], order)
    everything = [*primals, *_coefficients(primals, series, flags, order)]
    outs = primitive.bind(
        *(everything[i] for i in in_order),
        jaxpr=_in_order(program, in_order, out_order),
        num_consts=num_consts + order * sum(consts),
        num_carry=num_carry + order * sum(carry),
        linear=(False,) * len(everything),
        **params,
    )
    by_position = dict(zip(out_order, outs, strict=True))
    return split_series([by_position[i] for i in range(len(outs))], moving, order)


def _coefficients(primals: Sequence[Any], series: Sequence[Any], flags: Sequence[bool], order: int) -> list[Any]:
    """Concatenate the coefficients of the flagged values, zeros for values without a series."""
    return joined_series(
        [real_series(x, c, order) if f else None for x, c, f in zip(primals, series, flags, strict=True)]
    )


def _grouped(flags: Sequence[bool], sizes: Sequence[int], order: int) -> list[int]:
    """Return the order in which each group of values is followed by its coefficients.

    The input order has all values first, then all coefficients.

    Args:
        flags: a flag for each value: whether it has coefficients.
        sizes: the sizes of all groups but the last.
        order: the number of coefficients of a value.
    """
    places = itertools.count(len(flags))
    own = [list(itertools.islice(places, order)) if flag else [] for flag in flags]
    groups = split_list(range(len(flags)), sizes)
    return [i for group in groups for i in (*group, *(k for value in group for k in own[value]))]


def _in_order(program: ClosedJaxpr, in_order: Sequence[int], out_order: Sequence[int]) -> ClosedJaxpr:
    """Permute the arguments and outputs of a program."""

    def flat(*args: Any) -> list[Any]:
        by_position = dict(zip(in_order, args, strict=True))
        outs = inline_closed(program, [by_position[i] for i in range(len(args))])
        return [outs[i] for i in out_order]

    def make() -> ClosedJaxpr:
        return stage_closed(flat, [program.in_avals[i] for i in in_order], program.jaxpr.debug_info)

    return memoised(program, ("in order", tuple(in_order), tuple(out_order)), make)


def while_jet(
    primitive: Primitive,
    primals: Any,
    series: Any,
    *,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
) -> tuple[Any, Any]:
    """Bind one loop; the coefficients are carried behind the carries, and the condition reads the values only."""
    order = order_of(series)
    _, consts, carry = split_list(_flags(series), [cond_nconsts, body_nconsts])

    def push(carry: list[bool]) -> tuple[list[bool], ClosedJaxpr]:
        program, moving = jet_jaxpr(body_jaxpr, [*consts, *carry], order, carry)
        return moving, program

    carry, program = fixpoint(push, carry)
    count, own, first = len(carry), series[cond_nconsts:], primals[:cond_nconsts]
    order_in, order_out = _grouped([*consts, *carry], [body_nconsts], order), _grouped(carry, [], order)
    everything = [*primals[cond_nconsts:], *_coefficients(primals[cond_nconsts:], own, [*consts, *carry], order)]
    body = _in_order(program, order_in, order_out)

    def condition() -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            return inline_closed(cond_jaxpr, args[: cond_nconsts + count])

        avals = [*cond_jaxpr.in_avals, *body.out_avals[count:]]
        return stage_closed(flat, avals, cond_jaxpr.jaxpr.debug_info)

    outs = primitive.bind(
        *first,
        *(everything[i] for i in order_in),
        cond_jaxpr=memoised(cond_jaxpr, ("jet condition", tuple(carry), order), condition),
        cond_nconsts=cond_nconsts,
        body_jaxpr=body,
        body_nconsts=body_nconsts + order * sum(consts),
    )
    return split_series(outs, carry, order)


def custom_jvp_jet(primitive: Primitive, primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
    """Differentiate by the user's rule, which may be another function than the derivative on purpose."""
    return by_nested_jvp(primitive, primals, series, params)


for _name, _rule in (
    ("cond", cond_jet),
    ("scan", scan_jet),
    ("while", while_jet),
    ("custom_jvp_call", custom_jvp_jet),
):
    for_primitive(_name, _rule)
