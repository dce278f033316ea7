"""Partial evaluation from program to program: split a program into a known and an unknown half.

    partial_eval_jaxpr : (a1, a2) -> (b1, b2)  to  a1 -> (b1, res)  and  (res, a2) -> b2

It is the counterpart of `interpreters.partial_eval` for programs in parameters. Equations are split by their operands;
the residuals are the variables of the known half that the unknown half reads. A plugin may then move cheap equations to
the unknown half (see `recomputation`), which saves residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.base.lists import partition_list
from corejax.ir.check import check_partial_eval
from corejax.ir.dce import dce_jaxpr as dce_open_jaxpr
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from corejax.programs.jaxpr_transforms import Flags, broadcast_flag, check_length, memoised, with_used_consts
from corejax.programs.recomputation import Policy, find_recomputation
from corejax.programs.splitting import split_equations
from corejax.settings.config import config


def partial_eval_jaxpr(
    closed: ClosedJaxpr, unknowns: Flags, instantiate: bool | Flags = False, policy: Policy | None = None
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Split a program into a known and an unknown half.

    Args:
        closed: a program `(a1, a2) -> (b1, b2)`, with arguments in any order.
        unknowns: for each argument, whether it is unknown (`a2`).
        instantiate: which outputs to treat as unknown even if they are known, a flag for each or one for all.
        policy: which values of the known half may be residuals: `policy(primitive, *avals, **params) -> bool` for the
            equation that computes them. The unknown half recomputes the others from known arguments, which may always
            be residuals. By default all may be, and the unknown half recomputes cheap ones (see `Recomputation`).

    Returns:
        `known : a1 -> (b1, res)`, `unknown : (res, a2) -> b2`, for each output whether it is unknown, and the number of
        residuals. A residual may also be an argument or another output of the known half (see `without_forwarded`).
        The unknown half uses every residual, and no residual is a constant: each half has the constants that it uses.
        The order of `a1`, `a2`, `b1` and `b2` is that of the program.
    """
    unknowns = check_length("partial_eval_jaxpr: unknowns", unknowns, closed.in_avals)
    make_unknown = broadcast_flag(instantiate, len(closed.out_avals))

    def make() -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
        jaxpr = closed.jaxpr
        eqns1, eqns2, unknown_vars = split_equations(jaxpr, unknowns)
        unknowns_out = [
            force or (type(v) is Var and v in unknown_vars)
            for v, force in zip(jaxpr.outvars, make_unknown, strict=True)
        ]
        outs1, outs2 = partition_list(unknowns_out, jaxpr.outvars)
        ins1, ins2 = partition_list(unknowns, jaxpr.invars)
        eqns2 = dce_open_jaxpr(Jaxpr((), ins2, eqns2, outs2), [True] * len(outs2), True)[0].eqns
        bound = {*ins2, *jaxpr.constvars}  # both halves have the constants
        residuals = _free(eqns2, outs2, bound)
        if (recomputation := find_recomputation()) is not None:
            eqns1, again = recomputation.split(eqns1, residuals, jaxpr.constvars, policy)
            eqns2 = [*again, *eqns2]
            residuals = _free(eqns2, outs2, bound)
        first = Jaxpr((), ins1, eqns1, [*outs1, *residuals], jaxpr.debug_info)
        known = with_used_consts(closed, dce_open_jaxpr(first, [True] * len(first.outvars), True)[0])
        unknown = with_used_consts(closed, Jaxpr((), [*residuals, *ins2], eqns2, outs2, jaxpr.debug_info))
        if config.check_jaxprs:
            check_partial_eval(jaxpr, known.jaxpr, unknown.jaxpr, unknowns, unknowns_out)
        return known, unknown, unknowns_out, len(residuals)

    return memoised(closed, ("partial_eval", unknowns, make_unknown, policy), make)


def _free(eqns: Sequence[JaxprEqn], outvars: Sequence[object], bound: set[Any]) -> list[Var]:
    """Return the free variables of equations and outputs, in the order of their first use."""
    free: dict[Var, None] = {}
    bound = set(bound)
    for eqn in eqns:
        free.update((v, None) for v in eqn.invars if type(v) is Var and v not in bound)
        bound.update(eqn.outvars)
    free.update((v, None) for v in outvars if type(v) is Var and v not in bound)
    return list(free)


def without_forwarded(closed: ClosedJaxpr, keep: int = 0) -> tuple[ClosedJaxpr, list[tuple[bool, int]]]:
    """Drop outputs of a program that are arguments or repeat another output (memoised).

    Args:
        closed: a program `a -> b`.
        keep: the number of leading outputs that are never dropped.

    Returns:
        The smaller program, and for each output of `closed`: whether it is an argument, and the index of the argument
        or of the smaller program's output.
    """

    def make() -> tuple[ClosedJaxpr, list[tuple[bool, int]]]:
        jaxpr = closed.jaxpr
        outvars = jaxpr.outvars[:keep]
        places: dict[Any, tuple[bool, int]] = {v: (True, i) for i, v in enumerate(jaxpr.invars)}
        for i, v in enumerate(outvars):
            places.setdefault(v, (False, i))
        for v in jaxpr.outvars[keep:]:
            if v not in places:
                places[v] = (False, len(outvars))
                outvars.append(v)
        smaller = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, outvars, jaxpr.debug_info)
        return ClosedJaxpr(smaller, closed.consts), [places[v] for v in jaxpr.outvars]

    return memoised(closed, ("without_forwarded", keep), make)
