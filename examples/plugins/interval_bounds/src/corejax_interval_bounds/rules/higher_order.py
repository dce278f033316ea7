"""Interval rules of higher-order primitives: calls, conditionals and scans of programs that compute bounds.

A primitive whose plugin is not installed gets no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, Tracer, find_primitive, fixpoint, host_value, inline_closed
from corejax_interval_bounds.interpreter import interval_jaxpr, interval_rules, open_flags, packed, unpacked
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant, join
from corejax_lax_basic import lax

xla_call_p = find_primitive("xla_call")
cond_p = find_primitive("cond")
scan_p = find_primitive("scan")


def xla_call_interval(*operands: Bounds, call_jaxpr: ClosedJaxpr, name: str, backend: str | None) -> list[Bounds]:
    """Call the program that computes bounds."""
    assert xla_call_p is not None
    open_in = open_flags(operands)
    program, open_out = interval_jaxpr(call_jaxpr, open_in)
    values = packed(operands, open_in)
    outs = xla_call_p.bind(*values, call_jaxpr=program, name=f"propagate({name})", backend=backend)
    return unpacked(outs, open_out)


def cond_interval(
    index: Bounds, *operands: Bounds, branches: tuple[ClosedJaxpr, ...], linear: tuple[bool, ...]
) -> list[Bounds]:
    """Choose between the branches on bounds; if the index is an interval, join the results of all possible branches."""
    assert cond_p is not None
    index = _as_point_where_known(index)
    open_in = open_flags(operands)
    flags = [interval_jaxpr(branch, open_in)[1] for branch in branches]
    open_out = [any(column) for column in zip(*flags, strict=True)]
    programs = tuple(interval_jaxpr(branch, open_in, open_out)[0] for branch in branches)
    values = packed(operands, open_in)
    if not index.is_point:
        return _all_branches(index, [inline_closed(p, values) for p in programs], open_out, branches)
    repeated = tuple(flag for flag, is_open in zip(linear, open_in, strict=True) for _ in range(1 + is_open))
    return unpacked(cond_p.bind(index.lower, *values, branches=programs, linear=repeated), open_out)


def _as_point_where_known(index: Bounds) -> Bounds:
    """Convert the index to a point if its bounds are known and equal, so that only one branch has to run."""
    known = not any(isinstance(b, Tracer) for b in index)
    return Bounds.point(index.lower) if known and host_value(index.lower) == host_value(index.upper) else index


def _all_branches(
    index: Bounds, results: Sequence[Sequence[Any]], open_out: Sequence[bool], branches: Sequence[ClosedJaxpr]
) -> list[Bounds]:
    effects = sorted(frozenset().union(*(branch.jaxpr.effects for branch in branches)))
    if effects:
        raise NotImplementedError(
            f"propagate: a cond whose predicate is open runs every branch, but a branch has effects "
            f"({', '.join(effects)}) that may not be meant to happen. Move the effect out of the cond."
        )
    outs = []
    for cases in zip(*(unpacked(outs, open_out) for outs in results), strict=True):
        out = Bounds(*(lax.select_n(index.lower, *column) for column in zip(*cases, strict=True)))
        for i, case in enumerate(cases):
            number = constant(np.int32(i), index.lower)
            possible = lax.bitwise_and(lax.ge(number, index.lower), lax.le(number, index.upper))
            out = join(out, case, possible)
        outs.append(out)
    return outs


def scan_interval(
    *operands: Bounds,
    jaxpr: ClosedJaxpr,
    length: int,
    linear: tuple[bool, ...],
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> list[Bounds]:
    """Scan with bounds as the carry; a carry is an interval if it becomes one in any iteration.

    The number of iterations is known, so that the bounds after the last iteration are those of the unrolled program,
    and no widening is necessary.
    """
    assert scan_p is not None
    num_ys = len(jaxpr.out_avals) - num_carry
    open_in = list(open_flags(operands))
    carry = slice(num_consts, num_consts + num_carry)

    def on_bounds(opened: list[bool]) -> Any:
        open_in[carry] = opened
        program, open_out = interval_jaxpr(jaxpr, open_in, [*opened, *(False for _ in range(num_ys))])
        return open_out[:num_carry], (program, open_out)

    _, (program, open_out) = fixpoint(on_bounds, open_in[carry])
    outs = scan_p.bind(
        *packed(operands, open_in),
        jaxpr=program,
        length=length,
        linear=tuple(flag for flag, is_open in zip(linear, open_in, strict=True) for _ in range(1 + is_open)),
        num_carry=num_carry + sum(open_in[carry]),
        num_consts=num_consts + sum(open_in[:num_consts]),
        **params,
    )
    return unpacked(outs, open_out)


for _primitive, _rule in ((xla_call_p, xla_call_interval), (cond_p, cond_interval), (scan_p, scan_interval)):
    if _primitive is not None:
        interval_rules.register(_primitive, _rule)
