"""Partial evaluation from program to program: what is known of a program, and the rest of it.

partial_eval_jaxpr : (a1, a2) -> (b1, b2)  to  a1 -> (b1, res)  and  (res, a2) -> b2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.interpreters.lists import partition_list
from corejax.interpreters.splitting import split_equations
from corejax.ir.check import check_partial_eval
from corejax.ir.dce import dce_jaxpr as dce_open_jaxpr
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from corejax.programs.jaxpr_transforms import Flags, flag_each, memoised, one_for_each, with_used_consts
from corejax.programs.recomputation import Policy, find_recomputation
from corejax.settings.config import config


def partial_eval_jaxpr(
    closed: ClosedJaxpr, unknowns: Flags, instantiate: bool | Flags = False, policy: Policy | None = None
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Unzip a program into what is known and what is not.

    Args:
        closed: a program `(a1, a2) -> (b1, b2)`, arguments in any order.
        unknowns: which arguments are unknown (`a2`), one flag each.
        instantiate: outputs that are treated as unknown even if they are known, one flag each or one for all.
        policy: which values of the known half may be residuals, `policy(primitive, *avals, **params) -> bool`
            asked of the equation that makes them; the unknown half computes the others again from known
            arguments, which may always be residuals. Without it all may, and what is cheap to compute from others
            is computed again (see `Recomputation`).

    Returns:
        `known : a1 -> (b1, res)`, `unknown : (res, a2) -> b2`, which outputs are unknown, and the number of
        residuals. A residual may be an argument of the known half, or one of its other outputs too (see
        `without_forwarded`); none is unused by the unknown half, and none is a constant of the program, for both
        halves have those that they use. The order of `a1`, `a2`, `b1` and `b2` is the program's.
    """
    unknowns = one_for_each("partial_eval_jaxpr: unknowns", unknowns, closed.in_avals)
    make_unknown = flag_each(instantiate, len(closed.out_avals))

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
        if (recomputation := find_recomputation.get()()) is not None:
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


def _free(eqns: Sequence[JaxprEqn], outvars: Sequence[Any], bound: set[Any]) -> list[Var]:
    """Variables that equations and outputs use and nothing here binds, in the order of their first use."""
    found: dict[Var, None] = {}
    bound = set(bound)
    for eqn in eqns:
        found.update((v, None) for v in eqn.invars if type(v) is Var and v not in bound)
        bound.update(eqn.outvars)
    found.update((v, None) for v in outvars if type(v) is Var and v not in bound)
    return list(found)


def without_forwarded(closed: ClosedJaxpr, keep: int = 0) -> tuple[ClosedJaxpr, list[tuple[bool, int]]]:
    """The program without outputs that are just its arguments or repeat another output.

    Args:
        closed: a program `a -> b`.
        keep: how many of the first outputs stay, whatever they are.

    Returns:
        The smaller program, and for each output of the whole: whether it is an argument, and the index of that
        argument or of the smaller program's output. Memoised.
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
