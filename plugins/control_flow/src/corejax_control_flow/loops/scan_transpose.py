"""Transposition of `scan`: a scan of the transposed body in the opposite direction.

Cotangents of carries are carries of the new scan, cotangents of the stacked results are its scanned arrays, and
cotangents of scanned arrays are its stacked results. The cotangent of a constant is a sum over all iterations, so the
new scan carries this sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    ClosedJaxpr,
    add_tangents,
    fixpoint,
    inline_closed,
    is_undef_primal,
    memoised,
    partition_list,
    split_list,
    spread_list,
    transpose_rules,
)
from corejax.extend.programs import select_list
from corejax.extend.transforms import Cell, tangent_aval, transpose_with_cells, write_cells, zero_cotangent
from corejax_control_flow.loops.scan_partial_eval import split_operands, unknown_operands, unzip
from corejax_control_flow.loops.scan_rules import scan_p
from corejax_control_flow.programs.rewriting import appended, depends, rearranged


@transpose_rules.register(scan_p, symbolic_zeros=True)
def scan_transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    """Transpose a scan. If carries depend on no linear operand, a first scan computes them."""
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    undef = [is_undef_primal(x) for x in operands]
    consts, carry, xs = split_list(undef, [num_consts, num_carry])
    carry, _ = fixpoint(lambda c: (depends(jaxpr.jaxpr, [*consts, *c, *xs])[:num_carry], None), carry)
    if all(carry):
        return _transpose_linear(cts, operands, undef, params)
    halves = unzip(jaxpr, undef, num_consts, num_carry)
    parts = split_operands(halves, operands, undef, params)
    outs = scan_p.bind(*itertools.chain(*parts.known), **parts.known_params)
    invariant = inline_closed(halves.invariant, parts.known[0])
    linear, _ = unknown_operands(halves, parts, invariant, outs[len(parts.known[1]) :])
    unknown_cts = select_list([*halves.unknown_carry, *halves.unknown_ys], cts)
    undef_linear = [is_undef_primal(x) for x in linear]
    cts_in = _transpose_linear(unknown_cts, linear, undef_linear, parts.unknown_params)
    sizes = (len(halves.hoisted), len(parts.unknown[0]), len(parts.unknown[1]), len(halves.scanned))
    _, ct_consts, ct_carry, _, ct_xs = split_list(cts_in, sizes)
    unknown = [*consts, *halves.unknown_carry, *xs]
    return spread_list(unknown, [*ct_consts, *ct_carry, *ct_xs])


class _Transposed(NamedTuple):
    """A transposed body, with flags of the nonzero cotangents.

    The body is `(residuals, ct carries, sums, cells, ct ys, scanned residuals) -> (ct carries, sums, cells, ct xs)`,
    where the sums are the constants' cotangents, summed over the iterations, and the cells those of backward rules.

    Attributes:
        body: the program.
        carry: flags of the carries that have a cotangent in any iteration.
        consts, xs: flags of the linear constants and scanned arrays that get cotangents.
        cells: the cells that backward rules use.
    """

    body: ClosedJaxpr
    carry: list[bool]
    consts: list[bool]
    xs: list[bool]
    cells: tuple[Cell, ...]


def _transposed(
    jaxpr: ClosedJaxpr, linear: Sequence[bool], num_consts: int, num_carry: int, nonzero_cts: Sequence[bool]
) -> _Transposed:
    """Transpose a body. The carries with cotangents are a fixed point over the iterations."""

    def make() -> _Transposed:
        carry, ys = split_list(nonzero_cts, [num_carry])
        consts_linear, _, xs_linear = split_list(linear, [num_consts, num_carry])

        def pull(carry: list[bool]) -> Any:
            transposed, nonzeros, cells = transpose_with_cells(jaxpr, linear, [*carry, *ys])
            consts, carry_in, xs = split_list(nonzeros, [sum(consts_linear), num_carry])
            return carry_in, (transposed, consts, carry_in, xs, cells)

        carry, (transposed, consts, carry_in, xs, cells) = fixpoint(pull, carry)
        avals = [tangent_aval(a) for a in jaxpr.in_avals]
        const_avals, carry_avals, _ = split_list(avals, [num_consts, num_carry])
        sum_avals = select_list(consts, select_list(consts_linear, const_avals))

        def tail(outs: Sequence[Any], sums: Sequence[Any]) -> list[Any]:
            ct_consts, ct_carry, ct_xs, values = split_list(outs, [sum(consts), sum(carry_in), sum(xs)])
            carries = [
                zero_cotangent(a) if ct is None else ct
                for ct, a, nz in zip(spread_list(carry_in, ct_carry), carry_avals, carry, strict=True)
                if nz
            ]
            return [*carries, *map(add_tangents, sums, ct_consts), *values, *ct_xs]

        body = appended(transposed, tail, sum_avals)
        sizes = (consts_linear.count(False), xs_linear.count(False), sum(carry), sum(ys), len(cells))
        res_consts, res_xs, ct_carry, ct_ys, values, sums = split_list(range(len(body.in_avals)), sizes)
        order = [*res_consts, *ct_carry, *sums, *values, *ct_ys, *res_xs]
        return _Transposed(rearranged(body, order, range(len(body.out_avals))), carry, consts, xs, cells)

    key = ("scan transposed", tuple(linear), num_consts, num_carry, tuple(nonzero_cts))
    return memoised(jaxpr, key, make)


def _transpose_linear(
    cts: Sequence[Any], operands: Sequence[Any], undef: Sequence[bool], params: dict[str, Any]
) -> list[Any]:
    """Transpose a scan with only linear carries. A known initial carry gets no cotangent."""
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
    values = [cell.get() for cell in t.cells]
    flags = [False] * len(res_consts) + [True] * (len(ct_carry) + len(sums)) + [False] * len(values)
    flags += [True] * len(ct_ys) + [False] * len(res_xs)
    new_params = {
        **params,
        "jaxpr": t.body,
        "linear": tuple(flags),
        "num_carry": len(ct_carry) + len(sums) + len(values),
        "num_consts": len(res_consts),
        "reverse": not params["reverse"],
    }
    outs = scan_p.bind(*res_consts, *ct_carry, *sums, *values, *ct_ys, *res_xs, **new_params)
    out_carry, out_consts, last, out_xs = split_list(outs, [len(ct_carry), len(sums), len(values)])
    write_cells(t.cells, last)
    ct_init = spread_list(t.carry, out_carry)
    ct_consts = spread_list(t.consts, out_consts)
    ct_xs = spread_list(t.xs, out_xs)
    return [
        *spread_list(consts, ct_consts),
        *(ct if u else None for ct, u in zip(ct_init, init, strict=True)),
        *spread_list(xs, ct_xs),
    ]
